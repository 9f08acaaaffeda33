"""The batch that every model takes, and the arrays it is cut from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
        """Whether row i is the image of text i."""
        return np.array_equal(self.images, self.owners)


@dataclass(frozen=True)
class Batch:
    """I images and T texts. In training B sampled pairs: I = T = B, row i is the image of text i.

    regions (I, R, D) float32, region_mask (I, R) bool; tokens (T, W) int64 padded with 0,
    lengths (T,) int64; sentences (T, D) float32. Absent parts are None. image_ids (I,) and
    text_images (T,) int64 are comparable: text j matches image i iff text_images[j] ==
    image_ids[i]. text_ids (T,) int64. pixels (I, 3, H, W) only where a CNN is fine-tuned.
    host: the ids as the host knew them, and the tensors they belong to, of a batch that was moved.
    """

    image_ids: Tensor
    text_ids: Tensor
    text_images: Tensor
    regions: Tensor | None = None
    region_mask: Tensor | None = None
    tokens: Tensor | None = None
    lengths: Tensor | None = None
    sentences: Tensor | None = None
    pixels: Tensor | None = None
    host: tuple[Ids, tuple[Tensor, ...]] | None = None

    @property
    def ids(self) -> Ids:
        """The ids as the host knew them before the batch was moved: to read them back would stop
        the device. Where somebody has put in other tensors since, those are read."""
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
        moved = {k: v.to(device) for k, v in vars(self).items() if isinstance(v, Tensor)}
        owners = (moved["image_ids"], moved["text_ids"], moved["text_images"])
        return replace(self, host=(self.ids, owners), **moved)


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
    """T texts in the form in which a label source compares them: vectors (T, D), n-gram vectors,
    or the texts themselves; anything with a row for each text."""

    def __len__(self) -> int: ...

    def __getitem__(self, texts: np.ndarray) -> "LabelVectors": ...


class Pixels(Protocol):
    """The pictures of a split, (N, 3, H, W) uint8 for images (N,)."""

    def __call__(self, images: np.ndarray) -> np.ndarray: ...

    def head(self, images: int) -> "Pixels": ...


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """Pairs of a split that people have judged: pair n is image images[n] with text texts[n]."""

    images: np.ndarray  # (N,) int64, index into the split's images
    texts: np.ndarray  # (N,) int64, index into the split's texts
    judgements: Judgements  # of these N pairs


@dataclass(eq=False)
class EncodedSplit:
    """One split as arrays, ready to be cut into batches.

    regions (I, V, R, D): V views of each picture (flips, crops). Training draws one view per
    picture and step; evaluation takes the mean over views where R = 1, else the first view.
    label_vectors: the texts as label sources compare them, by the name of what made them
    ("minilm" -> (T, 384) float32 unit vectors, "cider" -> n-gram vectors); models never see them.
    judgements: what people said of pairs, by the name of the collection. pixels: the pictures
    themselves, where a network is fine-tuned; regions then have D = 0. image_classes: equal for
    images of one class, where the data names classes; only metrics read it.
    """

    name: str
    image_of_text: np.ndarray  # (T,) int64
    regions: np.ndarray  # (I, V, R, D) float16 or float32, often a memory map
    region_mask: np.ndarray | None = None  # (I, R) bool, None = all true
    tokens: list[np.ndarray] | None = None  # T arrays of int64 ids, no padding
    sentences: np.ndarray | None = None  # (T, D) float32
    relevance: np.ndarray | None = None  # (I, T) exact graded relevance, where the data has it
    label_vectors: Mapping[str, LabelVectors] = field(default_factory=dict)
    judgements: Mapping[str, JudgedPairs] = field(default_factory=dict)
    pixels: Pixels | None = None
    image_classes: np.ndarray | None = None  # (I,) int64

    @property
    def n_images(self) -> int:
        return len(self.regions)

    @property
    def n_texts(self) -> int:
        return len(self.image_of_text)

    def head(self, images: int) -> "EncodedSplit":
        """The first images of the split, with their texts; judgements are left behind."""
        texts = np.flatnonzero(self.image_of_text < images)
        return EncodedSplit(
            self.name, self.image_of_text[texts], self.regions[:images],
            None if self.region_mask is None else self.region_mask[:images],
            None if self.tokens is None else [self.tokens[text] for text in texts],
            None if self.sentences is None else self.sentences[texts],
            None if self.relevance is None else self.relevance[:images, texts],
            {name: vectors[texts] for name, vectors in self.label_vectors.items()},
            pixels=None if self.pixels is None else self.pixels.head(images),
            image_classes=None if self.image_classes is None else self.image_classes[:images])

    def image_batch(self, images: np.ndarray, views: np.ndarray | None = None) -> Batch:
        """Batch of the given images and no texts; `views` (I,) picks one view per image."""
        return self._batch(images, np.zeros(0, np.int64), views)

    def text_batch(self, texts: np.ndarray) -> Batch:
        """Batch of the given texts and no images."""
        return self._batch(np.zeros(0, np.int64), texts, None)

    def pair_batch(self, texts: np.ndarray, views: np.ndarray | None = None) -> Batch:
        """Training batch: the given texts, each with its own image (images may repeat)."""
        return self._batch(self.image_of_text[texts], texts, views)

    def pairs(self) -> "Pairs":
        """Give the pairs of the split to a `torch.utils.data.DataLoader`."""
        return Pairs(self)

    def _batch(self, images: np.ndarray, texts: np.ndarray, views: np.ndarray | None) -> Batch:
        tokens = lengths = sentences = None
        if self.tokens is not None:
            tokens, lengths = pad([self.tokens[t] for t in texts])
        if self.sentences is not None:
            sentences = torch.from_numpy(np.asarray(self.sentences[texts], np.float32))
        regions = torch.from_numpy(self._regions(images, views))
        pixels = None
        if self.pixels is not None and len(images):
            pixels = torch.from_numpy(self.pixels(images))
        mask = torch.ones(regions.shape[:2], dtype=torch.bool)
        if self.region_mask is not None:
            mask = torch.from_numpy(self.region_mask[images])
        return Batch(
            image_ids=torch.from_numpy(np.asarray(images, np.int64)),
            text_ids=torch.from_numpy(np.asarray(texts, np.int64)),
            text_images=torch.from_numpy(np.asarray(self.image_of_text[texts], np.int64)),
            regions=regions,
            region_mask=mask,
            tokens=tokens,
            lengths=lengths,
            sentences=sentences,
            pixels=pixels,
        )

    def _regions(self, images: np.ndarray, views: np.ndarray | None) -> np.ndarray:
        """(I, R, D) float32 of the chosen views; without a choice as evaluation takes them."""
        if views is not None:
            return as_float32(self.regions[images, views])
        return evaluation_view(self.regions, images)


class Pairs(Dataset[int]):
    """The pairs of a split, each text with its image; `collate` makes a Batch of some.

    An item is the number of a text, so that a batch is cut from the arrays at once:
    `DataLoader(pairs, batch_size=64, shuffle=True, collate_fn=pairs.collate)`.

    Args:
        split: whose pairs these are. Of several views of an image one is drawn at random, by
            torch's generator.
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
    """(I, R, D) float32 of some images of regions (N, V, R, D): the mean over views where R = 1,
    else the first view."""
    if regions.shape[2] == 1:
        return as_float32(regions[images]).mean(axis=1)
    return as_float32(regions[images, 0])


def as_float32(values: np.ndarray) -> np.ndarray:
    """Values in float32. torch widens float16 ten times as fast as NumPy, to the same bits: with a
    grid of regions that is a fifth of a training step."""
    if values.dtype != np.float16:  # not in this machine's byte order either: torch refuses that
        return np.asarray(values, np.float32)
    return torch.from_numpy(values).float().numpy()


def pad(sequences: list[np.ndarray]) -> tuple[Tensor, Tensor]:
    """(T, W) token ids padded with 0 to the longest, and lengths (T,); (0, 1) of no texts, since
    recurrent nets refuse W = 0."""
    lengths = torch.tensor([len(s) for s in sequences], dtype=torch.int64)
    if not lengths.all():
        raise ValueError(f"text {int(lengths.argmin())} of {len(sequences)} has no tokens; give "
                         "every text at least one, such as the id of an unknown word")
    widest = int(lengths.max()) if len(sequences) else 1
    tokens = torch.zeros(len(sequences), widest, dtype=torch.int64)
    for row, sequence in zip(tokens, sequences, strict=True):
        row[: len(sequence)] = torch.from_numpy(np.asarray(sequence, np.int64))
    return tokens, lengths
