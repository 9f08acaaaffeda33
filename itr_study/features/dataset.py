"""A data set as arrays that models take: features, tokens, sentence vectors, relevance."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from itr_study.data.base import DataError, RetrievalDataset, Split
from itr_study.data.batches import EncodedSplit, InputSpec, JudgedPairs
from itr_study.data.vocabulary import TextReader, Vocabulary
from itr_study.encoders.base import TextEncoder
from itr_study.encoders.glove import word_vectors
from itr_study.encoders.sentences import MAX_TOKENS, WordPieces
from itr_study.encoders.weights import fingerprint_of_weights
from itr_study.features.images import (
    FrozenImages,
    Pixels,
    dataset_features,
    given_features,
    open_picture,
    pixel_size,
)
from itr_study.features.regions import freeze
from itr_study.features.specs import ImagePart, check_tokens, image_parts, sentence_encoders
from itr_study.features.texts import EncodedData, dataset_sentences, encode_label_vectors
from itr_study.files.atomic import canonical_json
from itr_study.files.paths import home

IN_MEMORY = 1 << 30  # bytes: what is smaller is held in RAM, what is larger stays on the disk
MIN_COUNT = 2  # a word used once in training counts as unknown: its vector could not be learnt
PLAIN = "lite0:pooled:flip"  # features of a data set that brings none
TOKENS_VERSION = 1  # raised when the same text gives other tokens than before
MOST_UNMATCHED = 1 - 1e-4
Frozen = dict[ImagePart, FrozenImages]


def encode_dataset(dataset: RetrievalDataset, images: str | None = None,
                   tokens: str | None = "words", sentences: str | None = None,
                   relevance: bool = False, device: str = "cpu",
                   store: Path | str | None = None, label_vectors: Sequence[str] = (),
                   evaluation_vectors: Sequence[str] = ()) -> EncodedData:
    """Encode all splits, computing what no cache holds yet; all that is fitted is fitted on train.

    Args:    images: parts as of `specs.image_parts`, joined by "+" along D; None: all features that
             come with the data, "lite0:pooled:flip" where none do; tokens: None, "words" (learnt
             vocabulary), "glove" (with word vectors), "wordpiece:minilm" or
             "wordpiece:clip:<folder>"; sentences: None, or "minilm", "fisher", "hglmm",
             "glove-mean", "clip:<folder>" (of a CLIP, SigLIP or the like), joined by "+";
             relevance: attach the data's exact relevance; device: where networks run; store: folder
             of caches, None = `<home>/features`; label_vectors: names of LABEL_ENCODERS that make
             what label sources compare, "minilm", "cider" or "texts"; evaluation_vectors: the same
             for all splits but train, for label sources that evaluate and do not train.
    Raises:  ValueError for a spec, naming the choices; DataError for data that cannot be used;
             WeightsError for weights that cannot be found; OSError for a full disk.
    """
    if not isinstance(dataset, RetrievalDataset):
        raise ValueError(f"encode_dataset takes load_dataset(name); got {type(dataset).__name__}")
    if images is None:
        images = "+".join(dataset.features) or PLAIN
    parts = image_parts(images, tuple(dataset.features))
    check_tokens(tokens)
    check_dataset(dataset, relevance)
    folder = Path(store) if store is not None else home() / "features"
    frozen = freeze(parts, device)
    encoders = sentence_encoders(sentences, device)
    regions = encode_regions(dataset, parts, frozen, folder)
    vocabulary = make_vocabulary(dataset, tokens)
    vectors = [dataset_sentences(dataset, encoder, folder) for encoder in encoders]
    compared = encode_label_vectors(dataset, label_vectors, evaluation_vectors, folder, device)
    splits = {name: EncodedSplit(
        name, split.image_of_text, *regions[name],
        tokens=[vocabulary.encode(text) for text in split.texts] if vocabulary else None,
        sentences=join_regions([v[name] for v in vectors]) if vectors else None,
        relevance=exact_relevance(dataset, name) if relevance else None,
        label_vectors=compared[name], judgements=judged_pairs(dataset, split),
        pixels=Pixels(partial(open_picture, dataset), split.image_ids, pixel_size(parts[0]))
        if parts[0].kind == "pixels" else None,
        image_classes=image_classes(dataset, split), ids=(split.image_ids, split.text_ids))
        for name, split in dataset.splits.items()}
    read = {*(encoder.name for encoder in encoders), *label_vectors,
            (tokens or "").removeprefix("wordpiece:")}
    return EncodedData(
        splits, input_spec(splits["train"], vocabulary, tokens, parts[0]),
        encoded_key(dataset, parts, frozen, tokens, encoders), vocabulary,
        tuple(sorted(read & set(dataset.seen_by))), dataset.name,
        "+".join(sorted({frozen[part].dtype for part in frozen})),
        image_encoders=[frozen[part] for part in parts] if len(frozen) == len(parts) else [],
        sentence_encoders=encoders)


def with_pictures(data: EncodedData, pictures: RetrievalDataset) -> EncodedData:
    """Exchange the pictures that a model was trained on for those of another data set.

    Words are read as in training; the texts of `pictures` are not encoded.

    Raises:  ValueError where features came with the data, for no network makes those.
    """
    if not data.image_encoders:
        raise ValueError(data.needs_network)
    parts = [dataset_features(pictures, images, home() / "features")
             for images in data.image_encoders]
    splits = {name: EncodedSplit(name, np.zeros(0, np.int64),
                                 join_regions([features[name] for features in parts]))
              for name in pictures.splits}
    return replace(data, splits=splits, dataset=pictures.name)


def check_dataset(dataset: RetrievalDataset, relevance: bool) -> None:
    """Raise DataError unless all splits have pictures and texts that fit together."""
    if "train" not in dataset.splits:
        raise DataError(f"{dataset.name} has no train split, only {', '.join(dataset.splits)}; "
                        "vocabulary and statistics are fitted on it")
    if relevance and dataset.relevance is None:
        raise DataError(f"{dataset.name} has no exact relevance: take another label source, such "
                        "as sentence or cider (in Python with relevance=False)")
    for name, split in dataset.splits.items():
        images, texts, of = len(split.image_ids), len(split.texts), split.image_of_text
        if not (images and texts and len(of) == texts):
            raise DataError(f"{dataset.name}, split {name}: {images} pictures, {texts} texts, "
                            f"{len(of)} entries of image_of_text; expected at least one picture, "
                            "and one entry for each text")
        if not np.array_equal(np.unique(of), np.arange(images)):
            raise DataError(f"{dataset.name}, split {name}: image_of_text must name each of the "
                            f"{images} pictures at least once, and none beyond")


class JoinedRegions:
    """Arrays (I, V, R, D1), (I, V, R, D2), ... joined on access: memory maps stay on the disk.

    Takes any index that leaves the last axis alone.
    """

    def __init__(self, parts: Sequence[np.ndarray]) -> None:
        self.parts = tuple(parts)
        self.shape = (*self.parts[0].shape[:-1], sum(part.shape[-1] for part in self.parts))
        self.ndim = len(self.shape)
        self.dtype = np.result_type(*self.parts)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """The bytes of all parts."""
        return sum(part.nbytes for part in self.parts)

    def __getitem__(self, index: object) -> np.ndarray:
        if isinstance(index, tuple) and len(index) >= self.ndim:
            raise IndexError("the last axis of joined features cannot be indexed; index what "
                             "comes back instead")
        return np.concatenate([part[index] for part in self.parts], axis=-1)


def join_regions(parts: Sequence[np.ndarray]) -> np.ndarray | JoinedRegions:
    """Join parts (I, V, R, D), or (T, D), along D; in RAM below 1 GiB, else left on the disk.

    Raises:  ValueError where the parts differ in I, V or R.
    """
    if len({part.shape[:-1] for part in parts}) > 1:
        listed = ", ".join(str(part.shape) for part in parts)
        raise ValueError("parts of images must have the same views and regions to be joined along "
                         f"D; got (I, V, R, D) = {listed}; give them the same kind and views")
    if sum(part.size * part.dtype.itemsize for part in parts) < IN_MEMORY:
        return np.concatenate([np.asarray(part) for part in parts], axis=-1)
    return parts[0] if len(parts) == 1 else JoinedRegions(parts)


def encode_regions(dataset: RetrievalDataset, parts: list[ImagePart], frozen: Frozen,
                   folder: Path) -> dict[str, tuple[np.ndarray | JoinedRegions, np.ndarray | None]]:
    """Join the features (I, V, R, D), D = 0 with pixels, and masks (I, R), of all parts at once."""
    if parts[0].kind == "pixels":
        return {name: (np.zeros((len(split.image_ids), 1, 1, 0), np.float16), None)
                for name, split in dataset.splits.items()}
    computed = {part: dataset_features(dataset, frozen[part], folder) for part in frozen}
    joined = {}
    for name, split in dataset.splits.items():
        arrays, masks = zip(*(
            (computed[part][name], None) if part in computed
            else given_features(dataset, part.encoder, split) for part in parts), strict=True)
        masks = [mask for mask in masks if mask is not None]
        joined[name] = (join_regions(arrays), np.logical_and.reduce(masks) if masks else None)
    return joined


def make_vocabulary(dataset: RetrievalDataset,
                    tokens: str | None) -> Vocabulary | WordPieces | None:
    """Make what turns texts into token ids; fitted on training texts where it is fitted at all."""
    if tokens is None:
        return None
    if tokens.startswith("wordpiece:"):
        return WordPieces(tokens.removeprefix("wordpiece:"))
    return Vocabulary.fit(dataset.splits["train"].texts, min_count=MIN_COUNT)


def text_readers(dataset: RetrievalDataset, tokens: str | None,
                 sentences: str | None) -> list[TextReader]:
    """Make what reads the texts of a model, as `encode_dataset` does, without encoding any."""
    vocabulary = make_vocabulary(dataset, tokens)
    return [*[vocabulary] * bool(vocabulary), *sentence_encoders(sentences)]


def exact_relevance(dataset: RetrievalDataset, name: str) -> np.ndarray:
    """Take (I, T) float32 from the data; DataError where it breaks the rule of matches."""
    split = dataset.splits[name]
    relevance = np.asarray(dataset.relevance(split), np.float32)
    expected = len(split.image_ids), len(split.texts)
    what = f"relevance of {dataset.name}, split {name}"
    if relevance.shape != expected:
        raise DataError(f"{what}: expected {expected}, got {relevance.shape}")
    match = split.image_of_text == np.arange(len(split.image_ids))[:, None]
    others = relevance[~match]
    if not ((relevance[match] == 1).all() and others.min(initial=0) >= 0
            and others.max(initial=0) <= MOST_UNMATCHED + 1e-7):  # NaN fails too
        raise DataError(f"{what}: must be 1 for matches and in [0, 1 - 1e-4] otherwise")
    return relevance


def judged_pairs(dataset: RetrievalDataset, split: Split) -> dict[str, JudgedPairs]:
    """Find the judgements whose image and text both lie in a split, by collection."""
    image_rows = {image: row for row, image in enumerate(split.image_ids)}
    text_rows = {text: row for row, text in enumerate(split.text_ids)}
    pairs = {}
    for name, judgements in dataset.judgements.items():
        in_split = [image in image_rows and text in text_rows for image, text in
                    zip(judgements.image_ids, judgements.text_ids, strict=True)]
        if any(in_split):
            chosen = judgements.take(np.flatnonzero(in_split))
            pairs[name] = JudgedPairs(np.array([image_rows[i] for i in chosen.image_ids]),
                                      np.array([text_rows[t] for t in chosen.text_ids]), chosen)
    return pairs


def image_classes(dataset: RetrievalDataset, split: Split) -> np.ndarray | None:
    """Number each image's class among all classes by name, (I,) int64; None without classes."""
    if not dataset.classes:
        return None
    place = {name: number for number, name in enumerate(sorted(set(dataset.classes.values())))}
    return np.array([place[dataset.classes[image]] for image in split.image_ids])


