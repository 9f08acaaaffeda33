"""Re-ranking that reorders the first results of each query and leaves the rest below.

`reciprocal` and `multi` do; both ask for the place of a query when all queries are ranked for a
result. Lists are made on the host, of blocks of scores, whatever device these are on.
"""

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor

from itr_study.metrics.graded import joined, on_host, ordered
from itr_study.metrics.ranks import ranks, wide
from itr_study.metrics.scores import LazyScores, Scores, query_rows
from itr_study.metrics.truth import Positives
from itr_study.rerank.base import CANDIDATES, Matrix, rows_together


class Listed(LazyScores, ABC):
    """Scores with each query's first results in another order, above all its others."""

    def __init__(self, given: Matrix) -> None:
        super().__init__(given)
        self.known: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    @abstractmethod
    def reordered(self, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the first results (Q, k) of each query, and their places; equal ones tie."""

    def lists(self, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Return `reordered`, computed once."""
        if direction not in self.known:
            self.known[direction] = self.reordered(direction)
        return self.known[direction]

    def of_queries(self, direction: str, queries: slice | np.ndarray) -> Matrix:
        """Return scores with the results above the query's highest, in even steps by place."""
        given = wide(query_rows(self.given, direction, queries))
        values = given.clone() if isinstance(given, Tensor) else torch.from_numpy(given.copy())
        results, places = (torch.from_numpy(part[queries]).to(values.device)
                           for part in self.lists(direction))
        top = values.amax(dim=1, keepdim=True)
        step = 4 * torch.finfo(values.dtype).eps * top.abs().clamp(min=1)
        values.scatter_(1, results, top + (places.shape[1] - places) * step)
        return values if isinstance(given, Tensor) else values.numpy()

    def ranks_of(self, direction: str, image_of_text: np.ndarray) -> np.ndarray:
        """Return ranks as before, but for a match in the list 1 + others not behind the best."""
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
    """Return the 0-based position (Q, k) of the query among all, ranked for each result found.

    Of equal scores the query of lower index is first. siblings: of each query the queries that
    stand in for it: the best of their positions counts.
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
    """Count (p,) in their rows the items before those at these rows and places of (c, n).

    Before are those of a higher score, and of an equal one at a lower place. All rows are one
    ascending list for one search: a key holds the row, then the score.
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
