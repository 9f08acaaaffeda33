"""NDCG: is what is relevant near the top, and the more relevant the nearer?

Where few items are relevant their ranks are counted; else every list is sorted.
"""

from collections.abc import Sequence

import numpy as np

from itr_study.checks import check_choice, check_count
from itr_study.metrics.graded import (
    RowMetric,
    first_of_run,
    joined,
    ordered,
    per_query,
    query_blocks,
    query_means,
)
from itr_study.metrics.scores import AnyScores
from itr_study.metrics.truth import DIRECTIONS, Truth
from itr_study.progress import Show

FEW = 32  # relevant items of a query, up to which counting is many times faster than sorting
TIES = ("worst", "paper")
LAST = np.uint32(2**32 - 1)


def ndcg(scores: AnyScores, truth: Truth, ties: str = "worst",
         at: int | None = None) -> dict[str, float]:
    """Mean NDCG of all queries in both directions: {"i2t_ndcg", "t2i_ndcg"}.

    Args, Raises: as `ndcg_per_query`.
    Source: listwise, Eqs. 4-13.
    Differs: as `ndcg_per_query`.
    Example: image 0 finds its text second of two, 1 / log2(3) of the ideal; all others first
        >>> table = ndcg(np.array([[0.3, 0.4], [0.2, 0.5]]), Truth(np.array([0, 1])))
        >>> round(table["i2t_ndcg"], 4), table["t2i_ndcg"]
        (0.8155, 1.0)
    """
    return query_means(scores, truth, {"ndcg": ndcg_rows(ties, at)})


def ndcg_per_query(scores: AnyScores, truth: Truth, ties: str = "worst",
                   at: int | None = None) -> dict[str, np.ndarray]:
    """NDCG of every image and of every text: {"i2t": (I,), "t2i": (T,)}, float64.

    DCG = sum of (2^r - 1) / log2(1 + rank) over the items of a list, NDCG = DCG / DCG of the ideal
    list, which is sorted by relevance r. t2i takes the columns of the same relevance.

    Args:
        scores: (I, T), higher = more alike.
        truth: its relevance in [0, 1], read as float32 (cosines: (1 + c) / 2).
        ties: "worst": items of equal score stand in the worst order, relevant ones last, so that
            a model without an opinion earns nothing; "paper": each has the best rank of its group
            (Eq. 10), so that constant scores rank everything first and NDCG may exceed 1.
        at: only ranks up to this count, in the ideal list too (the paper's p); None: all.
    Raises: ValueError for NaN, shapes that differ, relevance outside [0, 1], at < 1.
    Source: listwise, Eqs. 4-13.
    Differs: the ideal DCG comes from sorted relevance. Eqs. 12-13 give items of equal relevance the
        same best rank, so that a perfect list would score below 1. A query to which nothing is
        relevant has 0, as in scikit-learn.
    Example: relevance 1 and 0.5, the wrong way round: (0.4142 + 1 / 1.585) / (1 + 0.4142 / 1.585)
        >>> truth = Truth(np.array([0, 0]), graded=lambda images: np.array([[1, 0.5]])[images])
        >>> ndcg_per_query(np.array([[0.1, 0.2]]), truth)["i2t"].round(4)
        array([0.8286])
    """
    return per_query(scores, truth, ndcg_rows(ties, at))[0]


