"""NDCG: is what is relevant near the top, and the more relevant the nearer?

Where few items are relevant their ranks are counted; else every list is sorted.
"""

from functools import partial

import numpy as np

from itr_study.checks import check_choice, check_count
from itr_study.metrics.graded import RowMetric, first_of_run, joined, ordered, query_means
from itr_study.metrics.scores import AnyScores
from itr_study.metrics.truth import Truth

FEW = 32  # relevant items of a query, up to which counting is many times faster than sorting
TIES = ("worst", "paper")
LAST = np.uint32(2**32 - 1)


def ndcg(scores: AnyScores, truth: Truth, ties: str = "worst",
         at: int | None = None) -> dict[str, float]:
    """Mean NDCG of all queries in both directions: {"i2t_ndcg", "t2i_ndcg"}.

    DCG = sum of (2^r - 1) / log2(1 + rank) over the items of a list, NDCG = DCG / DCG of the ideal
    list, which is sorted by relevance r. t2i takes the columns of the same relevance.

    Args:
        scores: (I, T), higher = more alike.
        truth: its relevance in [0, 1], read as float32 (cosines: (1 + c) / 2).
        ties: "worst": of equal scores the relevant ones come last, so that a model without an
            opinion earns nothing; "paper": each has the best rank of its group (Eq. 10), so that
            constant scores rank everything first and NDCG may exceed 1.
        at: only ranks up to this count, in the ideal list too (the paper's p); None: all.
    Raises: ValueError for NaN, shapes that differ, relevance outside [0, 1], at < 1.
    Source: listwise, Eqs. 4-13.
    Differs: the ideal DCG comes from sorted relevance. Eqs. 12-13 give items of equal relevance the
        same best rank, so that a perfect list would score below 1. A query to which nothing is
        relevant has 0, as in scikit-learn.
    Example: relevance 1 and 0.5, the wrong way round: (0.4142 + 1 / 1.585) / (1 + 0.4142 / 1.585)
        >>> truth = Truth(np.array([0, 0]), graded=lambda images: np.array([[1, 0.5]])[images])
        >>> round(ndcg(np.array([[0.1, 0.2]]), truth)["i2t_ndcg"], 4)
        0.8286
    """
    return query_means(scores, truth, {"ndcg": ndcg_rows(ties, at)})


def ndcg_rows(ties: str = "worst", at: int | None = None) -> RowMetric:
    """Make `ndcg` of rows: scores and relevance (q, n) -> (q,)."""
    check_choice("ties", ties, TIES)
    if at is not None:
        check_count("at", at)
    return partial(block_ndcg, ties=ties, at=at)


def block_ndcg(scores: np.ndarray, relevance: np.ndarray, ties: str, at: int | None) -> np.ndarray:
    """Compute NDCG (q,) of rows of scores and relevance (q, n)."""
    discount = 1 / np.log2(np.arange(2, scores.shape[1] + 2))  # of each rank from 1
    discount[scores.shape[1] if at is None else at:] = 0
    few = int((relevance > 0).sum(axis=1).max()) <= FEW
    reached = (counted_dcg if few else sorted_dcg)(scores, relevance, discount, ties)
    ideal = (counted_ideal if few else sorted_ideal)(relevance, discount)
    return np.divide(reached, ideal, out=np.zeros(len(ideal)), where=ideal > 0)


def relevant(relevance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """List rows and columns of what is relevant in (q, n): `numpy.nonzero`, many times faster."""
    return np.divmod(np.flatnonzero(relevance > 0), relevance.shape[1])


def sorted_ideal(relevance: np.ndarray, discount: np.ndarray) -> np.ndarray:
    """Compute DCG (q,) of rows of relevance (q, n) in falling order."""
    return gain(np.sort(relevance, axis=1)) @ discount[::-1]


def counted_ideal(relevance: np.ndarray, discount: np.ndarray) -> np.ndarray:
    """Compute `sorted_ideal` by sorting only what is relevant."""
    rows, columns = relevant(relevance)
    grades = relevance[rows, columns]
    grades = grades[np.lexsort((-grades, rows))]
    places = np.arange(len(rows)) - np.searchsorted(rows, rows)
    return np.bincount(rows, gain(grades) * discount[places], len(relevance))


def sorted_dcg(scores: np.ndarray, relevance: np.ndarray, discount: np.ndarray,
               ties: str) -> np.ndarray:
    """Compute DCG (q,) of rows of scores and relevance (q, n).

    One sort of whole numbers puts the items in order of falling score and, among equal scores, of
    rising relevance: the score is in their upper half, the relevance itself in the lower.
    """
    keys = joined(LAST - ordered(scores), (relevance + np.float32(0)).view(np.uint32))
    keys.sort(axis=1)
    gains = gain(keys.astype(np.uint32).view(np.float32))
    if ties == "worst":
        return gains @ discount
    keys >>= np.uint64(32)
    ranks = first_of_run(keys[:, 1:] != keys[:, :-1])
    return np.einsum("qn,qn->q", gains, discount[ranks])


def counted_dcg(scores: np.ndarray, relevance: np.ndarray, discount: np.ndarray,
                ties: str) -> np.ndarray:
    """Compute `sorted_dcg` by counting for each relevant item how many score at least as high."""
    rows, columns = relevant(relevance)
    own, grades = scores[rows, columns], relevance[rows, columns]
    order = np.lexsort((grades, -own, rows))
    rows, own, grades = rows[order], own[order], grades[order]
    beats = np.greater_equal if ties == "worst" else np.greater
    above = np.array([np.count_nonzero(beats(scores[row], value))
                      for row, value in zip(rows, own, strict=True)], np.int64)
    if ties == "worst":  # of relevant items that tie, those behind do not count
        new = (rows[1:] != rows[:-1]) | (own[1:] != own[:-1])
        run = np.concatenate(([0], np.cumsum(new)))[:len(rows)]
        above -= np.bincount(run).cumsum()[run] - np.arange(len(rows))
    return np.bincount(rows, gain(grades) * discount[above], len(scores))


def gain(relevance: np.ndarray) -> np.ndarray:
    """Compute 2^r - 1 (Eq. 4) in float64."""
    return np.exp2(relevance, dtype=np.float64) - 1
