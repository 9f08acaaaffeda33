"""Texts as arrays, through the cache: sentence vectors, label vectors, what is fitted to them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from safetensors.numpy import load, save

from itr_study.checks import check_choice
from itr_study.data.base import RetrievalDataset
from itr_study.data.batches import EncodedSplit, InputSpec, LabelVectors
from itr_study.data.vocabulary import TextReader, Unread, Vocabulary, unread
from itr_study.digits import counted
from itr_study.encoders import TEXT_ENCODERS
from itr_study.encoders.base import TextEncoder
from itr_study.encoders.ngrams import Ngrams
from itr_study.encoders.sentences import WordPieces
from itr_study.features.cache import CacheKey, Compute, cached, cores, sole_builder
from itr_study.features.images import FrozenImages, cut, from_whole
from itr_study.files.atomic import canonical_json, read_json, sha256_file, write_atomic, write_json
from itr_study.files.paths import home

BLOCK = 1024  # texts a block: an encoder sorts them by length within it


@dataclass(eq=False)
class EncodedData:
    """The splits of a data set as arrays, and what encodes new pictures and texts like them."""

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
        """Encode new texts, such as a user's query: tokens and sentence vectors (T, D)."""
        tokens = [self.vocabulary.encode(t) for t in texts] if self.vocabulary else None
        vectors = [encoder.encode(texts) for encoder in self.sentence_encoders]
        return tokens, np.concatenate(vectors, axis=1) if vectors else None

    def unread(self, texts: Sequence[str]) -> list[Unread]:
        """Say of each text what nothing that reads texts here reads of it."""
        readers = [self.vocabulary] * bool(self.vocabulary) + self.sentence_encoders
        return unread(readers, texts)

    def encode_images(self, images: list) -> np.ndarray:
        """Encode new RGB pictures, such as a user's own: features (I, V, R, D).

        Raises:  ValueError where features came with the data, for no network makes those.
        """
        if not self.image_encoders:
            raise ValueError(self.needs_network)
        return np.concatenate([e.encode(images) for e in self.image_encoders], axis=-1)


def unread_notes(dataset: RetrievalDataset, readers: Sequence[TextReader],
                 who: str = "the model") -> list[str]:
    """Say in sentences of how many captions some readers (`who`) know no word, or not the end."""
    texts = [text for split in dataset.splits.values() for text in split.texts]
    found = unread(readers, texts)
    of = f"of {counted(len(texts), 'caption')}"
    dark = [text for text, one in zip(texts, found, strict=True) if one.nothing]
    cuts = [one.cut for one in found if one.cut]
    notes = [f"{len(dark):,} {of} hold no word that {who} knows, such as {dark[0][:60]!r}: it "
             "cannot tell them apart"] if dark else []
    return notes + ([f"{len(cuts):,} {of} are cut at {max(cuts)} pieces of words: {who} does not "
                     "read what follows"] if cuts else [])


def dataset_sentences(dataset: RetrievalDataset, encoder: TextEncoder,
                      folder: Path) -> dict[str, np.ndarray]:
    """Encode each split, (T, D) float32; the encoder is fitted on the training texts."""
    return cut(text_rows(dataset, encoder, folder),
               {name: len(split.texts) for name, split in dataset.splits.items()})


def text_rows(dataset: RetrievalDataset, encoder: TextEncoder, folder: Path) -> np.ndarray:
    """Encode all splits, one after the other: (T, D) float32."""
    key = CacheKey(dataset.name, dataset.content, encoder.name, encoder.version, encoder.settings)
    texts = [text for split in dataset.splits.values() for text in split.texts]
    taken = None if dataset.part_of is None else from_whole(
        dataset, "text_ids", lambda whole: text_rows(whole, encoder, folder))
    return _encoded(key, texts, dataset.splits["train"].texts, encoder, folder, taken)


