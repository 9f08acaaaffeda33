"""The first results of every query: what a reader sees, hubness counts and re-rankers re-order."""

import numpy as np

from itr_study.checks import check_count
from itr_study.metrics.graded import on_host
from itr_study.metrics.ranks import refuse_nan
from itr_study.metrics.scores import AnyScores, Scores
from itr_study.metrics.truth import DIRECTIONS

PAIRS = 500_000  # at a time: a copy of them stays near the core


def first(scores: AnyScores, k: int) -> dict[str, np.ndarray]:
    """The k results of highest score of every query, best first: {"i2t": (I, k), "t2i": (T, k)}.

    int64: texts for an image query, images for a text query; all of a gallery that has no more
    than k. Of equal scores the lower index comes first.

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
    """`first` of one direction, and the scores of these results (Q, k).

    Args, Raises: as `first`.
    """
    check_count("k", k)
    scores = Scores.of(scores)
    if 0 in scores.shape:
        raise ValueError(f"scores must be (n_images, n_texts), at least 1 x 1; got {scores.shape}")
    n = scores.shape[1 - DIRECTIONS.index(direction)]
    parts = []
    for queries, values in scores.blocks(direction, max(1, PAIRS // n)):
        values = on_host(values)
        if np.isnan(values.max()):
            by_image = direction == "i2t"
            refuse_nan(values if by_image else values.T,
                       *((queries.start, 0) if by_image else (0, queries.start)))
        places = best_of_rows(values, min(k, n))
        parts.append((places, np.take_along_axis(values, places, 1)))
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def best_of_rows(values: np.ndarray, k: int) -> np.ndarray:
    """(q, k) places of the k highest of each row of (q, n), best first, ties by lower index."""
    q, n = values.shape
    least = np.partition(values, n - k, axis=1)[:, n - k]
    hits = np.flatnonzero(values >= least[:, None])  # k of each row, and what ties with the last
    row, place = np.divmod(hits, n)
    order = np.lexsort((place, -values[row, place], row))
    starts = np.searchsorted(row, np.arange(q))
    return place[order][starts[:, None] + np.arange(k)]
