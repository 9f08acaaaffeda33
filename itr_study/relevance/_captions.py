"""What label sources share that compare a text with the captions of an image."""

import warnings
from abc import ABC, abstractmethod
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from itr_study.checks import GAP, MATCH, check_choice
from itr_study.data.batches import Batch, EncodedSplit

SCALES = ("unit", "cosine")
BLOCK = 4096  # rows checked at a time: vectors may be a memory map larger than the RAM
POOLINGS = ("max", "mean", "pair")
ENTRIES = 1 << 22  # similarities computed at a time in `block` and `pairs`: 16 MB
Values = TypeVar("Values", np.ndarray, Tensor)


def check_vectors(what: str, vectors: object, rows: int, width: int | None = None) -> None:
    """Raise ValueError unless vectors, called `what`, are (rows, width), floating and finite."""
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or vectors.dtype.kind != "f":
        got = (f"{vectors.dtype} {vectors.shape}" if isinstance(vectors, np.ndarray)
               else type(vectors).__name__)
        raise ValueError(f"{what} must be floating point vectors (rows, D), got {got}")
    if len(vectors) != rows:
        raise ValueError(f"{what} must have {rows} rows, got {len(vectors)}: they are of other "
                         "data, encode them again")
    if vectors.shape[1] != (width or vectors.shape[1]) or not vectors.shape[1]:
        raise ValueError(f"{what} must be {width or 'at least 1'} wide, got {vectors.shape[1]}: "
                         "they are of another encoder, encode them again")
    for start in range(0, rows, BLOCK):
        part = vectors[start:start + BLOCK]
        bad = np.flatnonzero(~np.isfinite(part).all(axis=1))
        if len(bad):
            raise ValueError(f"{what} must be finite, found nan or inf first in row "
                             f"{start + bad[0]}")


def inverse_lengths(vectors: np.ndarray) -> np.ndarray:
    """Return 1 / length (N,); 0 for a vector of zeros, whose cosine is taken as 0."""
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    return np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return cosines (A, B) float32 of all pairs of rows."""
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    values = a @ b.T
    values *= inverse_lengths(a)[:, None]
    values *= inverse_lengths(b)
    return np.clip(values, -1, 1, out=values)


def row_cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return cosines (N,) float32 of row n with row n."""
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    values = np.einsum("nd,nd->n", a, b) * inverse_lengths(a) * inverse_lengths(b)
    return np.clip(values, -1, 1)


def tensor_cosines(a: Tensor, b: Tensor) -> Tensor:
    """Return `cosines` of tensors, on their device."""
    a, b = a.float(), b.float()
    values = a @ b.T
    for side, lengths in ((a, (-1, 1)), (b, (1, -1))):
        inverse = torch.linalg.vector_norm(side, dim=1).reciprocal_().nan_to_num_(posinf=0)
        values *= inverse.view(lengths)
    return values.clamp_(-1, 1)


def readable(array: np.ndarray) -> bool:
    """Whether torch can share an array's memory: of its types, in this machine's byte order."""
    return (array.dtype.isnative and array.dtype.itemsize <= 8
            and all(stride >= 0 for stride in array.strides))


class Arrays:
    """Arrays of a split that live on the devices of its batches: moved there once."""

    def __init__(self, *arrays: np.ndarray) -> None:
        self._arrays = [array if readable(array) else np.ascontiguousarray(array, np.float32)
                        for array in arrays]
        self._on_device: dict[torch.device, list[Tensor]] = {}

    def on(self, device: torch.device) -> list[Tensor]:
        """Return the arrays on a device; on a CPU they share their memory, perhaps a file's map."""
        if device not in self._on_device:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "The given NumPy array is not writable")
                tensors = [torch.from_numpy(array) for array in self._arrays]
            self._on_device[device] = [tensor.to(device) for tensor in tensors]
        return self._on_device[device]


def rescale(cosine: Values, scale: str) -> Values:
    """Return the cosine itself, or (1 + cosine) / 2 on [0, 1] (listwise Eq. 8)."""
    return cosine if scale == "cosine" else (1 + cosine) / 2


