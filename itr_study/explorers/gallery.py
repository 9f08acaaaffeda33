"""Whether models search one gallery, and the largest of some numbers."""

from collections.abc import Mapping

import numpy as np

from itr_study.evaluation.search import Searcher
from itr_study.explorers.heard import quoted


def largest(weights: np.ndarray, most: int) -> list[int]:
    """The places of the largest weights (R,), the first of equals first.

    Example:
        >>> largest(np.array([0.2, 0.5, 0.2, 0.1]), 3)
        [1, 0, 2]
    """
    return np.argsort(-weights, kind="stable")[:most].tolist()


def check_gallery(searchers: Mapping[str, Searcher]) -> None:
    """Raise ValueError unless these are searchers over one split."""
    if not isinstance(searchers, Mapping) or not searchers:
        raise ValueError("Looking takes models by how they are called, such as {'mine': searcher}; "
                         f"got {quoted(searchers)}")
    splits = [(one.split.image_ids, one.split.texts) for one in searchers.values()]
    if any(split != splits[0] for split in splits):
        raise ValueError("models are looked at over the same pictures and texts; make all "
                         "searchers of one data set and split; got several of "
                         f"{', '.join(searchers)}")
