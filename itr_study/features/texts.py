"""Sentence vectors of the texts of a data set, through the cache; what is fitted is kept too."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from itr_study.checks import check_choice
from itr_study.data.base import RetrievalDataset
from itr_study.data.batches import EncodedSplit, InputSpec, LabelVectors
from itr_study.data.vocabulary import Vocabulary, tokenize
from itr_study.encoders.base import TextEncoder
from itr_study.encoders.ngrams import Ngrams
from itr_study.encoders.registry import TEXT_ENCODERS
from itr_study.encoders.wordpiece import WordPieces
from itr_study.features.cache import CacheKey, cached, cores, sole_builder
from itr_study.features.images import FrozenImages, cut
from itr_study.features.whole import all_texts, from_whole
from itr_study.files.atomic import read_json, sha256_file, write_atomic, write_json

# What `encode_dataset` returns: a data set as arrays, and the means to encode new items alike.

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


BLOCK = 1024  # texts a block: an encoder sorts them by length within it


def dataset_sentences(dataset: RetrievalDataset, encoder: TextEncoder,
                      folder: Path) -> dict[str, np.ndarray]:
    """Vectors (T, D) float32 of each split; the encoder is fitted on the training texts."""
    return cut(text_rows(dataset, encoder, folder),
               {name: len(split.texts) for name, split in dataset.splits.items()})


def text_rows(dataset: RetrievalDataset, encoder: TextEncoder, folder: Path) -> np.ndarray:
    """Vectors (T, D) float32 of all splits, one after the other."""
    texts = [text for split in dataset.splits.values() for text in split.texts]
    key = CacheKey(dataset.name, dataset.content, encoder.name, encoder.version,
                   encoder.settings)
    fitted = fit_once(key, encoder, list(dataset.splits["train"].texts), folder)

    def encode(start: int, stop: int) -> np.ndarray:
        return encoder.encode(texts[start:stop])

    # One that is fitted on fewer training texts says something else of every text.
    compute = encode if fitted or dataset.part_of is None else from_whole(
        dataset, all_texts, lambda whole: text_rows(whole, encoder, folder))
    return cached(key, len(texts), compute, folder, dtype="float32", block=BLOCK,
                  workers=workers_of(encoder))


def workers_of(encoder: TextEncoder) -> int:
    """Threads that encode texts side by side."""
    return cores() if encoder.threaded else 1


def fit_once(key: CacheKey, encoder: TextEncoder, texts: list[str], folder: Path) -> bool:
    """Fit the encoder, or load what an earlier process fitted; a damaged file is set aside.
    Returns whether anything is fitted at all."""
    from safetensors.numpy import load, save

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{key.stem}.fitted.safetensors"
    digest = path.with_suffix(".json")
    with sole_builder(path):
        if path.is_file() and digest.is_file():
            if read_json(digest) == {"sha256": sha256_file(path)}:
                encoder.load(load(path.read_bytes()))
                return True
            path.replace(path.with_suffix(".safetensors.corrupt"))
        fitted = encoder.fit(texts)
        if fitted:
            contiguous = {name: np.ascontiguousarray(a) for name, a in fitted.items()}
            write_atomic(path, save(contiguous))
            write_json(digest, {"sha256": sha256_file(path)})
        return bool(fitted)


# Label vectors: the texts of a data set in the form in which a label source compares them.
#
# Sentence vectors, n-grams weighted by their rarity, or the texts themselves. Models never see
# them.

class AsWritten:
    """The texts themselves, for label sources that run a tool on them (METEOR, SPICE)."""

    name, version = "texts", 1


LABEL_ENCODERS = TEXT_ENCODERS | {Ngrams.name: Ngrams, AsWritten.name: AsWritten}


def encode_label_vectors(dataset: RetrievalDataset, names: Sequence[str],
                         evaluation_names: Sequence[str], folder: Path, device: str = "cpu"
                         ) -> dict[str, dict[str, LabelVectors]]:
    """Split -> name -> label vectors of its texts; what is fitted is fitted on train.

    Args:    names: of LABEL_ENCODERS, those that training reads, for all splits;
             evaluation_names: those that only evaluation reads, for all splits but train;
             folder: of caches; device: where networks run.
    Raises:  ValueError for an unknown name; WeightsError for weights that cannot be found.
    """
    encoded: dict[str, dict[str, LabelVectors]] = {split: {} for split in dataset.splits}
    for name in dict.fromkeys([*names, *evaluation_names]):
        check_choice("label_vectors", name, LABEL_ENCODERS)
        splits = [split for split in dataset.splits if split != "train" or name in names]
        if name in TEXT_ENCODERS:  # from the cache, which holds all splits
            vectors = dataset_sentences(dataset, TEXT_ENCODERS[name](device), folder)
        else:
            vectors = COMPUTED[name](dataset, splits)
        for split in splits:
            encoded[split][name] = vectors[split]
    return encoded


def ngram_vectors(dataset: RetrievalDataset, splits: Sequence[str]) -> dict[str, LabelVectors]:
    """n-gram vectors of these splits; computed in seconds, so kept nowhere."""
    train = dataset.splits["train"]
    ngrams = Ngrams().fit(train.texts, train.image_of_text)
    return {split: ngrams.encode(dataset.splits[split].texts) for split in splits}


def as_written(dataset: RetrievalDataset, splits: Sequence[str]) -> dict[str, LabelVectors]:
    """The texts of these splits, (T,) of str."""
    return {split: np.array(dataset.splits[split].texts, object) for split in splits}


COMPUTED = {Ngrams.name: ngram_vectors, AsWritten.name: as_written}