def ndcgs_per_query(models: Sequence[AnyScores], truth: Truth, ties: str = "worst",
                    at: int | None = None, show: Show | None = None) -> list[dict[str, np.ndarray]]:
    """`ndcg_per_query` of several models over the same images and texts, whose ideal lists are
    sorted once.

    Args:    models: scores (I, T) of each; show: is told how many of all queries of all models are
             done, as `progress.counting` gives it; the others as `ndcg_per_query`.
    Raises:  as `ndcg_per_query`.
    Example: image 0 finds its text second of two by the first model, first by the other
        >>> truth = Truth(np.array([0, 1]))
        >>> one, two = np.array([[0.3, 0.4], [0.2, 0.5]]), np.eye(2)
        >>> [found["i2t"].round(4) for found in ndcgs_per_query([one, two], truth)]
        [array([0.6309, 1.    ]), array([1., 1.])]
    """
    discounts = {way: discount_of(n, at) for way, n in (("i2t", truth.n_texts),
                                                        ("t2i", truth.n_images))}
    check_choice("ties", ties, TIES)
    ideals, found, done = {}, [], 0
    for scores in models:
        parts = {way: [] for way in DIRECTIONS}
        for way, queries, values, relevance in query_blocks(scores, truth):
            key, discount = (way, queries.start), discounts[way]
            if key not in ideals:
                ideals[key] = block_ideal(relevance, discount)
            parts[way].append(block_ndcg(values, relevance, discount, ties, ideals[key]))
            done += len(values)
            if show is not None:
                show(done)
        found.append({way: np.concatenate(blocks) for way, blocks in parts.items()})
    return found


def ndcg_rows(ties: str = "worst", at: int | None = None) -> RowMetric:
    """NDCG of rows of scores and relevance (q, n) -> (q,). Args, Raises: as `ndcg_per_query`."""
    check_choice("ties", ties, TIES)
    if at is not None:
        check_count("at", at)

    def of_block(values: np.ndarray, relevance: np.ndarray) -> np.ndarray:
        discount = discount_of(values.shape[1], at)
        return block_ndcg(values, relevance, discount, ties, block_ideal(relevance, discount))

    return of_block


def discount_of(n: int, at: int | None) -> np.ndarray:
    """(n,) 1 / log2(1 + rank) of each rank from 1, 0 beyond `at`. Raises: ValueError for at < 1."""
    if at is not None:
        check_count("at", at)
    discount = 1 / np.log2(np.arange(2, n + 2))
    discount[n if at is None else at:] = 0
    return discount


def is_sparse(relevance: np.ndarray) -> bool:
    """Whether no row of relevance (q, n) has more than FEW relevant items."""
    return int((relevance > 0).sum(axis=1).max()) <= FEW


def relevant(relevance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of what is relevant in (q, n), row by row: `numpy.nonzero`, many times
    faster."""
    return np.divmod(np.flatnonzero(relevance > 0), relevance.shape[1])


def block_ndcg(scores: np.ndarray, relevance: np.ndarray, discount: np.ndarray,
               ties: str, ideal: np.ndarray) -> np.ndarray:
    """(q,) NDCG of rows of scores and relevance (q, n), whose ideal lists have a DCG of (q,)."""
    reach = counted_dcg if is_sparse(relevance) else sorted_dcg
    reached = reach(scores, relevance, discount, ties)
    return np.divide(reached, ideal, out=np.zeros(len(ideal)), where=ideal > 0)


def block_ideal(relevance: np.ndarray, discount: np.ndarray) -> np.ndarray:
    """(q,) DCG of rows of relevance (q, n) in falling order."""
    if not is_sparse(relevance):
        return gain(np.sort(relevance, axis=1)) @ discount[::-1]
    rows, columns = relevant(relevance)
    grades = relevance[rows, columns]
    grades = grades[np.lexsort((-grades, rows))]
    places = np.arange(len(rows)) - np.searchsorted(rows, rows)
    return np.bincount(rows, gain(grades) * discount[places], len(relevance))


def sorted_dcg(scores: np.ndarray, relevance: np.ndarray, discount: np.ndarray,
               ties: str) -> np.ndarray:
    """(q,) DCG of rows of scores and relevance (q, n).

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
    """As `sorted_dcg`, by counting for each relevant item how many score at least as high: what is
    irrelevant earns nothing, wherever it stands."""
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
    """2^r - 1 (Eq. 4) in float64."""
    gains = np.exp2(relevance, dtype=np.float64)
    gains -= 1
    return gains
