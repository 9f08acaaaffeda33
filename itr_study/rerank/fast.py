"""FR: each score beside what all queries together think of its candidate.

A softmax of a candidate's scores over the queries: for i2t each text's over all images, for t2i
each image's over all texts. A candidate that every query likes (a hub) is held back.
"""

import numpy as np
import torch
from torch import Tensor

from itr_study.checks import check_number
from itr_study.metrics.scores import AnyScores, LazyScores, Scores, query_rows
from itr_study.rerank.bank import Bank, Banked, check_bank
from itr_study.rerank.base import Matrix, by_direction, count, doubles, ranks_of_queries
from itr_study.rerank.lists import rivals, softplus

CUB_SCALES = {"gamma1": 9, "gamma2": 8, "lambda1": 8, "lambda2": 17}  # dvse, Sec. IV-A-3
SMALLEST, LARGEST = 1e-6, 1e6  # of a scale: between them no number leaves single precision


def fast(scores: AnyScores, gamma1: float = 25, gamma2: float = 25, lambda1: float = 20,
         lambda2: float = 20, bank: Bank | None = None) -> LazyScores:
    """Fast re-ranking (FR) of scores (I, T), in both directions.

    i2t: gamma2 A_ij - log sum_l exp(gamma1 A_lj), l over all images; t2i: lambda2 A_ij - log sum_l
    exp(lambda1 A_il), l over all texts. As printed it sees all queries of the test at once (it is
    transductive): say so beside its numbers. With `bank` a query is normalised with a fixed set of
    others and itself only, which one query alone could be given.

    Args:
        scores: (I, T) array or tensor, higher = more alike; of `Scores` each direction is re-ranked
            from its own matrix.
        gamma1, lambda1: scale of the scores of all queries (the denominator), in [1e-6, 1e6].
        gamma2, lambda2: scale of the pair's own score (the numerator), in [1e-6, 1e6].
        bank: scores of other queries with this gallery.
    Shape: `Scores`, both (I, T) float64, computed on first use; `ranks` of them makes no matrix.
    Raises: ValueError for scores that are not finite, other scales, a bank of another gallery.
    Source: dvse, Eqs. 13-15; the defaults are its scales for Flickr30K and MSCOCO, CUB_SCALES those
        for CUB.
    Differs: the printed sums run over the wrong sets (Eq. 13: l != j should be l != i; Eqs. 13, 14:
        the set is a column of A, not a row); logarithms, which keep the order, in two parts, so
        that no scale overflows and the winners of columns do not tie (see `rivals`). Of one query
        the sum is its own score alone: equal scales make all its scores 0.
    Example: both images find text 0 first; image 1 likes it better, so image 0 is left text 1
        >>> i2t, t2i = fast(np.array([[0.5, 0.4], [0.9, 0.1]]))
        >>> i2t.argmax(axis=1)
        array([1, 0])
    """
    for name, value in (("gamma1", gamma1), ("gamma2", gamma2), ("lambda1", lambda1),
                        ("lambda2", lambda2)):
        check_scale(name, value)
    scales = {"i2t": (gamma1, gamma2), "t2i": (lambda1, lambda2)}
    if bank is not None:
        check_bank(bank, Scores.of(scores).shape)
        return by_direction(scores, lambda matrix: Banked(matrix, scales, bank))
    return by_direction(scores, lambda matrix: Normalised(matrix, scales))


def check_scale(name: str, value: float) -> None:
    """Raise ValueError unless it is a number in [1e-6, 1e6]."""
    check_number(name, value, least=SMALLEST, most=LARGEST)


class Normalised(LazyScores):
    """FR over all queries: first (A - m) + (second - first) A - log(1 + rest), see `rivals`.

    Args:    scales: of each direction (first, second); known: m and log(1 + rest) of directions of
             which they are known, for scales that have `first` in common.
    """

    def __init__(self, given: Matrix, scales: dict[str, tuple[float, float]],
                 known: dict[str, tuple[Tensor, Tensor]] | None = None) -> None:
        super().__init__(given)
        self.scales = scales
        self.known = {} if known is None else known

    def rivals(self, direction: str) -> tuple[Tensor, Tensor]:
        """m and log(1 + rest) of each candidate, computed once."""
        if direction not in self.known:
            top, others = rivals(self.given, direction, self.scales[direction][0])
            self.known[direction] = top, softplus(others)
        return self.known[direction]

    def of_queries(self, direction: str, queries: slice | np.ndarray) -> Matrix:
        given = query_rows(self.given, direction, queries)
        values = self.normalised(doubles(given), *self.rivals(direction), direction)
        return values if isinstance(given, Tensor) else values.numpy()

    def normalised(self, own: Tensor, top: Tensor, rest: Tensor, direction: str) -> Tensor:
        """The new scores of pairs, of their own and of what is known of their candidates."""
        first, second = self.scales[direction]
        return first * (own - top) + (second - first) * own - rest

    def ranks_of(self, direction: str, image_of_text: np.ndarray) -> np.ndarray:
        """(Q,) counted in single precision; in double where other candidates are near the match.

        A new score over `second` is A minus a handicap of the candidate alone.
        """
        first, second = self.scales[direction]
        top, rest = (part.cpu() for part in self.rivals(direction))
        handicap = ((first * top + rest) / second).numpy()
        best = self.best_matches(direction, image_of_text) / second
        size = np.abs(handicap).max() + np.abs(best).max() + float(top.abs().max())
        slack = size * (2.0**-20 + 2.0**-48 * first / second)  # more than all rounding
        low, high = count(self.given, direction, handicap.astype(np.float32),
                          tuple((best + off).astype(np.float32) for off in (-slack, slack)))
        doubtful = np.flatnonzero(low - high != 1)  # between them lies the best match itself
        low[doubtful] = ranks_of_queries(self, direction, image_of_text, doubtful)
        return low

    def best_matches(self, direction: str, image_of_text: np.ndarray) -> np.ndarray:
        """(Q,) the new score of each query's best match."""
        texts = np.arange(len(image_of_text))
        own = doubles(self.given[image_of_text, texts]).cpu()
        candidates = torch.from_numpy(texts if direction == "i2t" else image_of_text)
        top, rest = (part.cpu()[candidates] for part in self.rivals(direction))
        values = self.normalised(own, top, rest, direction).numpy()
        if direction == "t2i":
            return values
        best = np.full(self.shape[0], -np.inf)
        np.maximum.at(best, image_of_text, values)
        return best
