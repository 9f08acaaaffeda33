"""MR: a query's first results by three parts: rank, reverse rank, and share of the candidate."""

import numpy as np

from itr_study.checks import check_count, check_number
from itr_study.metrics.first import first
from itr_study.metrics.graded import on_host
from itr_study.metrics.scores import AnyScores, Scores, query_rows
from itr_study.metrics.truth import DIRECTIONS
from itr_study.rerank.base import Listed, Matrix, by_direction
from itr_study.rerank.reciprocal import reverse_ranks

ROUNDING = 1e-3  # by how much a cosine may be off


def multi(scores: AnyScores, k: int = 30, w1: float = 1.0, w2: float = 0.7, decay: float = 0.05,
          unit: bool = True) -> Scores:
    """Multivariate re-ranking (MR) of scores (I, T), in both directions.

    The first k results of a query are put in order of p2 + w1 p1 + w2 p3; p1 = the share of the
    candidate's scores over all queries that this query has, p2 = exp(-decay rank), p3 = exp(-decay
    position), the position of the candidate when the k are in order of reverse rank; both from 1.

    Args:
        scores: (I, T) array or tensor, higher = more alike; of `Scores` each direction is re-ranked
            from its own matrix.
        k: how many results are re-ordered, at least 1; of a smaller gallery all.
        w1, w2: weights of the share and of the reverse rank, >= 0; decay: > 0.
        unit: whether scores are cosines, mapped to (1 + s) / 2 before the share is taken. False:
            as they are, where a share of negative numbers means little and one of a sum of 0 is 0.
    Raises: ValueError for scores that are not finite, with `unit` for scores outside [-1, 1], for
        k < 1 and weights below 0.
    Source: Yuan et al., GaLR, IEEE TGRS 2022, and its code (k = 30, w1 = 1, w2 = 0.7).
    Differs: the map to [0, 1]; results beyond k keep their order below (published: all become 0);
        equal reverse ranks keep their order, of equal scores the lower index comes first.
    Example: image 0 finds text 0 first, which prefers image 1, then text 1, which prefers image 0
        >>> i2t, t2i = multi(np.array([[0.5, 0.4], [0.9, 0.1]]), w2=2)
        >>> i2t.argmax(axis=1)
        array([1, 0])
    """
    check_count("k", k)
    check_number("w1", w1, least=0)
    check_number("w2", w2, least=0)
    check_number("decay", decay, above=0)
    return by_direction(scores, lambda matrix: reordered(matrix, k, w1, w2, decay, unit))


def reordered(scores: Matrix, k: int, w1: float, w2: float, decay: float, unit: bool) -> Listed:
    """The first k results by the sum of the three parts."""
    if unit:
        low, high = float(scores.min()), float(scores.max())
        if low < -1 - ROUNDING or high > 1 + ROUNDING:
            raise ValueError("multi(unit=True) takes cosines, in [-1, 1]; found scores from "
                             f"{low:g} to {high:g}. Divide them, or take unit=False for scores "
                             "that are positive already")
    candidates, places = {}, {}
    for direction in DIRECTIONS:
        found = first(scores, k)[direction]
        reverse = reverse_ranks(scores, found, direction)
        position = np.argsort(np.argsort(reverse, axis=1, kind="stable"), axis=1)
        fading = np.exp(-decay * np.arange(1, found.shape[1] + 1))
        value = fading + w1 * shares(scores, found, direction, unit) + w2 * fading[position]
        candidates[direction] = found
        places[direction] = np.argsort(np.argsort(-value, axis=1, kind="stable"), axis=1)
    return Listed(scores, candidates, places)


def shares(scores: Matrix, candidates: np.ndarray, direction: str, unit: bool) -> np.ndarray:
    """(Q, k) part of each candidate's sum of scores over all queries that is this query's."""
    values = on_host(query_rows(scores, direction, slice(None))).astype(np.float64)
    if unit:
        values = (1 + values) / 2
    total = values.sum(axis=0)
    own = np.take_along_axis(values, candidates, 1)
    return np.divide(own, total[candidates], out=np.zeros_like(own), where=total[candidates] != 0)