class CaptionSource(ABC):
    """Relevance of text j to image i: the similarity of text j with the captions of image i.

    A subclass gives it by `alike` for all captions and texts, by `alike_pairs` one by one, and
    checks in `check` `split.label_vectors[vectors_needed[0]]`.

    Args: pooling: "max" or "mean" over the captions of image i in the split, or "pair", the one
        drawn with it in a training batch.

    Raises: ValueError for another pooling; label vectors that are absent or of other texts; "pair"
        on a batch that is not made of pairs.
    """

    name: str
    version: int
    scale: str
    vectors_needed: tuple[str, ...]

    def __init__(self, pooling: str = "max") -> None:
        check_choice("pooling", pooling, POOLINGS)
        self.pooling = pooling
        self._known: WeakKeyDictionary[EncodedSplit, Captions] = WeakKeyDictionary()

    @abstractmethod
    def alike(self, captions: Any, texts: Any) -> np.ndarray:
        """Return (C, T) float: every text with every caption; not above 1."""

    @abstractmethod
    def alike_pairs(self, captions: Any, texts: Any) -> np.ndarray:
        """Return (N,) float: caption n with text n."""

    @abstractmethod
    def check(self, vectors: Any, texts: int) -> None:
        """Raise ValueError unless these are label vectors of the T texts of a split."""

    def __call__(self, batch: Batch, split: EncodedSplit) -> Tensor:
        """Return (I, T) float32: exactly 1 for matches, at most 1 - 1e-4 else."""
        captions, ids = self.captions(split), batch.ids
        if self.pooling == "pair" and not ids.paired:
            raise ValueError('pooling="pair" needs a batch of pairs, row i the image of text i: '
                             f"got {len(ids.images)} images and {len(ids.texts)} texts that are "
                             'not paired; take pooling="max" or "mean" here')
        captions.check(ids.images)
        return finish_batch(self.of_batch(batch, captions), batch)

    def of_batch(self, batch: Batch, captions: "Captions") -> Tensor:
        """Return (I, T) float, matches not yet marked.

        Computed on the host, from the ids that it knows; a subclass whose label vectors can live on
        a device does it there.
        """
        drawn = captions.vectors[batch.ids.texts]
        return torch.from_numpy(self.alike(drawn, drawn) if self.pooling == "pair"
                                else self._pooled(captions, batch.ids.images, drawn))

    def block(self, split: EncodedSplit, images: slice) -> np.ndarray:
        """Return (i, T) float32 of every text of a split and a slice of its images."""
        self._refuse_pair("block")
        captions = self.captions(split)
        rows, owners = np.arange(split.n_images)[images], split.image_of_text
        values = np.empty((len(rows), len(owners)), np.float32)
        texts = captions.vectors[np.arange(len(owners))]
        step = max(1, int(ENTRIES / max(1, captions.most * len(owners))))
        for a in range(0, len(rows), step):
            part = rows[a:a + step]
            values[a:a + step] = finish(self._pooled(captions, part, texts),
                                        part[:, None] == owners)
        return values

    def pairs(self, split: EncodedSplit, images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """Return (N,) float32 of text texts[n] and image images[n]: `block` at these places."""
        self._refuse_pair("pairs")
        captions = self.captions(split)
        values = np.empty(len(images), np.float32)
        step = max(1, ENTRIES // (512 * captions.most))
        for a in range(0, len(images), step):
            part = slice(a, a + step)
            rows, starts, counts = captions.of(images[part])
            alike = self.alike_pairs(captions.vectors[rows],
                                     captions.vectors[np.repeat(texts[part], counts)])
            matches = split.image_of_text[texts[part]] == images[part]
            values[part] = finish(pool(alike, starts, counts, self.pooling), matches)
        return values

    def captions(self, split: EncodedSplit) -> "Captions":
        """Return the captions of a split's images, checked once for each split and its vectors."""
        (name,) = self.vectors_needed
        if name not in split.label_vectors:
            given = ", ".join(split.label_vectors) or "none"
            raise ValueError(f'labels "{self.name}" read split.label_vectors["{name}"], and split '
                             f"{split.name!r} has {given}: encode with label_vectors=({name!r},), "
                             f"or give captions(image_of_text, {name}=vectors)")
        vectors, known = split.label_vectors[name], self._known.get(split)
        if known is None or known.vectors is not vectors or known.owners is not split.image_of_text:
            if len(vectors) != split.n_texts:
                raise ValueError(f'split.label_vectors["{name}"] must have a row for each of the '
                                 f"{split.n_texts} texts of split {split.name!r}, got "
                                 f"{len(vectors)}: encode all texts of this data again")
            self.check(vectors, split.n_texts)
            known = self._known[split] = Captions(vectors, split.image_of_text, split.n_images)
        return known

    def _pooled(self, captions: "Captions", images: np.ndarray, texts: Any) -> np.ndarray:
        """(I, T) of images that may repeat, each image's captions read once."""
        distinct, place = np.unique(images, return_inverse=True)
        rows, starts, counts = captions.of(distinct)
        alike = self.alike(captions.vectors[rows], texts)
        values = pool(alike, starts, counts, self.pooling)
        in_order = len(distinct) == len(images) and (place[1:] > place[:-1]).all()
        return values if in_order else values[place]

    def _refuse_pair(self, asked: str) -> None:
        if self.pooling == "pair":
            raise ValueError(f'pooling="pair" knows only the caption drawn with an image in a '
                             f'training batch, so it has no {asked}; take pooling="max" or "mean"')


class Captions:
    """The label vectors of a split's texts, and the texts that describe each image.

    table: (I, C) the captions of each image, the last repeated up to the most that an image has,
    and (I,) how many there are, for batches on a device.
    """

    def __init__(self, vectors: Any, owners: np.ndarray, images: int) -> None:
        self.vectors, self.owners = vectors, owners
        self.order = np.argsort(owners, kind="stable")
        self.counts = np.bincount(owners, minlength=images)
        self.ends = np.cumsum(self.counts)
        self.most = int(self.counts.max(initial=1))
        place = np.minimum(np.arange(self.most), self.counts[:, None] - 1)
        table = self.order[np.maximum(place + (self.ends - self.counts)[:, None], 0)]
        self.table = Arrays(table, self.counts)

    def check(self, images: np.ndarray) -> None:
        """Raise ValueError if one of the images has no caption."""
        counts = self.counts[images]
        if not counts.all():
            raise ValueError(f"image {images[counts.argmin()]} has no caption in this split, so "
                             "nothing says how relevant a text is to it; leave it out")

    def of(self, images: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows (C,) of the captions of these images, where each begins, and how many."""
        self.check(images)
        counts = self.counts[images]
        ends = np.cumsum(counts)
        starts = ends - counts
        shift = np.repeat(self.ends[images] - ends, counts)
        return self.order[np.arange(len(shift)) + shift], starts, counts

    def sibling(self, texts: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Return the caption (N,) of the same image `steps` after each text, in a circle."""
        images = self.owners[texts]
        position = np.empty(len(self.owners), np.int64)  # of each text when sorted by image
        position[self.order] = np.arange(len(position))
        begin = self.ends[images] - self.counts[images]
        return self.order[begin + (position[texts] - begin + steps) % self.counts[images]]


def pool(alike: np.ndarray, starts: np.ndarray, counts: np.ndarray, pooling: str) -> np.ndarray:
    """Return the maximum or mean over each group of rows."""
    if pooling == "max":
        return np.maximum.reduceat(alike, starts, axis=0)
    sums = np.add.reduceat(alike, starts, axis=0)
    return sums / counts.reshape(-1, *[1] * (alike.ndim - 1))


def finish(values: np.ndarray, match: np.ndarray) -> np.ndarray:
    """Return float32: exactly 1 for matches, at most 1 - 1e-4 for all others."""
    values = np.minimum(values, MATCH - GAP, dtype=np.float32, casting="same_kind")
    values[match] = MATCH
    return values


def pool_padded(alike: Tensor, counts: Tensor, pooling: str) -> Tensor:
    """Return the maximum or mean (I, T) over the first `counts` (I,) of (I, C, T).

    The rest repeat the last.
    """
    if pooling == "max":
        return alike.amax(dim=1)
    real = torch.arange(alike.shape[1], device=counts.device) < counts[:, None]  # (I, C)
    return alike.where(real[:, :, None], 0.0).sum(dim=1) / counts[:, None]


def finish_batch(values: Tensor, batch: Batch) -> Tensor:
    """Return `finish` for a batch, on its device."""
    values = values.to(batch.image_ids.device, torch.float32).clamp(max=MATCH - GAP)
    return values.masked_fill(batch.match, MATCH)
