"""MR: a query's first results by rank, reverse rank, and share of the candidate."""

import numpy as np

from itr_study.checks import check_count, check_number
from itr_study.metrics.first import first_with_scores
from itr_study.metrics.graded import on_host
from itr_study.metrics.scores import AnyScores, LazyScores
from itr_study.metrics.truth import DIRECTIONS
from itr_study.rerank.base import Listed, Matrix, by_direction, reverse_ranks, rows_together

ROUNDING = 1e-3  # by how much a cosine may be off


def multi(scores: AnyScores, k: int = 30, w1: float = 1.0, w2: float = 0.7, decay: float = 0.05,
          unit: bool = True) -> LazyScores:
    """Re-rank scores (I, T) in both directions by MR, multivariate re-ranking.

    The first k results of a query are put in order of p2 + w1 p1 + w2 p3. p1 is the query's share
    of the candidate's scores with all queries; p2 = exp(-decay rank); p3 = exp(-decay position),
    the candidate's position when the k are in order of reverse rank (see `reciprocal`); both from
    1.

    Args:
        scores: (I, T).
        k: how many results are re-ordered, at least 1; of a smaller gallery all.
        w1: weight of the share, >= 0.
        w2: weight of the reverse rank, >= 0.
        decay: > 0.
        unit: whether scores are cosines, mapped to (1 + s) / 2 before the share is taken. False: as
            they are; if they may be negative a share means little, and of a sum of 0 it is 0.
    Shape: as `reciprocal`.
    Raises: ValueError for scores that are not finite, with `unit` for scores outside [-1, 1], for
        k < 1 and weights below 0.
    Source: Yuan et al., GaLR, IEEE TGRS 2022 (multivariate rerank), and its code (k = 30).
    Differs: the map to [0, 1]; what is not among the first k keeps its order below (published code
        sets all of it to 0); equal reverse ranks keep their order, and of equal scores the lower
        index comes first, so that they differ in rank.
    Example: image 0 finds text 0 first, which prefers image 1, then text 1, which prefers image 0
        >>> i2t, t2i = multi(np.array([[0.5, 0.4], [0.9, 0.1]]), w2=2)
        >>> i2t.argmax(axis=1)
        array([1, 0])
    """
    check_count("k", k)
    check_number("w1", w1, least=0)
    check_number("w2", w2, least=0)
    check_number("decay", decay, above=0)
    return by_direction(scores, lambda matrix: Multivariate(matrix, k, (w1, w2), decay, unit))


class Multivariate(Listed):
    """MR: the first k results by the sum of the three parts."""

    def __init__(self, given: Matrix, k: int, weights: tuple[float, float], decay: float,
                 unit: bool) -> None:
        super().__init__(given)
        if unit:
            low, high = float(given.min()), float(given.max())
            if low < -1 - ROUNDING or high > 1 + ROUNDING:
                raise ValueError(
                    f"multi takes cosines, in [-1, 1]; found scores from {low:g} to {high:g}. "
                    "Normalise the vectors, divide the scores by their scale, or give unit=False "
                    "to take shares of the scores as they are")
        self.k, self.weights, self.decay, self.unit = k, weights, decay, unit

    def reordered(self, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the first results and their places."""
        found, own = first_with_scores(self.given, self.k, direction)
        position = ranked(reverse_ranks(self.given, direction, found))
        part, total = own.astype(np.float64), sums(self.given, direction)[found]
        if self.unit:  # (1 + s) / 2 of each, and of all that were summed
            part, total = (1 + part) / 2, (self.shape[DIRECTIONS.index(direction)] + total) / 2
        share = np.divide(part, total, out=np.zeros(found.shape), where=total != 0)
        fading = np.exp(-self.decay * np.arange(1, found.shape[1] + 1))
        w1, w2 = self.weights
        return found, ranked(-(fading + w1 * share + w2 * fading[position]))


def sums(scores: Matrix, direction: str) -> np.ndarray:
    """Sum each candidate's scores (n,) over all queries: over images for "i2t"."""
    step = rows_together(scores, scores.shape[1])
    axis = 0 if direction == "i2t" else 1
    parts = [on_host(scores[start:start + step]).sum(axis=axis, dtype=np.float64)
             for start in range(0, len(scores), step)]
    return np.sum(parts, axis=0) if direction == "i2t" else np.concatenate(parts)


def ranked(values: np.ndarray) -> np.ndarray:
    """Return the 0-based place (Q, k) of each number of a row, least first; ties in order."""
    from scipy.stats import rankdata  # here: slow to load

    return rankdata(values, "ordinal", axis=1, nan_policy="raise").astype(np.int64) - 1
