"""A split as a model scored it: what is measured, and what of it is kept."""

from typing import NamedTuple

from itr_study.data.batches import EncodedSplit
from itr_study.metrics.scores import AnyScores
from itr_study.rerank import Bank


class Scored(NamedTuple):
    """A split, the scores (I, T) of its images and texts, and, where it is to be re-ranked, those
    that the same model gives queries of another split."""

    scores: AnyScores
    split: EncodedSplit
    bank: Bank | None = None
