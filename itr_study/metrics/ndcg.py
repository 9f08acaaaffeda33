"""NDCG: is what is relevant near the top, and the more relevant the nearer?"""

import numpy as np

from itr_study.checks import check_choice, check_count
from itr_study.metrics.graded import (
    RowMetric,
    first_of_run,
    joined,
    ordered,
    per_query,
    query_means,
)
from itr_study.metrics.scores import AnyScores
from itr_study.metrics.truth import Truth

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


def ndcg_rows(ties: str = "worst", at: int | None = None) -> RowMetric:
    """NDCG of rows of scores and relevance (q, n) -> (q,). Args, Raises: as `ndcg_per_query`."""
    check_choice("ties", ties, TIES)
    if at is not None:
        check_count("at", at)

    def of_block(values: np.ndarray, relevance: np.ndarray) -> np.ndarray:
        discount = 1 / np.log2(np.arange(2, values.shape[1] + 2))
        discount[len(discount) if at is None else at:] = 0
        return block_ndcg(values, relevance, discount, ties)

    return of_block


def block_ndcg(scores: np.ndarray, relevance: np.ndarray, discount: np.ndarray,
               ties: str) -> np.ndarray:
    """(q,) NDCG of rows of scores and relevance (q, n).

    One sort of whole numbers puts the items in order of falling score and, among equal scores, of
    rising relevance: the score is in their upper half, the relevance itself in the lower.
    """
    keys = joined(LAST - ordered(scores), (relevance + np.float32(0)).view(np.uint32))
    keys.sort(axis=1)
    gains = gain(keys.astype(np.uint32).view(np.float32))
    if ties == "worst":
        reached = gains @ discount
    else:
        keys >>= np.uint64(32)
        ranks = first_of_run(keys[:, 1:] != keys[:, :-1])
        reached = np.einsum("qn,qn->q", gains, discount[ranks])
    ideal = gain(np.sort(relevance, axis=1)) @ discount[::-1]
    return np.divide(reached, ideal, out=np.zeros(len(ideal)), where=ideal > 0)


def gain(relevance: np.ndarray) -> np.ndarray:
    """2^r - 1 (Eq. 4) in float64."""
    gains = np.exp2(relevance, dtype=np.float64)
    gains -= 1
    return gains
