"""Hubness: are some candidates among the first results of far more queries than others?"""

import numpy as np

from itr_study.metrics.first import first
from itr_study.metrics.scores import AnyScores, Scores


def hubness(scores: AnyScores, k: int = 10) -> dict[str, float]:
    """Skewness of how often each candidate is among the first k: {"i2t_hubness", "t2i_hubness"}.

    For i2t the candidates are texts, counted over all images; for t2i images, over all texts. 0
    where all are found alike often, positive where few (hubs) are found by many and most by few.

    Args:
        scores: (I, T), higher = more alike, or `Scores` of each direction.
        k: how many results count, at least 1. A gallery of no more than k has hubness 0.
    Raises: as `first`.
    Source: skewness of the k-occurrence N_k, Radovanovic, Nanopoulos and Ivanovic, JMLR 2010.
    Differs: of equal scores the lower index counts; where all counts are equal, 0, not 0 / 0.
    Example: the first texts of three images are 0, 0, 0: counts 3, 0, 0 of mean 1 and variance 2,
    third moment (8 - 1 - 1) / 3 = 2
        >>> round(hubness(np.array([[3, 1, 1], [3, 1, 1], [3, 1, 1]]), k=1)["i2t_hubness"], 4)
        0.7071
    """
    sizes = Scores.of(scores).shape
    return {f"{direction}_hubness": skewness(np.bincount(found.ravel(), minlength=size))
            for (direction, found), size in zip(first(scores, k).items(), sizes[::-1],
                                                strict=True)}


def skewness(counts: np.ndarray) -> float:
    """Third central moment over the cube of the standard deviation; 0 where all are equal."""
    off = counts - counts.mean()
    spread = np.sqrt((off ** 2).mean())
    return float((off ** 3).mean() / spread ** 3) if spread > 0 else 0.0
