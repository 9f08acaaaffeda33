"""What re-rankers share: what they take, and how ranks are counted without a matrix."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from itr_study.metrics.ranks import ranks, wide
from itr_study.metrics.scores import AnyScores, LazyScores, Scores, check_numbers, query_rows
from itr_study.metrics.truth import DIRECTIONS, Truth

LARGEST = 1e15  # of a score: scaled it stays finite in single precision
PAIRS = 250_000  # looked at together, which a core's cache holds
DEVICE_PAIRS = 50_000_000
Matrix = np.ndarray | Tensor


def by_direction(scores: AnyScores, rerank: Callable[[Matrix], LazyScores]) -> LazyScores:
    """A matrix re-ranked; of a pair each direction from its own matrix.

    Raises: ValueError as `check_matrix`.
    """
    scores = Scores.of(scores)
    for matrix in (scores.i2t,) if scores.single else scores:
        check_matrix(matrix, "scores")
    if scores.single:
        return rerank(detached(scores.i2t))
    return Pair(*(rerank(detached(matrix)) for matrix in scores))


def check_matrix(scores: Matrix, name: str) -> None:
    """Raise ValueError unless this is a matrix of at least 1 x 1 finite numbers."""
    check_numbers(scores)
    if scores.ndim != 2 or 0 in scores.shape:
        raise ValueError(f"{name} must be a matrix, images down, of at least 1 x 1; got "
                         f"{tuple(scores.shape)}")
    step = rows_together(scores, scores.shape[1])
    for start in range(0, len(scores), step):
        part = wide(scores[start:start + step])
        if not (float(part.min()) >= -LARGEST and float(part.max()) <= LARGEST):  # NaN is neither
            part = part.detach().cpu().numpy() if isinstance(part, Tensor) else part
            row, column = np.argwhere(~(np.abs(part) <= LARGEST))[0]
            raise ValueError(
                f"{name} must be finite, within +-{LARGEST:g}, to be re-ranked; found "
                f"{part[row, column]} at image {start + row}, text {column}. In the place of -inf, "
                "which ranks last, give a number below all others.")


def detached(scores: Matrix) -> Matrix:
    """Outside of autograd."""
    return scores.detach() if isinstance(scores, Tensor) else scores


def rows_together(scores: Matrix, width: int) -> int:
    """How many rows of this width are looked at together: few on the CPU, many on a device."""
    on_cpu = not isinstance(scores, Tensor) or scores.device.type == "cpu"
    return max(1, (PAIRS if on_cpu else DEVICE_PAIRS) // width)


def doubles(values: Matrix) -> Tensor:
    """A copy in float64, on the device of a tensor."""
    if isinstance(values, Tensor):
        return values.to(torch.float64, copy=True)
    return torch.from_numpy(values.astype(np.float64))


class Pair(LazyScores):
    """i2t of one re-ranked matrix, t2i of another."""

    def __init__(self, i2t: LazyScores, t2i: LazyScores) -> None:
        super().__init__(i2t.given)
        self.parts = {"i2t": i2t, "t2i": t2i}

    def of_queries(self, direction: str, queries: slice | np.ndarray) -> Matrix:
        return self.parts[direction].of_queries(direction, queries)

    def best_ranks(self, image_of_text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        both = [self.parts[direction].best_ranks(image_of_text) for direction in DIRECTIONS]
        return both[0][0], both[1][1]


def ranks_of_queries(scores: LazyScores, direction: str, image_of_text: np.ndarray,
                     queries: np.ndarray | None = None) -> np.ndarray:
    """(q,) rank of the best match of some queries, or of all, from their scores block by block."""
    matches = Truth(image_of_text, scores.shape[0]).positives(direction)
    queries = np.arange(len(matches)) if queries is None else queries
    step = rows_together(scores.given, scores.shape[1 - DIRECTIONS.index(direction)])
    parts = [np.zeros(0, np.int64)]
    for start in range(0, len(queries), step):
        some = queries[start:start + step]
        values = scores.of_queries(direction, some)
        values = values.cpu().numpy() if isinstance(values, Tensor) else values
        lists = [matches[query] for query in some]
        starts = np.cumsum([0, *map(len, lists)])
        row = np.repeat(np.arange(len(some)), np.diff(starts))
        own = values[row, np.concatenate(lists)]
        best = np.maximum.reduceat(own, starts[:-1])
        ties = np.bincount(row[own >= best[row]], minlength=len(some))  # the best match is one
        parts.append(1 + np.count_nonzero(values >= best[:, None], axis=1) - ties)
    return np.concatenate(parts)


class Listed(LazyScores):
    """Scores of which each query's first results stand in another order, above all its others.

    Args:
        given: (I, T) the scores that these lists are of.
        candidates: {"i2t": (I, k), "t2i": (T, k)} the re-ordered results of each query.
        places: of the same shapes, 0 = first; equal places tie.
    """

    def __init__(self, given: Matrix, candidates: dict[str, np.ndarray],
                 places: dict[str, np.ndarray]) -> None:
        super().__init__(given)
        self.candidates, self.places = candidates, places

    def of_queries(self, direction: str, queries: slice | np.ndarray) -> Matrix:
        """The candidates lie above the query's highest score, in even steps from place to place."""
        given = wide(query_rows(self.given, direction, queries))
        values = given.clone() if isinstance(given, Tensor) else torch.from_numpy(given.copy())
        candidates, places = (torch.from_numpy(part[direction][queries]).to(values.device)
                              for part in (self.candidates, self.places))
        top = values.amax(dim=1, keepdim=True)
        step = 4 * torch.finfo(values.dtype).eps * top.abs().clamp(min=1)
        values.scatter_(1, candidates, top + (places.shape[1] - places) * step)
        return values if isinstance(given, Tensor) else values.numpy()

    def best_ranks(self, image_of_text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ranks of the given scores, but of queries with a match among the candidates."""
        before = ranks(self.given, image_of_text)
        texts_match = image_of_text[self.candidates["i2t"]] == np.arange(self.shape[0])[:, None]
        images_match = self.candidates["t2i"] == image_of_text[:, None]
        return (ranks_in_lists(self.places["i2t"], texts_match, before.i2t),
                ranks_in_lists(self.places["t2i"], images_match, before.t2i))


def ranks_in_lists(places: np.ndarray, matches: np.ndarray, before: np.ndarray) -> np.ndarray:
    """(Q,) 1 + others at the place of the best match or before it; without a match as before."""
    best = np.where(matches, places, places.shape[1]).min(axis=1)
    others = np.count_nonzero((places <= best[:, None]) & ~matches, axis=1)
    return np.where(matches.any(axis=1), 1 + others, before)
