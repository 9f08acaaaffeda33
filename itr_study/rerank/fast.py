"""FR: each score against what all queries together think of its candidate.

A softmax of a candidate's scores over the queries: for i2t each text's over all images, for t2i
each image's over all texts. A candidate that every query likes (a hub) is held back.

The logarithm of that softmax is taken in two parts, first (A - m) + (second - first) A and
log(1 + sum exp first (A_l - m)), m a candidate's highest score, without whose query (the winner)
the sum is taken. Nothing overflows, and the small second part, which tells the winners of many
candidates apart, is not lost in the rounding of a large first.

Where a scale times the spread of the scores is far below 1 the sum is little but a mean, and FR
takes each candidate's mean off. That lowers recall where the means matter, as in a model that has
collapsed: there they hold by how much each vector differs from all others.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from itr_study.checks import check_number
from itr_study.metrics.graded import HELD, steps
from itr_study.metrics.scores import AnyScores, LazyScores, Scores, query_rows
from itr_study.metrics.truth import DIRECTIONS, check_image_of_text
from itr_study.rerank.base import (
    CANDIDATES,
    Matrix,
    by_direction,
    checked,
    count,
    doubles,
    ranks_of_queries,
    rows_together,
)

CUB_SCALES = {"gamma1": 9, "gamma2": 8, "lambda1": 8, "lambda2": 17}  # dvse, Sec. IV-A-3
SMALLEST, LARGEST = 1e-6, 1e6  # of a scale: between them no number leaves single precision
Known = dict[str, tuple[Tensor, Tensor]]  # of a direction, what `rivals` gives
# Of gamma1 (lambda1) times spread: in the rows of Flickr8k FR lowers the recalls of each direction
# where it is up to 0.5, and raises them from 0.7 to 1.2; printed scales are at 3 in most.
FLAT, USUAL = 0.6, 3
SAMPLE = 200  # of queries and candidates, whose scores tell the spread
LEAST = -700.0  # exp of less is near the smallest number there is


class FlatScores(UserWarning):
    """FR is given scores that spread too little for its scale; see `fast`."""


@dataclass(frozen=True, eq=False)
class Bank:
    """Scores of a fixed set of other queries with a gallery, which one query can be given.

    Such as those of another split's images and texts, scored with the gallery of the test.

    Args:
        images: (B, T) scores of B other images and the texts of the gallery; or a function that
            makes those with a slice of the texts, so that not all of them are held at a time.
        texts: (I, C) scores of the images of the gallery and C other texts, likewise.
    Raises: ValueError for scores that are not finite, not a matrix or empty.
    """

    images: Matrix | Callable[[slice], Matrix]
    texts: Matrix | Callable[[slice], Matrix]

    def __post_init__(self) -> None:
        for name in ("images", "texts"):
            if not callable(given := vars(self)[name]):
                object.__setattr__(self, name, checked(given, f"Bank.{name}"))

    def made(self, name: str, part: slice = slice(None)) -> Matrix:
        """Return the scores of "images" or "texts" with a part of the gallery."""
        given = vars(self)[name]
        if callable(given):
            return checked(given(part), f"Bank.{name}")
        return given[(slice(None), part) if name == "images" else part]

    def summary(self, direction: str, shape: tuple[int, int],
                scale: float) -> tuple[float, tuple[Tensor, Tensor]]:
        """Return the spread of the scores of one direction, and their `rivals`.

        Raises: ValueError unless they are those of a gallery of this shape (I, T).
        """
        name, axis = {"i2t": ("images", 1), "t2i": ("texts", 0)}[direction]  # of the gallery
        size, found = shape[axis], []
        for part in steps(size, shape[1 - axis], size, HELD):
            # the last has no end: so a larger gallery is seen
            matrix = self.made(name, slice(part.start, part.stop if part.stop < size else None))
            if matrix.shape[axis] != part.stop - part.start:
                raise ValueError(
                    f"bank must score the gallery of these scores, {shape[0]} images and "
                    f"{shape[1]} texts: Bank.images (B, {shape[1]}) and Bank.texts ({shape[0]}, "
                    f"C); got Bank.{name} {tuple(matrix.shape)}. A fold needs a bank of its own "
                    "images and texts")
            found.append((spread(matrix, direction), *rivals(matrix, direction, scale)))
            del matrix  # before the next is made
        spreads, tops, others = zip(*found, strict=True)
        return float(np.mean(spreads)), (torch.cat(tops), torch.cat(others))


def fast(scores: AnyScores, gamma1: float = 25, gamma2: float = 25, lambda1: float = 20,
         lambda2: float = 20, bank: Bank | None = None) -> LazyScores:
    """Re-rank scores (I, T) in both directions by FR, fast re-ranking.

    i2t: gamma2 A_ij - log sum_l exp(gamma1 A_lj), l over all images; t2i: lambda2 A_ij - log sum_l
    exp(lambda1 A_il), l over all texts. As printed it is transductive: say so next to its numbers.
    With `bank` a query is normalised with a fixed set of others and itself only.

    Args:
        scores: (I, T).
        gamma1: scale of the scores of all queries (the denominator), in [1e-6, 1e6].
        gamma2: scale of the pair's own score (the numerator), in [1e-6, 1e6].
        lambda1: gamma1 of t2i.
        lambda2: gamma2 of t2i.
        bank: scores of other queries with this gallery.
    Shape: both (I, T) float64.
    Raises: ValueError for scores that are not finite, other scales, a bank of another gallery.
    Warns: FlatScores, with scales that fit, where gamma1 or lambda1 times the spread of a
        candidate's scores over all queries is below 0.6: recall may fall, to half in a model that
        has collapsed.
    Source: dvse, Eqs. 13-15; the defaults are its scales for Flickr30K and MSCOCO, CUB_SCALES for
        CUB.
    Differs: the printed sums run over the wrong sets (Eq. 13: l != j should be l != i; Eqs. 13, 14:
        the set is a column of A, not a row); logarithms, which keep the order, in two parts, so
        that no scale overflows and the winners of columns do not tie. Of one query the sum is its
        own score alone: equal scales make all its scores 0.
    Example: both images find text 0 first; image 1 likes it better, so image 0 is left text 1
        >>> i2t, t2i = fast(np.array([[0.5, 0.4], [0.9, 0.1]]))
        >>> i2t.argmax(axis=1)
        array([1, 0])
    """
    check_scales(gamma1=[gamma1], gamma2=[gamma2], lambda1=[lambda1], lambda2=[lambda2])
    scales = {"i2t": (gamma1, gamma2), "t2i": (lambda1, lambda2)}
    scores = Scores.of(scores)
    if bank is None:
        found = by_direction(scores, lambda matrix: Normalised(matrix, scales))
        spreads = tuple(map(spread, scores, DIRECTIONS))
    elif isinstance(bank, Bank):
        spreads, known = zip(*(bank.summary(direction, scores.shape, first)
                               for direction, (first, _) in scales.items()), strict=True)
        found = by_direction(scores, lambda matrix: Banked(matrix, scales, known))
    else:
        raise ValueError("bank must be itr_study.rerank.Bank(images=(B, T) scores, texts=(I, C) "
                         f"scores) of other queries; got {type(bank).__name__}")
    warn_if_flat(spreads, scales)
    return found


def fast_grid(scores: AnyScores, image_of_text: np.ndarray, gammas1: Sequence[float],
              gammas2: Sequence[float]) -> dict[str, np.ndarray]:
    """Compute R@1 after FR for every pair of scales, as in the heat maps of dvse Fig. 7.

    Takes scores (I, T) and image_of_text (T,); gammas1: (n1,) values of gamma1, for t2i of lambda1;
    gammas2: (n2,) values of gamma2 and lambda2.

    Shape: {"i2t": (n1, n2), "t2i": (n1, n2)}, fractions.
    Raises: ValueError as `fast` and `ranks`.
    """
    scores = Scores.of(scores)
    check_scales(gammas1=gammas1, gammas2=gammas2)
    owner = check_image_of_text(image_of_text, *scores.shape)
    found = {direction: np.empty((len(gammas1), len(gammas2))) for direction in DIRECTIONS}
    for direction, table in found.items():
        matrix = checked(scores.by_direction(direction))
        for row, first in zip(table, gammas1, strict=True):
            known: Known = {}  # the sums over queries do not depend on the second scale
            for place, second in enumerate(gammas2):
                one = Normalised(matrix, {direction: (first, second)}, known)
                row[place] = (one.ranks_of(direction, owner) == 1).mean()
    return found


def check_scales(**scales: Sequence[float]) -> None:
    """Raise ValueError unless all are numbers in [1e-6, 1e6]."""
    for name, values in scales.items():
        for value in values:
            check_number(name, value, least=SMALLEST, most=LARGEST)


def spread(scores: Matrix, direction: str) -> float:
    """Return the deviation of a candidate's scores over the queries, on average, of a sample."""
    rows, columns = (1 + size // SAMPLE for size in scores.shape)
    some = doubles(scores[::rows, ::columns]).detach()
    return float(some.std(dim=DIRECTIONS.index(direction), correction=0).mean())


def warn_if_flat(spreads: Sequence[float], scales: Mapping[str, tuple[float, float]]) -> None:
    """Warn if the scale of a direction is far too small for the spread of its scores."""
    found, remedy = [], []
    for direction, name, wide in zip(DIRECTIONS, ("gamma", "lambda"), spreads, strict=True):
        first = scales[direction][0]
        if 0 < first * wide < FLAT:
            fits = float(f"{min(USUAL / wide, LARGEST):.1g}")
            found.append(f"{direction}: {name}1 = {first:g} times the spread of a candidate's "
                         f"scores over the queries, {wide:.2g}, is {first * wide:.2g}")
            remedy += [f"{name}1={fits:g}", f"{name}2={fits:g}"]
    if found:
        warnings.warn(
            f"fast re-ranking, {'; '.join(found)}. Below {FLAT} it takes little but each "
            "candidate's mean off, and recall may fall, to half where a model has collapsed. "
            f"Compare recall with and without it on dev, or try {', '.join(remedy)}", FlatScores,
            stacklevel=3)


class Banked(LazyScores):
    """second A - log(exp first A + sum over the bank of exp first B), by (first, second).

    known: `rivals` of the bank's scores, of each direction.
    """

    def __init__(self, given: Matrix, scales: dict[str, tuple[float, float]],
                 known: Sequence[tuple[Tensor, Tensor]]) -> None:
        super().__init__(given)
        device = given.device if isinstance(given, Tensor) else "cpu"
        self.scales = scales
        self.rivals = {direction: [part.to(device) for part in parts]
                       for direction, parts in zip(DIRECTIONS, known, strict=True)}

    def of_queries(self, direction: str, queries: slice | np.ndarray) -> Matrix:
        """Return new scores of some queries."""
        first, second = self.scales[direction]
        top, others = self.rivals[direction]
        given = query_rows(self.given, direction, queries)
        own = doubles(given)
        values = (second - first) * own - softplus(first * (top - own) + others.exp().log1p())
        return values if isinstance(given, Tensor) else values.numpy()

    def ranks_of(self, direction: str, image_of_text: np.ndarray) -> np.ndarray:
        """Return ranks of one direction."""
        return ranks_of_queries(self, direction, image_of_text)


class Normalised(LazyScores):
    """FR over all queries: first (A - m) + (second - first) A - log(1 + rest).

    scales: of each direction (first, second); known: m and log(1 + rest), if known for this
    `first`.
    """

    def __init__(self, given: Matrix, scales: dict[str, tuple[float, float]],
                 known: Known | None = None) -> None:
        super().__init__(given)
        self.scales = scales
        self.known = {} if known is None else known

    def rivals(self, direction: str) -> tuple[Tensor, Tensor]:
        """Return m and log(1 + rest) of each candidate, computed once."""
        if direction not in self.known:
            top, others = rivals(self.given, direction, self.scales[direction][0])
            self.known[direction] = top, softplus(others)
        return self.known[direction]

    def of_queries(self, direction: str, queries: slice | np.ndarray) -> Matrix:
        """Return new scores of some queries."""
        given = query_rows(self.given, direction, queries)
        values = self.normalised(doubles(given), *self.rivals(direction), direction)
        return values if isinstance(given, Tensor) else values.numpy()

    def normalised(self, own: Tensor, top: Tensor, rest: Tensor, direction: str) -> Tensor:
        """Return new scores of pairs from their own and what is known of their candidates."""
        first, second = self.scales[direction]
        return first * (own - top) + (second - first) * own - rest

    def ranks_of(self, direction: str, image_of_text: np.ndarray) -> np.ndarray:
        """Count ranks (Q,) in single precision; in double if other candidates are near the match.

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
        """Return the new score (Q,) of each query's best match."""
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


def rivals(scores: Matrix, direction: str, scale: float) -> tuple[Tensor, Tensor]:
    """Return each candidate's highest score m, and log sum exp scale (A_l - m) of the others.

    (n,) float64 each; -inf if there is but one query. Candidates of "i2t" are the texts, and the
    sum goes over images; of "t2i" the other way round.
    """
    step = rows_together(scores, scores.shape[0 if direction == "i2t" else 1])
    parts = [rivals_of_rows(doubles(block[start:start + step]), scale)
             for _, block in Scores.of(scores).blocks(CANDIDATES[direction], 8 * step)
             for start in range(0, len(block), step)]
    top, others = (torch.cat(part) for part in zip(*parts, strict=True))
    return top, others


def rivals_of_rows(values: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Return `rivals` of rows (c, q), which are overwritten. The second keeps the sum in range."""
    top, winner = highest(values)
    values.scatter_(1, winner, -torch.inf)
    second = highest(values)[0].clamp(min=-1e200)  # of one query there is none
    total = torch.add(-scale * second, values, alpha=scale, out=values).exp_().sum(dim=1)
    return top[:, 0], scale * (second - top)[:, 0] + total.log()


def highest(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the highest (c, 1) of each row, and its place; on the CPU numpy finds it faster."""
    if values.device.type != "cpu":
        return values.max(dim=1, keepdim=True)
    place = torch.from_numpy(values.numpy().argmax(axis=1))[:, None]
    return values.gather(1, place), place


def softplus(x: Tensor) -> Tensor:
    """Return log(1 + exp(x)); below the reach of exp it goes on to 0 in the order of x.

    So no two numbers give the same for being small.
    """
    tail = np.exp(LEAST) * LEAST / x.clamp(max=LEAST)
    return torch.where(x < LEAST, tail, x.clamp(min=0) + x.abs().neg().exp().log1p())