def input_spec(split: EncodedSplit, vocabulary: Vocabulary | WordPieces | None,
               tokens: str | None, first: ImagePart) -> InputSpec:
    """Gather the sizes that a model is built for; a network that is fine-tuned is the only part."""
    vectors = torch.from_numpy(word_vectors(vocabulary)) if tokens == "glove" else None
    return InputSpec(0 if first.fine_tuned else split.regions.shape[-1],
                     len(vocabulary) if vocabulary else 0,
                     0 if split.sentences is None else split.sentences.shape[1], vectors,
                     first.name if first.kind == "pixels" else "", first.stages)


def encoded_key(dataset: RetrievalDataset, parts: list[ImagePart], frozen: Frozen,
                tokens: str | None, encoders: list[TextEncoder]) -> str:
    """Make 16 digits: equal keys mean equal arrays."""
    images = [frozen[part].identity if part in frozen else
              ["pixels", part.name, pixel_size(part),
               *map(fingerprint_of_weights, filter(None, [part.argument]))]
              if part.kind == "pixels" else part.encoder for part in parts]
    texts = [[encoder.name, encoder.version, encoder.settings] for encoder in encoders]
    words = [tokens, TOKENS_VERSION, MIN_COUNT, MAX_TOKENS,
             *map(fingerprint_of_weights, tokens.split(":clip:")[1:])] if tokens else None
    content = [dataset.fingerprint, images, words, texts]
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()[:16]
