"""What re-rankers share: what they take, ranks without a matrix, first results reordered."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from itr_study.checks import check_numbers
from itr_study.metrics.graded import joined, on_host, ordered
from itr_study.metrics.ranks import elsewhere, ranks, wide
from itr_study.metrics.scores import AnyScores, LazyScores, Scores, query_rows
from itr_study.metrics.truth import DIRECTIONS, Positives, Truth

LARGEST = 1e15  # of a score: scaled it stays finite in single precision
PAIRS = 128_000  # looked at together: in double precision they fit a core's cache
DEVICE_PAIRS = 50_000_000
MOST_ROWS = 255  # of which hits are summed in uint8
CANDIDATES = {"i2t": "t2i", "t2i": "i2t"}  # what is found when one asks, asks the other way round
Matrix = np.ndarray | Tensor


def by_direction(scores: AnyScores, rerank: Callable[[Matrix], LazyScores]) -> LazyScores:
    """Re-rank a matrix, or of a pair each direction from its own, once `checked`."""
    scores = Scores.of(scores)
    if scores.single:
        return rerank(checked(scores.i2t))
    return Pair(*(rerank(checked(matrix)) for matrix in scores))


def checked(scores: Matrix, name: str = "scores") -> Matrix:
    """Return the matrix outside of autograd; ValueError unless it is of finite numbers."""
    scores = scores.detach() if isinstance(scores, Tensor) else scores
    check_numbers(scores, name)
    if scores.ndim != 2 or 0 in scores.shape:
        raise ValueError(f"{name} must be a matrix, images down, of at least 1 x 1; got "
                         f"{tuple(scores.shape)}")
    step = rows_together(scores, scores.shape[1])
    for start in range(0, len(scores), step):
        part = wide(scores[start:start + step])
        if not (float(part.min()) >= -LARGEST and float(part.max()) <= LARGEST):  # NaN is neither
            part = part.cpu().numpy() if isinstance(part, Tensor) else part
            row, column = np.argwhere(~(np.abs(part) <= LARGEST))[0]
            raise ValueError(
                f"{name} must be finite, within +-{LARGEST:g}, to be re-ranked; found "
                f"{part[row, column]} at image {start + row}, text {column}. Instead of -inf, "
                "which ranks last, give a number below all others.")
    return scores


def rows_together(scores: Matrix, width: int) -> int:
    """Return how many rows of this width are looked at together: few on the CPU, many elsewhere."""
    on_cpu = not isinstance(scores, Tensor) or scores.device.type == "cpu"
    return max(1, (PAIRS if on_cpu else DEVICE_PAIRS) // width)


def doubles(values: Matrix) -> Tensor:
    """Return a copy in float64, row by row in memory, on the device of a tensor."""
    if isinstance(values, Tensor):
        return values.to(torch.float64, copy=True, memory_format=torch.contiguous_format)
    return torch.from_numpy(values.astype(np.float64, order="C"))


class Pair(LazyScores):
    """i2t of one re-ranked matrix, t2i of another."""

    def __init__(self, i2t: LazyScores, t2i: LazyScores) -> None:
        super().__init__(i2t.given)
        self.parts = {"i2t": i2t, "t2i": t2i}

    def of_queries(self, direction: str, queries: slice | np.ndarray) -> Matrix:
        """Return scores of some queries."""
        return self.parts[direction].of_queries(direction, queries)

    def ranks_of(self, direction: str, image_of_text: np.ndarray) -> np.ndarray:
        """Return ranks of one direction."""
        return self.parts[direction].ranks_of(direction, image_of_text)


def ranks_of_queries(scores: LazyScores, direction: str, image_of_text: np.ndarray,
                     queries: np.ndarray | None = None) -> np.ndarray:
    """Count the rank (q,) of the best match of some queries, or of all, block by block."""
    matches = Truth(image_of_text, scores.shape[0]).positives(direction)
    queries = np.arange(len(matches)) if queries is None else queries
    step = rows_together(scores.given, scores.shape[1 - DIRECTIONS.index(direction)])
    parts = [np.zeros(0, np.int64)]
    for start in range(0, len(queries), step):
        some = queries[start:start + step]
        values = scores.of_queries(direction, some)
        values = values.cpu().numpy() if isinstance(values, Tensor) else values
        lists = matches.take(some)
        row = np.repeat(np.arange(len(some)), np.diff(lists.starts))
        own = values[row, lists.items]
        best = np.maximum.reduceat(own, lists.starts[:-1])
        ties = np.bincount(row[own >= best[row]], minlength=len(some))  # the best match is one
        parts.append(1 + np.count_nonzero(values >= best[:, None], axis=1) - ties)
    return np.concatenate(parts)


def count(scores: Matrix, direction: str, handicap: np.ndarray,
          least: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Count, for two bounds (Q,), the candidates of a query with A - handicap at or above it.

    Single precision decides nearly all comparisons, by a bound just below the best match and one
    just above it. A query with others between the two is to be counted in double precision.
    handicap: (n,) of the candidates.
    """
    low, high = (np.zeros(len(bound), np.int64) for bound in least)
    for rows, part in shifted(scores, direction, handicap):
        for total, bound in zip((low, high), least, strict=True):
            if direction == "i2t":
                total[rows] = hits_of_rows(part, bound[rows])
            else:
                total += hits_of_columns(part, bound)
    return low, high


def shifted(scores: Matrix, direction: str, handicap: np.ndarray) -> Iterator[tuple[slice, Matrix]]:
    """Yield (rows, A - handicap) of some rows at a time, float32, on the host or a device."""
    step = min(MOST_ROWS, rows_together(scores, scores.shape[1]))
    for start in range(0, len(scores), step):
        rows = slice(start, min(start + step, len(scores)))
        off = handicap if direction == "i2t" else handicap[rows, None]
        part = wide(scores[rows])
        if isinstance(part, Tensor) and elsewhere(part):
            yield rows, part.float() - torch.from_numpy(off).to(part.device)
        else:
            yield rows, (np.asarray(part) - off).astype(np.float32, copy=False)


def hits_of_rows(part: Matrix, bound: np.ndarray) -> np.ndarray:
    """Count the numbers (q,) of each row that are at least its bound."""
    if isinstance(part, Tensor):
        return (part >= torch.from_numpy(bound).to(part.device)[:, None]).sum(dim=1).cpu().numpy()
    # several times faster than axis=1
    return np.array([np.count_nonzero(row) for row in part >= bound[:, None]])


def hits_of_columns(part: Matrix, bound: np.ndarray) -> np.ndarray:
    """Count the numbers (n,) of each column that are at least its bound."""
    if isinstance(part, Tensor):
        return (part >= torch.from_numpy(bound).to(part.device)).sum(dim=0).cpu().numpy()
    return np.add.reduce((part >= bound).view(np.uint8), axis=0, dtype=np.uint8)


class Listed(LazyScores, ABC):
    """Scores with each query's first results in another order, above all its others.

    Lists are made on the host, of blocks of scores, whatever device these are on.
    """

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
