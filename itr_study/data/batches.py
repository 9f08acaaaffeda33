"""The batch that every model takes, and the arrays it is cut from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from itr_study.data.base import Judgements


class Ids(NamedTuple):
    """Which images (I,) and texts (T,) a batch has, and the image (T,) of each text; int64."""

    images: np.ndarray
    texts: np.ndarray
    owners: np.ndarray

    @property
    def paired(self) -> bool:
        """Tell whether row i is the image of text i."""
        return np.array_equal(self.images, self.owners)


@dataclass(frozen=True)
class Batch:
    """I images and T texts. In training B sampled pairs: I = T = B, row i is the image of text i.

    Text j matches image i if and only if text_images[j] == image_ids[i]. Absent parts are None.
    """

    image_ids: Tensor  # (I,) int64
    text_ids: Tensor  # (T,) int64
    text_images: Tensor  # (T,) int64
    regions: Tensor | None = None  # (I, R, D) float32
    region_mask: Tensor | None = None  # (I, R) bool
    tokens: Tensor | None = None  # (T, W) int64, padded with 0
    lengths: Tensor | None = None  # (T,) int64
    sentences: Tensor | None = None  # (T, D) float32
    pixels: Tensor | None = None  # (I, 3, H, W), where a network is fine-tuned
    # of a batch that was moved: the ids as the host knew them, and the tensors they belong to
    host: tuple[Ids, tuple[Tensor, ...]] | None = None

    @property
    def ids(self) -> Ids:
        """The ids as the host knew them, if they stayed: to read them back stops a device."""
        tensors = (self.image_ids, self.text_ids, self.text_images)
        if self.host is not None:
            known, owners = self.host
            if all(a is b for a, b in zip(tensors, owners, strict=True)):
                return known
        return Ids(*(tensor.cpu().numpy() for tensor in tensors))

    @property
    def match(self) -> Tensor:
        """(I, T) bool: decided by image id, never by a computed value."""
        return self.image_ids[:, None] == self.text_images[None, :]

    def to(self, device: torch.device | str) -> "Batch":
        """Move all tensors to a device."""
        moved = {k: v.to(device) for k, v in vars(self).items() if isinstance(v, Tensor)}
        owners = (moved["image_ids"], moved["text_ids"], moved["text_images"])
        return replace(self, host=(self.ids, owners), **moved)

    def joined(self) -> "Batch":
        """Join all texts of each image, in their order here: one text an image, by ascending id.

        Shape: tokens (J, W') of the J images that have a text here, W' the most texts of an image
            times W, so that no length is read of a device; ids are those of the images.
        Raises: ValueError: texts without tokens.
        """
        if self.tokens is None or self.lengths is None:
            raise ValueError("texts are joined by their tokens, and this data has none; take a "
                             "model that reads them, such as vsepp, and tokens='words' or 'glove'")
        images, rows, counts = np.unique(self.ids.owners, return_inverse=True, return_counts=True)
        before = np.tril(rows[:, None] == rows, -1)  # (T, T), which others come before a text
        width, device = self.tokens.shape[1], self.tokens.device
        ids, row, earlier = (torch.from_numpy(part).to(device) for part in (images, rows, before))
        places = (earlier * self.lengths).sum(dim=1, keepdim=True) + torch.arange(
            width, device=device)
        tokens = self.tokens.new_zeros(len(images), int(counts.max()) * width)
        tokens.index_put_((row[:, None], places), self.tokens, accumulate=True)  # padding adds 0
        lengths = self.lengths.new_zeros(len(images)).index_add(0, row, self.lengths)
        return Batch(ids, ids, ids, tokens=tokens, lengths=lengths)


@dataclass(frozen=True)
class InputSpec:
    """What a model is built for: sizes of its inputs, and word vectors where they are given."""

    region_size: int = 0  # D of regions, 0 = none, or none yet: a network is fine-tuned
    vocabulary: int = 0  # number of token ids, id 0 = padding; 0 = no tokens
    sentence_size: int = 0  # D of sentence vectors, 0 = none
    word_vectors: Tensor | None = None  # (vocabulary, D_w), initial word embeddings
    pixels: str = ""  # the image network to fine-tune, such as "lite0"; "" = features are given
    stages: str = ""  # "lite0:stage7": regions are the maps that go into this stage of a network,
    # which is fine-tuned from there on


class LabelVectors(Protocol):
    """T texts as a label source compares them: vectors (T, D), n-gram vectors, or the texts."""

    def __len__(self) -> int: ...

    def __getitem__(self, texts: np.ndarray) -> "LabelVectors": ...


class Pixels(Protocol):
    """The pictures of a split, (N, 3, H, W) uint8 for images (N,)."""

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Decode pictures."""
        ...

    def head(self, images: int) -> "Pixels":
        """Take the first pictures only."""
        ...


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """Pairs of a split that people have judged: pair n is image images[n] with text texts[n]."""

    images: np.ndarray  # (N,) int64, index into the split's images
    texts: np.ndarray  # (N,) int64, index into the split's texts
    judgements: Judgements  # of these N pairs


@dataclass(eq=False)
class EncodedSplit:
    """One split as arrays, ready to be cut into batches.

    Of V views of each picture (flips, crops) training draws one per picture and step; evaluation
    takes the mean over views where R = 1, else the first view. Models never see label_vectors.
    """

    name: str
    image_of_text: np.ndarray  # (T,) int64
    regions: np.ndarray  # (I, V, R, D) float16 or float32, often a memory map; D = 0 with pixels
    region_mask: np.ndarray | None = None  # (I, R) bool, None = all true
    tokens: list[np.ndarray] | None = None  # T arrays of int64 ids, no padding
    sentences: np.ndarray | None = None  # (T, D) float32
    relevance: np.ndarray | None = None  # (I, T) exact graded relevance, where the data has it
    # by what made them: "minilm" -> (T, 384) float32 unit vectors, "cider" -> n-gram vectors
    label_vectors: Mapping[str, LabelVectors] = field(default_factory=dict)
    judgements: Mapping[str, JudgedPairs] = field(default_factory=dict)  # by collection
    pixels: Pixels | None = None  # the pictures, where a network is fine-tuned
    image_classes: np.ndarray | None = None  # (I,) int64, where the data has classes; for metrics
    ids: tuple[Sequence[str], Sequence[str]] = ((), ())  # of images and texts; for metrics

    @property
    def n_images(self) -> int:
        """I."""
        return len(self.regions)

    @property
    def n_texts(self) -> int:
        """T."""
        return len(self.image_of_text)

    def head(self, images: int) -> "EncodedSplit":
        """Take the first images of the split, with their texts; judgements are left behind."""
        texts = np.flatnonzero(self.image_of_text < images)
        return EncodedSplit(
            self.name, self.image_of_text[texts], self.regions[:images],
            None if self.region_mask is None else self.region_mask[:images],
            self.tokens and [self.tokens[text] for text in texts],
            None if self.sentences is None else self.sentences[texts],
            None if self.relevance is None else self.relevance[:images, texts],
            {name: vectors[texts] for name, vectors in self.label_vectors.items()},
            pixels=self.pixels and self.pixels.head(images),
            image_classes=None if self.image_classes is None else self.image_classes[:images])

    def image_batch(self, images: np.ndarray, views: np.ndarray | None = None) -> Batch:
        """Cut a batch of images and no texts; `views` (I,) picks one view per image."""
        return self._batch(images, np.zeros(0, np.int64), views)

    def text_batch(self, texts: np.ndarray) -> Batch:
        """Cut a batch of texts and no images."""
        return self._batch(np.zeros(0, np.int64), texts, None)

    def pair_batch(self, texts: np.ndarray, views: np.ndarray | None = None) -> Batch:
        """Cut a training batch: texts, each with its own image (images may repeat)."""
        return self._batch(self.image_of_text[texts], texts, views)

    def pairs_on(self, device: torch.device) -> Callable[[np.ndarray, np.ndarray], Batch]:
        """Return `pair_batch` onto a device, to the same bits.

        Regions of all views and sentences that fill less than a quarter of its free memory are
        copied there now, once. Else, on a CPU, and where torch may not tell it, they come by the
        batch.
        """
        features = [part for part in (self.regions, self.sentences) if part is not None]
        card = torch.get_device_module(device)
        told = device.type not in ("cpu", "xpu") and "mem_get_info" in dir(card)  # Intel's may fail
        if not told or 4 * sum(part.nbytes for part in features) >= card.mem_get_info(device)[0]:
            return lambda texts, views: self.pair_batch(texts, views).to(device)
        regions, *sentences = (_copied(part, device) for part in features)
        rest = replace(self, regions=np.empty((*regions.shape[:3], 0), np.float32), sentences=None)
        def cut(texts: np.ndarray, views: np.ndarray) -> Batch:
            batch = rest.pair_batch(texts, views).to(device)
            there = regions[batch.image_ids, torch.from_numpy(views).to(device)].float()
            vectors = sentences[0][batch.text_ids].float() if sentences else None
            return replace(batch, regions=there, sentences=vectors)
        return cut

    def pairs(self) -> "Pairs":
        """Give the pairs of the split to a `torch.utils.data.DataLoader`."""
        return Pairs(self)

    def _batch(self, images: np.ndarray, texts: np.ndarray, views: np.ndarray | None) -> Batch:
        tokens = lengths = sentences = pixels = None
        if self.tokens is not None:
            tokens, lengths = pad([self.tokens[t] for t in texts])
        if self.sentences is not None:
            sentences = torch.from_numpy(np.asarray(rows_of(self.sentences, texts), np.float32))
        if self.pixels is not None and len(images):
            pixels = torch.from_numpy(self.pixels(images))
        regions = torch.from_numpy(evaluation_view(self.regions, images) if views is None
                                   else as_float32(rows_of(self.regions, images, views)))
        mask = (torch.ones(regions.shape[:2], dtype=torch.bool) if self.region_mask is None
                else torch.from_numpy(self.region_mask[images]))
        ids = (torch.from_numpy(np.asarray(numbers, np.int64))
               for numbers in (images, texts, self.image_of_text[texts]))
        return Batch(*ids, regions, mask, tokens, lengths, sentences, pixels)


class Pairs(Dataset[int]):
    """The pairs of a split, each text with its image, as numbers of texts.

    Use `DataLoader(pairs, batch_size=64, shuffle=True, collate_fn=pairs.collate)`. Of several views
    of an image torch's generator draws one.
    """

    def __init__(self, split: EncodedSplit) -> None:
        self.split = split

    def __len__(self) -> int:
        return self.split.n_texts

    def __getitem__(self, text: int) -> int:
        return range(len(self))[text]  # an IndexError past the end, which ends a plain loop

    def collate(self, texts: Sequence[int]) -> Batch:
        """Cut the batch of these texts and their images: row i is the image of text i."""
        views = torch.randint(self.split.regions.shape[1], (len(texts),))
        return self.split.pair_batch(np.asarray(texts, np.int64), views.numpy())


def evaluation_view(regions: np.ndarray, images: np.ndarray) -> np.ndarray:
    """Take some images of regions (N, V, R, D) as evaluation does: (I, R, D) float32."""
    if regions.shape[2] == 1:
        return as_float32(rows_of(regions, images)).mean(axis=1)
    return as_float32(rows_of(regions, images, 0))


def rows_of(array: np.ndarray, rows: np.ndarray, views: np.ndarray | int | None = None
            ) -> np.ndarray:
    """Take array[rows], or array[rows, views].

    Of a file that is mapped they are read, which is faster than page by page, and none stays. If
    another file has its name by now, or none, they are those of the file that was mapped.
    """
    index = (rows,) if views is None else (rows, views)
    if not (isinstance(array, np.memmap) and len(rows)
            and array[(0,) * len(index)].flags.c_contiguous and Path(array.filename).is_file()):
        return array[index]
    whole = array
    while isinstance(whole.base, np.memmap):
        whole = whole.base
    places = whole.offset + array.ctypes.data - whole.ctypes.data + sum(
        np.multiply(at, step) for at, step in zip(index, array.strides, strict=False))
    found = np.empty((len(rows), *array.shape[len(index):]), array.dtype)
    with open(array.filename, "rb", buffering=0) as file:
        for place, row in zip(places.tolist(), found, strict=True):
            file.seek(place)
            if file.readinto(row) != row.nbytes:
                raise OSError(f"{array.filename} ends too soon: it was cut while it was read")
    first = array[tuple(at if isinstance(at, int) else at[0] for at in index)]
    return found if np.array_equal(found[0], first, equal_nan=True) else array[index]


def _copied(array: np.ndarray, device: torch.device) -> Tensor:
    kind = torch.float16 if array.dtype.itemsize == 2 else torch.float32
    there = torch.empty(array.shape, dtype=kind, device=device)
    for block, rows in zip(there.split(256), torch.arange(len(array)).split(256), strict=True):
        block.copy_(torch.from_numpy(as_float32(rows_of(array, rows.numpy()))))
    return there


def as_float32(values: np.ndarray) -> np.ndarray:
    """Widen to float32. torch does it ten times as fast as NumPy, to the same bits."""
    if values.dtype != np.float16:  # not in this machine's byte order either: torch refuses that
        return np.asarray(values, np.float32)
    return torch.from_numpy(values).float().numpy()


def pad(sequences: list[np.ndarray]) -> tuple[Tensor, Tensor]:
    """Pad token ids with 0 to the longest: (T, W), and lengths (T,)."""
    lengths = torch.tensor([len(s) for s in sequences], dtype=torch.int64)
    if not lengths.all():
        raise ValueError(f"text {int(lengths.argmin())} of {len(sequences)} has no tokens; give "
                         "every text at least one, such as the id of an unknown word")
    widest = int(lengths.max()) if len(sequences) else 1  # recurrent nets refuse 0
    tokens = torch.zeros(len(sequences), widest, dtype=torch.int64)
    for row, sequence in zip(tokens, sequences, strict=True):
        row[: len(sequence)] = torch.from_numpy(np.asarray(sequence, np.int64))
    return tokens, lengths