def caption_vectors(texts: Sequence[str], encoder: TextEncoder, name: str,
                    train: Sequence[str] = (), folder: Path | None = None) -> np.ndarray:
    """Encode texts of no data set of ours, (T, D) float32, once for these texts and this encoder.

    Args:    texts: in any number, such as the 25,000 captions of COCO's test set; name: of the
             texts, for people; train: what the encoder is fitted on, () where it learns nothing;
             folder: of caches, None = `<home>/features`.
    Raises:  ValueError without texts; WeightsError for weights that cannot be found.
    """
    return _encoded(caption_key(texts, encoder, name, train), texts, train, encoder,
                    home() / "features" if folder is None else folder)


def caption_key(texts: Sequence[str], encoder: TextEncoder, name: str,
                train: Sequence[str] = ()) -> CacheKey:
    """Say what the vectors depend on: the texts, the encoder, and what it was fitted on."""
    content = canonical_json([list(texts), list(train)])
    return CacheKey(name, hashlib.sha256(content.encode()).hexdigest(), encoder.name,
                    encoder.version, encoder.settings)


def _encoded(key: CacheKey, texts: Sequence[str], train: Sequence[str], encoder: TextEncoder,
             folder: Path, taken: Compute | None = None) -> np.ndarray:
    """Vectors through the cache; `taken` takes them from those of a whole data set."""

    def encode(start: int, stop: int) -> np.ndarray:
        return encoder.encode(list(texts[start:stop]))

    # One that is fitted on fewer training texts says something else of every text.
    fitted = fit_once(key, encoder, list(train), folder)
    return cached(key, len(texts), encode if fitted or taken is None else taken, folder,
                  dtype="float32", block=BLOCK, workers=cores() if encoder.threaded else 1)


def fit_once(key: CacheKey, encoder: TextEncoder, texts: list[str], folder: Path) -> bool:
    """Fit the encoder, or load what was fitted and is sound; tells whether it learns anything."""
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
            write_atomic(path, save({name: np.ascontiguousarray(a) for name, a in fitted.items()}))
            write_json(digest, {"sha256": sha256_file(path)})
        return bool(fitted)


class AsWritten:
    """The texts themselves, for label sources that run a tool on them (METEOR, SPICE)."""

    name, version = "texts", 1


# What makes the form of texts that a label source compares; models never see it.
LABEL_ENCODERS = TEXT_ENCODERS | {Ngrams.name: Ngrams, AsWritten.name: AsWritten}


def encode_label_vectors(dataset: RetrievalDataset, names: Sequence[str],
                         evaluation_names: Sequence[str], folder: Path, device: str = "cpu"
                         ) -> dict[str, dict[str, LabelVectors]]:
    """Make label vectors of texts: split -> name -> vectors; what is fitted is fitted on train.

    Args:    names: of LABEL_ENCODERS, those that training reads, for all splits;
             evaluation_names: those that only evaluation reads, for all splits but train;
             folder: of caches; device: where networks run.
    Raises:  ValueError for an unknown name; WeightsError for weights that cannot be found.
    """
    encoded: dict[str, dict[str, LabelVectors]] = {split: {} for split in dataset.splits}
    for name in dict.fromkeys([*names, *evaluation_names]):
        check_choice("label_vectors", name, LABEL_ENCODERS)
        texts = {split: dataset.splits[split].texts for split in dataset.splits
                 if split != "train" or name in names}
        if name in TEXT_ENCODERS:  # from the cache, which holds all splits
            vectors = dataset_sentences(dataset, TEXT_ENCODERS[name](device), folder)
        elif name == Ngrams.name:  # computed in seconds, so kept nowhere
            train = dataset.splits["train"]
            ngrams = Ngrams().fit(train.texts, train.image_of_text)
            vectors = {split: ngrams.encode(of_split) for split, of_split in texts.items()}
        else:
            vectors = {split: np.array(of_split, object) for split, of_split in texts.items()}
        for split in texts:
            encoded[split][name] = vectors[split]
    return encoded
