"""A split as a model scored it: what is measured, and what of it is kept."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from torch import Tensor

from itr_study.data.batches import EncodedSplit
from itr_study.metrics.scores import AnyScores
from itr_study.rerank import Bank

Heads = Callable[[], Iterator[tuple[int, Tensor]]]


class Scored(NamedTuple):
    """A split, the scores (I, T) of its images and texts, and, where it is to be re-ranked, those
    that the same model gives queries of another split.

    heads: of a model with several vectors of an image, the scores of each of them with all texts,
    image by image: gives (first image, (i, K, T)) pieces."""

    scores: AnyScores
    split: EncodedSplit
    bank: Bank | None = None
    heads: Heads | None = None
