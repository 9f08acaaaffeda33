"""Mean relevance of the first k results: how well do they suit the query, match or not?"""

import numpy as np

from itr_study.checks import check_count
from itr_study.metrics.graded import RowMetric, joined, ordered, per_query, query_means
from itr_study.metrics.scores import AnyScores
from itr_study.metrics.truth import Truth


def mean_relevance(scores: AnyScores, truth: Truth, k: int = 10) -> dict[str, float]:
    """Mean relevance of the first k results, over all queries: {"i2t_rel10", "t2i_rel10"}.

    In [0, 1]. Where relevance is 1 for matches and 0 else, this is precision at k.

    Args, Raises: as `mean_relevance_per_query`.
    Source: cumulated gain at k of Järvelin and Kekäläinen, TOIS 2002, divided by k.
    Differs: as `mean_relevance_per_query`.
    Example: the first two texts of the image are 1 and 0.2 relevant; each text finds the image
        >>> relevance = np.array([[1, 0.2, 0.5]])
        >>> truth = Truth(np.array([0, 0, 0]), 1, lambda images: relevance[images])
        >>> table = mean_relevance(np.array([[3.0, 2.0, 1.0]]), truth, k=2)
        >>> round(table["i2t_rel2"], 4), round(table["t2i_rel2"], 4)
        (0.6, 0.5667)
    """
    return query_means(scores, truth, {f"rel{k}": mean_relevance_rows(k)})


def mean_relevance_per_query(scores: AnyScores, truth: Truth,
                             k: int = 10) -> dict[str, np.ndarray]:
    """Mean relevance of the first k results of every image and of every text: {"i2t": (I,),
    "t2i": (T,)}, float64.

    Args:
        scores: (I, T), higher = more alike; truth: its relevance in [0, 1], read as float32.
        k: how many results are looked at, at least 1; all of a shorter list.
    Raises: ValueError for k < 1, NaN, shapes that differ, relevance outside [0, 1].
    Source: cumulated gain at k of Järvelin and Kekäläinen, TOIS 2002, divided by k.
    Differs: ties count against the model: of equal scores that compete for the last places the
             least relevant are taken. Its order within the first k does not matter.
    """
    return per_query(scores, truth, mean_relevance_rows(k))[0]


def mean_relevance_rows(k: int = 10) -> RowMetric:
    """Mean relevance of the first k of rows of scores and relevance (q, n) -> (q,).

    Args, Raises: as `mean_relevance_per_query`.
    """
    check_count("k", k)
    return lambda values, relevance: first_relevance(values, relevance, k).mean(axis=1)


def first_relevance(values: np.ndarray, relevance: np.ndarray, k: int) -> np.ndarray:
    """(q, k) float64: relevance of the k highest scores of each row, in no order; the least
    relevant of equal scores.

    Keys hold the score, highest first, then the relevance, lowest first: one partition finds them.
    """
    if k < values.shape[1]:
        keys = joined(~ordered(values), (relevance + np.float32(0)).view(np.uint32))
        keys.partition(k - 1, axis=1)
        relevance = keys[:, :k].astype(np.uint32).view(np.float32)
    return relevance.astype(np.float64)
