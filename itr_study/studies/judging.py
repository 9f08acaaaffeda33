"""Whom a reader is held against in notebook 10: label sources, and losses that others trained."""

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pandas as pd

from itr_study.data import DATASETS
from itr_study.data.batches import EncodedSplit
from itr_study.label_quality.agreement import label_sources
from itr_study.plots.names import name_of
from itr_study.studies.arms import ArmRun
from itr_study.studies.bcls import compared_arms
from itr_study.studies.profiles import choose
from itr_study.studies.results import judged_of

EXPERTS = "expert"  # the collection of judgements whose pairs are rated


def label_scores(split: EncodedSplit,
                 names: Sequence[str] = ("sentence/max",)) -> dict[str, np.ndarray]:
    """How relevant label sources call every text for every image, (I, T), by names such as
    "labels: sentence, max".

    Args:    names: as `label_sources` takes them; the split must have the vectors they compare.
    """
    return {f"labels: {name}": source.block(split, slice(None))
            for name, source in label_sources(names).items()}


def judged_arms(dataset: str, _: SimpleNamespace) -> list[ArmRun]:
    """One run of each loss that notebook 13 compares in profile `full`, whatever the profile that
    asks; none where rows keep no scores of pairs that experts judged. To be looked up
    (`Study.ended`), not trained."""
    if EXPERTS not in DATASETS[dataset].kept_judgements:
        return []
    return compared_arms(dataset, choose("13_when_to_forgive", "full", compared_seeds=1))


def loss_scores(rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """The scores (N,) that runs gave the pairs that experts judged, by the name of the loss.

    Args:    rows: of `judged_arms`.
    Raises:  ValueError as `judged_of`.
    """
    return {name_of(row["arm"]): judged_of(row, EXPERTS) for _, row in rows.iterrows()}
