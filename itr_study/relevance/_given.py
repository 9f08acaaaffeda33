"""What sources share whose vectors the user brings in files: opened once, checked, cosines."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from itr_study.checks import check_choice
from itr_study.data.base import DataError
from itr_study.data.batches import Batch, EncodedSplit
from itr_study.data.feature_checks import open_features
from itr_study.relevance._captions import finish
from itr_study.relevance._vectors import SCALES, check_vectors, cosines, rescale


class Sides(NamedTuple):
    """Vectors that are compared: images (I, D); others (N, D), `row_of` (T,) that of each text."""

    images: np.ndarray
    others: np.ndarray
    row_of: np.ndarray


class GivenSource(ABC):
    """Relevance as the cosine of vectors in `<folder>/<split>_<what>.npy`, memory-mapped."""

    name: str
    version: int
    needs: tuple[str, ...] = ()

    def __init__(self, folder: str = "", scale: str = "unit") -> None:
        check_choice("scale", scale, SCALES)
        if not folder:
            raise ValueError(f'labels "{self.name}" read vectors that you bring: give folder=..., '
                             f"which holds {self.files()} of every split")
        self.folder, self.scale = str(folder), scale
        self._open: WeakKeyDictionary[EncodedSplit, Sides] = WeakKeyDictionary()

    @classmethod
    @abstractmethod
    def files(cls) -> str:
        """Names of the files of a split, for messages."""

    @abstractmethod
    def sides(self, split: EncodedSplit) -> Sides:
        """The two sides that are compared, opened and checked."""

    def __call__(self, batch: Batch, split: EncodedSplit) -> Tensor:
        """(I, T) float32 on the batch's device: exactly 1 for matches, at most 1 - 1e-4 else."""
        images, texts, owners = (x.cpu().numpy() for x in (batch.image_ids, batch.text_ids,
                                                           batch.text_images))
        values = self._values(split, images, texts, owners)
        return torch.from_numpy(values).to(batch.image_ids.device)

    def block(self, split: EncodedSplit, images: slice) -> np.ndarray:
        """(i, T) float32 relevance of every text of a split to a slice of its images."""
        rows = np.arange(split.n_images)[images]
        return self._values(split, rows, np.arange(split.n_texts), split.image_of_text)

    def _values(self, split: EncodedSplit, images: np.ndarray, texts: np.ndarray,
                owners: np.ndarray) -> np.ndarray:
        if split not in self._open:
            self._open[split] = self.sides(split)
        sides = self._open[split]
        cosine = cosines(sides.images[images], sides.others[sides.row_of[texts]])
        return finish(rescale(cosine, self.scale), images[:, None] == owners)

    def read(self, split: EncodedSplit, what: str, rows: int) -> np.ndarray:
        """Memory map (rows, D) of one file, finite throughout."""
        path = Path(self.folder).expanduser() / f"{split.name}_{what}.npy"
        if not path.is_file():
            raise DataError(f'labels "{self.name}": there is no {path}; a split needs '
                            f"{self.files()}, a row of each image or text in the split's order")
        vectors = open_features(path)
        check_vectors(str(path), vectors, rows)
        return vectors
