"""FR: each score is divided by how much its candidate is liked by all queries.

A softmax of the scores of a candidate over the queries: for i2t each text's over all images, for
t2i each image's over all texts. A candidate that every query likes (a hub) is held back.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from itr_study.checks import check_number
from itr_study.metrics.ranks import wide
from itr_study.metrics.scores import AnyScores, LazyScores, Scores, query_rows
from itr_study.metrics.truth import DIRECTIONS
from itr_study.rerank.base import PAIRS, Matrix, by_direction, check_matrix, ranks_of_rows

LEAST = -700.0  # exp of less is near the smallest number


@dataclass(frozen=True, eq=False)
class Bank:
    """Scores of a fixed set of other queries, for queries that come one at a time.

    Args:
        images: (B, T) scores of B other images and the texts of the gallery.
        texts: (I, C) scores of the images of the gallery and C other texts.
    """

    images: Matrix
    texts: Matrix


def fast(scores: AnyScores, gamma1: float = 25, gamma2: float = 25, lambda1: float = 20,
         lambda2: float = 20, bank: Bank | None = None) -> Scores:
    """Fast re-ranking (FR) of scores (I, T), in both directions.

    i2t: gamma2 A_ij - log sum_l exp(gamma1 A_lj), over all images l; t2i: lambda2 A_ij - log sum_l
    exp(lambda1 A_il), over all texts l. It sees all queries of the test set at once (it is
    transductive): a number made with it is not that of one query alone, unless `bank` is given.

    Args:
        scores: (I, T) array or tensor, higher = more alike; of `Scores` each direction is re-ranked
            from its own matrix.
        gamma1, lambda1: scale of the scores of all queries (the denominator), > 0.
        gamma2, lambda2: scale of the pair's own score (the numerator), > 0.
        bank: queries to normalise with in the place of the test set's; a query is then normalised
            with these and itself only.
    Shape: `Scores`, both (I, T) float64, computed on first use.
    Raises: ValueError for scores that are not finite, scales <= 0, a bank of another gallery.
    Source: dvse, Eqs. 13-15.
    Differs: the printed sums run over the wrong sets (Eqs. 13-14: l != j should be l != i, and the
        set a column of A); logarithms in two parts, so that no scale overflows and the winners of
        columns do not tie: gamma1 (A - m) + (gamma2 - gamma1) A - log1p(sum exp gamma1 (A_l - m)),
        m the maximum, the sum without the winner.
    Example: image 0 likes both texts; text 0 is liked by all, so text 1 comes first
        >>> i2t, t2i = fast(np.array([[0.5, 0.4], [0.9, 0.1]]))
        >>> i2t.argmax(axis=1)
        array([1, 0])
    """
    for name, value in (("gamma1", gamma1), ("gamma2", gamma2), ("lambda1", lambda1),
                        ("lambda2", lambda2)):
        check_number(name, value, above=0)
    scales = {"i2t": (gamma1, gamma2), "t2i": (lambda1, lambda2)}
    if bank is not None:
        check_bank(bank, Scores.of(scores).shape)
        return by_direction(scores, lambda matrix: Banked(matrix, scales, bank))
    return by_direction(scores, lambda matrix: Normalised(matrix, scales))


def check_bank(bank: Bank, shape: tuple[int, int]) -> None:
    """Raise ValueError unless the bank's scores are those of this gallery."""
    if not isinstance(bank, Bank):
        raise ValueError("bank must be a Bank(images, texts) of scores, got "
                         f"{type(bank).__name__}")
    check_matrix(bank.images, "bank.images")
    check_matrix(bank.texts, "bank.texts")
    if bank.images.shape[1] != shape[1] or bank.texts.shape[0] != shape[0]:
        raise ValueError(
            f"bank must score this gallery: images (B, {shape[1]}), texts ({shape[0]}, C); got "
            f"{tuple(bank.images.shape)} and {tuple(bank.texts.shape)}")


class Normalised(LazyScores):
    """FR over all queries."""

    def __init__(self, scores: Matrix, scales: dict[str, tuple[float, float]]) -> None:
        super().__init__(scores)
        self.scores, self.scales = scores, scales
        self.rivals = {d: rivals(scores, d, scales[d][0]) for d in DIRECTIONS}

    def of_queries(self, direction: str, queries: slice) -> Matrix:
        first, second = self.scales[direction]
        top, others = self.rivals[direction]
        given = query_rows(self.scores, direction, queries)
        own = torch.as_tensor(wide(given)).double()
        values = first * (own - top) + (second - first) * own - softplus(others)
        return values if isinstance(given, Tensor) else values.numpy()

    def best_ranks(self, direction: str, image_of_text: np.ndarray) -> np.ndarray:
        return ranks_of_rows(self, direction, image_of_text)


class Banked(LazyScores):
    """FR of each query alone, over the queries of a bank and itself."""

    def __init__(self, scores: Matrix, scales: dict[str, tuple[float, float]],
                 bank: Bank) -> None:
        super().__init__(scores)
        self.scores, self.scales = scores, scales
        self.rivals = {d: rivals(matrix, d, scales[d][0])
                       for d, matrix in (("i2t", bank.images), ("t2i", bank.texts))}

    def of_queries(self, direction: str, queries: slice) -> Matrix:
        first, second = self.scales[direction]
        top, others = (part.to(getattr(self.scores, "device", "cpu"))
                       for part in self.rivals[direction])
        given = query_rows(self.scores, direction, queries)
        own = torch.as_tensor(wide(given)).double()
        values = (second - first) * own - softplus(first * (top - own) + torch.log1p(others.exp()))
        return values if isinstance(given, Tensor) else values.numpy()

    def best_ranks(self, direction: str, image_of_text: np.ndarray) -> np.ndarray:
        return ranks_of_rows(self, direction, image_of_text)


def rivals(scores: Matrix, direction: str, scale: float) -> tuple[Tensor, Tensor]:
    """Of each candidate (n,) its highest score m, and log sum exp scale (A_l - m) of the others."""
    candidates = {"i2t": "t2i", "t2i": "i2t"}[direction]  # they stand where the other way queries
    blocks = Scores.of(scores).blocks(candidates, max(1, PAIRS // len(scores)))
    parts = [rivals_of_rows(torch.as_tensor(wide(values)).double(), scale) for _, values in blocks]
    return tuple(torch.cat(part) for part in zip(*parts, strict=True))


def rivals_of_rows(values: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """`rivals` of rows (c, q): the winner is left out of the sum, the second keeps it in range."""
    top, winner = values.max(dim=1)
    rest = values.scatter(1, winner[:, None], -torch.inf)
    second = rest.amax(dim=1).clamp(min=torch.finfo(values.dtype).min)  # of one query: none
    total = (scale * (rest - second[:, None])).exp().sum(dim=1)
    return top, scale * (second - top) + total.log()


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)), for which no two numbers give 0: below exp's reach it goes on in order."""
    low = np.exp(LEAST) * LEAST / x.clamp(max=LEAST)
    return torch.where(x < LEAST, low, torch.logaddexp(x, torch.zeros_like(x)))
