"""A split as a model scored it: what is measured, and what of it is kept."""

from typing import NamedTuple

from itr_study.data.batches import EncodedSplit
from itr_study.metrics.scores import AnyScores
from itr_study.rerank import Bank


class Scored(NamedTuple):
    """A split, the scores (I, T) of its images and texts, and, for what re-ranks a query without
    the other queries of the split, the scores that the same model gives queries of another one."""

    scores: AnyScores
    split: EncodedSplit
    bank: Bank | None = None
