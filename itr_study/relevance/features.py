"""Cosines of vectors that the user brings in files; no model is imported here."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from torch import Tensor

from itr_study.checks import check_choice
from itr_study.data.base import DataError
from itr_study.data.batches import Batch, EncodedSplit
from itr_study.data.precomputed import open_features
from itr_study.relevance._captions import (
    SCALES,
    Arrays,
    check_vectors,
    cosines,
    finish,
    finish_batch,
    rescale,
    tensor_cosines,
)


class Sides(NamedTuple):
    """Vectors to compare: images (I, D) and others (N, D); `row_of` (T,) is each text's row."""

    images: np.ndarray
    others: np.ndarray
    row_of: np.ndarray


class GivenSource(ABC):
    """Relevance as the cosine of vectors in `<folder>/<split>_<what>.npy`, memory-mapped.

    Args:
        folder: of the files, rows in the order of the split.
        scale: "unit" gives (1 + cosine) / 2, "cosine" the cosine.

    Raises: ValueError without a folder, for another scale, or vectors of other data; DataError for
        files that are missing or cannot be read.
    Differs: matches are exactly 1, all others at most 1 - 1e-4.
    """

    name: str
    version: int
    reads: tuple[str, ...]  # what the files of a split hold
    vectors_needed: tuple[str, ...] = ()

    def __init__(self, folder: str = "", scale: str = "unit") -> None:
        check_choice("scale", scale, SCALES)
        self.files = " and ".join(f"<split>_{what}.npy" for what in self.reads)
        if not folder:
            raise ValueError(f'labels "{self.name}" read vectors that you bring: give folder=..., '
                             f"which holds {self.files} of every split")
        self.folder, self.scale = str(folder), scale
        self._open: WeakKeyDictionary[EncodedSplit, tuple[Sides, Arrays]] = WeakKeyDictionary()

    @abstractmethod
    def sides(self, split: EncodedSplit) -> Sides:
        """Return the two sides to compare, opened and checked."""

    def __call__(self, batch: Batch, split: EncodedSplit) -> Tensor:
        """Return (I, T) float32: exactly 1 for matches, at most 1 - 1e-4 else."""
        images, others, row_of = self._opened(split)[1].on(batch.image_ids.device)
        cosine = tensor_cosines(images[batch.image_ids], others[row_of[batch.text_ids]])
        return finish_batch(rescale(cosine, self.scale), batch)

    def block(self, split: EncodedSplit, images: slice) -> np.ndarray:
        """Return (i, T) float32 of every text of a split and a slice of its images."""
        rows, sides = np.arange(split.n_images)[images], self._opened(split)[0]
        cosine = cosines(sides.images[rows], sides.others[sides.row_of])
        return finish(rescale(cosine, self.scale), rows[:, None] == split.image_of_text)

    def _opened(self, split: EncodedSplit) -> tuple[Sides, Arrays]:
        if split not in self._open:
            sides = self.sides(split)
            self._open[split] = sides, Arrays(*sides)
        return self._open[split]

    def read(self, split: EncodedSplit, what: str, rows: int) -> np.ndarray:
        """Map one file (rows, D), finite throughout, into memory."""
        path = Path(self.folder).expanduser() / f"{split.name}_{what}.npy"
        if not path.is_file():
            raise DataError(f'labels "{self.name}": there is no {path}; a split needs '
                            f"{self.files}, a row of each image or text in the split's order")
        vectors = open_features(path)
        check_vectors(str(path), vectors, rows)
        return vectors


class Clip(GivenSource):
    """Relevance of text j to image i: cosine of their given vectors, such as those of CLIP.

    The folder has `<split>_images.npy` (I, D) and `<split>_texts.npy` (T, D).

    Source: Hessel et al., CLIPScore, EMNLP 2021; bcls, Table II.
    Differs: CLIPScore is 2.5 max(cosine, 0), the same order for positive cosines.
    """

    name, version, reads = "clip", 1, ("images", "texts")

    def sides(self, split: EncodedSplit) -> Sides:
        """Return images and texts."""
        images = self.read(split, "images", split.n_images)
        texts = self.read(split, "texts", split.n_texts)
        if images.shape[1] != texts.shape[1]:
            raise DataError(f"{self.folder}: vectors of images and texts of {split.name!r} must "
                            f"be equally wide, got {images.shape[1]} and {texts.shape[1]}")
        return Sides(images, texts, np.arange(split.n_texts))


class Features(GivenSource):
    """Relevance of text j to image i: cosine of given vectors of image i and of j's own image.

    The folder has `<split>_images.npy` (I, D).

    Source: bcls, Table II, compares visual features among its label sources.
    """

    name, version, reads = "features", 1, ("images",)

    def sides(self, split: EncodedSplit) -> Sides:
        """Return images and images."""
        images = self.read(split, "images", split.n_images)
        return Sides(images, images, split.image_of_text)
