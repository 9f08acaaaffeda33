"""What `encode_dataset` returns: a data set as arrays, and the means to encode new items alike."""

from dataclasses import dataclass, field

import numpy as np

from itr_study.data.batches import EncodedSplit, InputSpec
from itr_study.data.vocabulary import Vocabulary, tokenize
from itr_study.encoders.base import TextEncoder
from itr_study.encoders.wordpiece import WordPieces
from itr_study.features.images import FrozenImages


@dataclass(eq=False)
class EncodedData:
    """The splits of a data set as arrays, and what a model must know of them."""

    splits: dict[str, EncodedSplit]
    inputs: InputSpec
    key: str  # 16 digits: fingerprint of the data, and name, version, settings of every encoder
    vocabulary: Vocabulary | WordPieces | None = None  # has .words and .encode(text)
    seen: tuple[str, ...] = ()  # encoders in use that were trained on these captions (leakage)
    dataset: str = ""
    features_dtype: str = ""  # in which frozen image networks computed; "" where there are none
    image_encoders: list[FrozenImages] = field(default_factory=list)  # none for given features
    sentence_encoders: list[TextEncoder] = field(default_factory=list)  # fitted

    @property
    def needs_network(self) -> str:
        """What to say to new pictures where no frozen network makes the features."""
        made = ("of a network that was fine-tuned" if self.inputs.pixels
                else f"that came with the data ({self.dataset})")
        return (f"the model takes features {made}, new pictures have none; use a run with "
                'images="lite0:pooled:flip" or the like')

    def encode_texts(self, texts: list[str]) -> tuple[list[np.ndarray] | None, np.ndarray | None]:
        """Tokens and sentence vectors (T, D) of new texts, such as a user's query."""
        tokens = [self.vocabulary.encode(t) for t in texts] if self.vocabulary else None
        vectors = [encoder.encode(texts) for encoder in self.sentence_encoders]
        return tokens, np.concatenate(vectors, axis=1) if vectors else None

    def unknown_words(self, text: str) -> list[str]:
        """Words of a text that nothing which reads texts here knows, each once."""
        words = list(dict.fromkeys(tokenize(text)))
        readers = [self.vocabulary] * bool(self.vocabulary) + self.sentence_encoders
        for reader in readers:
            words = reader.unknown(words)
        return words if readers else []

    def encode_images(self, images: list) -> np.ndarray:
        """Features (I, V, R, D) of new RGB pictures, such as a user's own.

        Raises:  ValueError where features came with the data, for no network makes those.
        """
        if not self.image_encoders:
            raise ValueError(self.needs_network)
        return np.concatenate([e.encode(images) for e in self.image_encoders], axis=-1)
