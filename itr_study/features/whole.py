"""A part of a data set takes its rows from the whole one: nothing is encoded twice."""

import functools
from collections.abc import Callable, Sequence

import numpy as np

from itr_study.data.base import RetrievalDataset
from itr_study.features.cache import Compute

Ids = Callable[[RetrievalDataset], Sequence[str]]


def from_whole(dataset: RetrievalDataset, ids: Ids,
               rows_of: Callable[[RetrievalDataset], np.ndarray]) -> Compute:
    """What takes rows [start, stop) of a part from the rows of the data set that it is a part of.

    Args:    dataset: with `part_of`; ids: what each row of a data set belongs to, in order;
             rows_of: the rows of a data set, computed where no cache holds them.
    """

    @functools.cache  # asked for when the first row is: a finished cache needs no other
    def sources() -> tuple[np.ndarray, np.ndarray]:
        place = {name: row for row, name in enumerate(ids(dataset.part_of))}
        return rows_of(dataset.part_of), np.array([place[name] for name in ids(dataset)])

    def compute(start: int, stop: int) -> np.ndarray:
        whole, places = sources()
        return whole[places[start:stop]]

    return compute


def all_images(dataset: RetrievalDataset) -> list[str]:
    """Ids of the pictures, split after split."""
    return [image for split in dataset.splits.values() for image in split.image_ids]


def all_texts(dataset: RetrievalDataset) -> list[str]:
    """Ids of the texts, split after split."""
    return [text for split in dataset.splits.values() for text in split.text_ids]
