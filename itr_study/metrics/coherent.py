"""The coherent score: are the best results in the order of their relevance?"""

import numpy as np

from itr_study.metrics.graded import RowMetric, joined, ordered, per_query, query_means
from itr_study.metrics.kendall import block_tau
from itr_study.metrics.scores import AnyScores
from itr_study.metrics.truth import Truth


def coherent(scores: AnyScores, truth: Truth, k: int = 100) -> dict[str, float]:
    """Mean coherent score of all queries in both directions: {"i2t_cs100", "t2i_cs100"}.

    In [-1, 1]: of the k best results, 1 is the most relevant first, -1 the most relevant last. It
    does not ask whether they are relevant at all: read it beside recall or NDCG.

    Args, Raises: as `coherent_per_query`.
    Source: CS@K of Zhou et al., Ladder Loss, AAAI 2020 (CVSE++ of the bcls tables).
    Differs: as `coherent_per_query`.
    Example: the two best texts of image 0 are 1 and 0.2 relevant, in this order; of image 1 the
    best is its own too, with a lesser one behind. Of two images every text finds its own first
        >>> relevance = np.array([[1, 0.2, 0], [0.5, 1, 0]])
        >>> truth = Truth(np.array([0, 1, 1]), 2, lambda images: relevance[images])
        >>> coherent(np.array([[3.0, 2.0, 1.0], [2.0, 3.0, 1.0]]), truth, k=2)
        {'i2t_cs2': 1.0, 't2i_cs2': 0.6666666666666666}
    """
    return query_means(scores, truth, {f"cs{k}": coherent_rows(k)})


def coherent_per_query(scores: AnyScores, truth: Truth,
                       k: int = 100) -> dict[str, np.ndarray]:
    """Coherent score of every image and of every text: {"i2t": (I,), "t2i": (T,)}, float64.

    Kendall's tau-b between scores and relevance of the k items of highest score.

    Args:
        scores: (I, T), higher = more alike; truth: its relevance in [0, 1], read as float32.
        k: how many results are looked at, at least 2; all of a shorter list. Where the list is no
           longer than k this is `kendall`.
    Raises: ValueError for k < 2, NaN, shapes that differ, relevance outside [0, 1].
    Source: CS@K of Zhou et al., Ladder Loss, AAAI 2020, which the bcls paper names as [16].
    Differs: the reading is ours: Kendall's tau of the k best against their order by relevance. Of
             equal scores at place k the first in the matrix stay. Which tau is not said: tau-b.
    """
    return per_query(scores, truth, coherent_rows(k))[0]


def coherent_rows(k: int = 100) -> RowMetric:
    """Coherent score of rows of scores and relevance (q, n) -> (q,).

    Args, Raises: as `coherent_per_query`.
    """
    if not (isinstance(k, int) and k >= 2):
        raise ValueError(f"k must be a whole number of at least 2, to have an order; got {k!r}")
    return lambda values, relevance: block_tau(*best(values, relevance, k), "b")


def best(values: np.ndarray, relevance: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores and relevance (q, k) of the k highest scores of each row; all where there are no more.

    Keys hold score, then place, so that one partition finds them and ties fall to the first.
    """
    n = values.shape[1]
    if k >= n:
        return values, relevance
    keys = joined(~ordered(values), np.arange(n, dtype=np.uint32))  # highest score, smallest key
    keys.partition(k - 1, axis=1)
    places = keys[:, :k].astype(np.uint32).astype(np.intp)
    return np.take_along_axis(values, places, 1), np.take_along_axis(relevance, places, 1)
