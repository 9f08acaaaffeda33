"""The first results of every query: what a reader sees, hubness counts and re-rankers re-order."""

import numpy as np

from itr_study.checks import check_count
from itr_study.metrics.graded import host_blocks
from itr_study.metrics.scores import AnyScores, Scores
from itr_study.metrics.truth import DIRECTIONS

PAIRS = 500_000  # at a time: a copy of them stays near the core


def first(scores: AnyScores, k: int) -> dict[str, np.ndarray]:
    """Find the k results of highest score of every query: {"i2t": (I, k), "t2i": (T, k)} int64.

    Best first: texts for an image query, images for a text query; all of a gallery that has no
    more than k. Of equal scores the lower index comes first.

    Args:
        scores: (I, T), higher = more alike, or `Scores` of each direction; read in blocks.
        k: how many, at least 1.
    Raises: ValueError for NaN, an empty matrix, k < 1.
    Source: ours.
    Example: text 2 comes before text 1 for image 0; equal images in order of index for text 0
        >>> first(np.array([[0.1, 0.2, 0.7], [0.1, 0.9, 0.3]]), k=2)["i2t"]
        array([[2, 1],
               [1, 2]])
        >>> first(np.array([[0.1, 0.2, 0.7], [0.1, 0.9, 0.3]]), k=1)["t2i"].ravel()
        array([0, 1, 0])
    """
    return {direction: first_with_scores(scores, k, direction)[0] for direction in DIRECTIONS}


def first_with_scores(scores: AnyScores, k: int, direction: str) -> tuple[np.ndarray, np.ndarray]:
    """Find `first` of one direction, and the scores of these results, (Q, k) each."""
    check_count("k", k)
    pair = Scores.of(scores)
    if 0 in pair.shape:
        raise ValueError(f"scores must be (n_images, n_texts), at least 1 x 1; got {pair.shape}")
    n = pair.shape[1 - DIRECTIONS.index(direction)]
    parts = []
    for _, values in host_blocks(pair, direction, max(1, PAIRS // n)):
        places = best_of_rows(values, min(k, n))
        parts.append((places, np.take_along_axis(values, places, 1)))
    places, found = (np.concatenate(part) for part in zip(*parts, strict=True))
    return places, found


def best_of_rows(values: np.ndarray, k: int) -> np.ndarray:
    """Find the places (q, k) of the k highest of each row of (q, n), ties by lower index."""
    q, n = values.shape
    least = np.partition(values, n - k, axis=1)[:, n - k]
    hits = np.flatnonzero(values >= least[:, None])  # k of each row, and what ties with the last
    row, place = np.divmod(hits, n)
    order = np.lexsort((place, -values[row, place], row))
    starts = np.searchsorted(row, np.arange(q))
    return place[order][starts[:, None] + np.arange(k)]


def hubness(scores: AnyScores, k: int = 10) -> dict[str, float]:
    """Skewness of how often each candidate is among the first k: {"i2t_hubness", "t2i_hubness"}.

    For i2t the candidates are texts, counted over all images; for t2i images, over all texts. 0
    where all are found equally often, positive where few (hubs) are found by many and most by few.

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
    """Divide the third central moment by the cube of the deviation; 0 where all are equal."""
    from scipy.stats import skew  # here: slow to load

    return float(skew(counts)) if np.ptp(counts) else 0.0
