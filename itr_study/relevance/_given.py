"""What sources share whose vectors the user brings in files: opened once, checked, cosines."""

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
    """Vectors that are compared: images (I, D); others (N, D), `row_of` (T,) that of each text."""

    images: np.ndarray
    others: np.ndarray
    row_of: np.ndarray


class GivenSource(ABC):
    """Relevance as the cosine of vectors in `<folder>/<split>_<what>.npy`, memory-mapped."""

    name: str
    version: int
    vectors_needed: tuple[str, ...] = ()

    def __init__(self, folder: str = "", scale: str = "unit") -> None:
        check_choice("scale", scale, SCALES)
        if not folder:
            raise ValueError(f'labels "{self.name}" read vectors that you bring: give folder=..., '
                             f"which holds {self.files()} of every split")
        self.folder, self.scale = str(folder), scale
        self._open: WeakKeyDictionary[EncodedSplit, tuple[Sides, Arrays]] = WeakKeyDictionary()

    @classmethod
    @abstractmethod
    def files(cls) -> str:
        """Names of the files of a split, for messages."""

    @abstractmethod
    def sides(self, split: EncodedSplit) -> Sides:
        """The two sides that are compared, opened and checked."""

    def __call__(self, batch: Batch, split: EncodedSplit) -> Tensor:
        """(I, T) float32 on the batch's device: exactly 1 for matches, at most 1 - 1e-4 else."""
        images, others, row_of = self._opened(split)[1].on(batch.image_ids.device)
        cosine = tensor_cosines(images[batch.image_ids], others[row_of[batch.text_ids]])
        return finish_batch(rescale(cosine, self.scale), batch)

    def block(self, split: EncodedSplit, images: slice) -> np.ndarray:
        """(i, T) float32 relevance of every text of a split to a slice of its images."""
        rows, sides = np.arange(split.n_images)[images], self._opened(split)[0]
        cosine = cosines(sides.images[rows], sides.others[sides.row_of])
        return finish(rescale(cosine, self.scale), rows[:, None] == split.image_of_text)

    def _opened(self, split: EncodedSplit) -> tuple[Sides, Arrays]:
        if split not in self._open:
            sides = self.sides(split)
            self._open[split] = sides, Arrays(*sides)
        return self._open[split]

    def read(self, split: EncodedSplit, what: str, rows: int) -> np.ndarray:
        """Memory map (rows, D) of one file, finite throughout."""
        path = Path(self.folder).expanduser() / f"{split.name}_{what}.npy"
        if not path.is_file():
            raise DataError(f'labels "{self.name}": there is no {path}; a split needs '
                            f"{self.files()}, a row of each image or text in the split's order")
        vectors = open_features(path)
        check_vectors(str(path), vectors, rows)
        return vectors
