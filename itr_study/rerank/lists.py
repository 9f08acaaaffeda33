"""Re-ranking that puts the first results of each query in another order and leaves the rest below.

`reciprocal` and `multi` do; both ask where a query stands when all queries are ranked for a result.
Lists are made on the host, of blocks of scores, whatever device these are on.
"""

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor

from itr_study.metrics.graded import joined, on_host, ordered
from itr_study.metrics.ranks import ranks, wide
from itr_study.metrics.scores import LazyScores, Scores, query_rows
from itr_study.metrics.truth import Positives
from itr_study.rerank.base import CANDIDATES, Matrix, doubles, rows_together


class Listed(LazyScores, ABC):
    """Scores of which each query's first results stand in another order, above all its others."""

    def __init__(self, given: Matrix) -> None:
        super().__init__(given)
        self.known: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    @abstractmethod
    def reordered(self, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """(Q, k) the first results of each query, and their places: 0 = first; equal ones tie."""

    def lists(self, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """`reordered`, computed once."""
        if direction not in self.known:
            self.known[direction] = self.reordered(direction)
        return self.known[direction]

    def of_queries(self, direction: str, queries: slice | np.ndarray) -> Matrix:
        """The results lie above the query's highest score, in even steps from place to place."""
        given = wide(query_rows(self.given, direction, queries))
        values = given.clone() if isinstance(given, Tensor) else torch.from_numpy(given.copy())
        results, places = (torch.from_numpy(part[queries]).to(values.device)
                           for part in self.lists(direction))
        top = values.amax(dim=1, keepdim=True)
        step = 4 * torch.finfo(values.dtype).eps * top.abs().clamp(min=1)
        values.scatter_(1, results, top + (places.shape[1] - places) * step)
        return values if isinstance(given, Tensor) else values.numpy()

    def ranks_of(self, direction: str, image_of_text: np.ndarray) -> np.ndarray:
        """As before, but of queries with a match in their list: 1 + others not behind the best."""
        results, places = self.lists(direction)
        before = ranks(self.given, image_of_text).by_direction(direction)
        if direction == "i2t":
            matches = image_of_text[results] == np.arange(len(results))[:, None]
        else:
            matches = results == image_of_text[:, None]
        best = np.where(matches, places, places.shape[1]).min(axis=1)
        others = np.count_nonzero((places <= best[:, None]) & ~matches, axis=1)
        return np.where(matches.any(axis=1), 1 + others, before)


def reverse_ranks(scores: Matrix, direction: str, found: np.ndarray,
                  siblings: Positives | None = None) -> np.ndarray:
    """(Q, k) 0-based position of the query among all queries ranked for each result found.

    Of equal scores the query of lower index stands first.

    Args:
        found: (Q, k) the first results of every query.
        siblings: of each query the queries that stand for it: the best of their positions is taken.
    """
    asked = np.argsort(found, axis=None, kind="stable")  # pairs of query and result, by result
    results, queries = found.ravel()[asked], asked // found.shape[1]
    reverse = np.empty(found.size, np.int64)
    for some, values in Scores.of(scores).blocks(CANDIDATES[direction],
                                                 rows_together(scores, len(found))):
        pairs = slice(*np.searchsorted(results, (some.start, some.stop)))
        rows = results[pairs] - some.start
        if siblings is None:
            reverse[asked[pairs]] = positions(on_host(values), rows, queries[pairs])
        elif len(rows):
            lists = siblings.take(queries[pairs])
            each = positions(on_host(values), np.repeat(rows, np.diff(lists.starts)), lists.items)
            reverse[asked[pairs]] = np.minimum.reduceat(each, lists.starts[:-1])
    return reverse.reshape(found.shape)


def positions(values: np.ndarray, rows: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(p,) how many of their row stand before the items at these rows and places of (c, n): those
    of a higher score, and of an equal one at a lower place.

    All rows are one ascending list for one search: a key holds the row, then the score.
    """
    keys = ordered(values)
    row_of = np.broadcast_to(np.arange(len(keys), dtype=np.uint32)[:, None], keys.shape)
    ascending = joined(row_of, np.sort(keys, axis=1)).ravel()
    own = joined(rows, keys[rows, places])
    ends = (rows + 1) * keys.shape[1]
    above = ends - np.searchsorted(ascending, own, "right")
    least = ends - np.searchsorted(ascending, own, "left")
    for tied in np.flatnonzero(least - above > 1):
        row, place = keys[rows[tied]], places[tied]
        above[tied] += np.count_nonzero(row[:place] == row[place])
    return above


# The sums under FR's scores: what all queries together think of a candidate.
#
# The logarithm of a softmax over queries is taken in two parts, first (A - m) + (second - first) A
# and log(1 + sum exp first (A_l - m)), m a candidate's highest score, without whose query (the
# winner) the sum is taken. Nothing overflows, and the small second part, which tells the winners of
# many candidates apart, is not lost in the rounding of a large first.

LEAST = -700.0  # exp of less is near the smallest number there is


def rivals(scores: Matrix, direction: str, scale: float) -> tuple[Tensor, Tensor]:
    """Of each candidate (n,) its highest score m, and log sum exp scale (A_l - m) of the others.

    Candidates of "i2t" are the texts, and the sum goes over images; of "t2i" the other way round.
    float64; -inf where there is but one query.
    """
    step = rows_together(scores, scores.shape[0 if direction == "i2t" else 1])
    parts = [rivals_of_rows(doubles(block[start:start + step]), scale)
             for _, block in Scores.of(scores).blocks(CANDIDATES[direction], 8 * step)
             for start in range(0, len(block), step)]
    return tuple(torch.cat(part) for part in zip(*parts, strict=True))


def rivals_of_rows(values: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """`rivals` of rows (c, q), which are overwritten. The second keeps the sum in range."""
    top, winner = highest(values)
    values.scatter_(1, winner, -torch.inf)
    second = highest(values)[0].clamp(min=-1e200)  # of one query there is none
    total = torch.add(-scale * second, values, alpha=scale, out=values).exp_().sum(dim=1)
    return top[:, 0], scale * (second - top)[:, 0] + total.log()


def highest(values: Tensor) -> tuple[Tensor, Tensor]:
    """(c, 1) the highest of each row, and its place; on the CPU numpy finds it faster."""
    if values.device.type != "cpu":
        return values.max(dim=1, keepdim=True)
    place = torch.from_numpy(values.numpy().argmax(axis=1))[:, None]
    return values.gather(1, place), place


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)); below the reach of exp it goes on towards 0 in the order of x, so that no
    two numbers give the same for being small."""
    tail = np.exp(LEAST) * LEAST / x.clamp(max=LEAST)
    return torch.where(x < LEAST, tail, x.clamp(min=0) + x.abs().neg().exp().log1p())
