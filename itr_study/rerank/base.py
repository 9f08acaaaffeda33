"""What re-rankers share: what they take, and scores that say which results come first."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from itr_study.metrics.ranks import wide
from itr_study.metrics.scores import AnyScores, LazyScores, Scores, check_numbers, query_rows
from itr_study.metrics.truth import Positives, Truth

LARGEST = 1e30  # of a score: what re-rankers add and multiply stays finite
PAIRS = 500_000  # looked at together
Matrix = np.ndarray | Tensor


def check_matrix(scores: Matrix, name: str = "scores") -> None:
    """Raise ValueError unless this is a matrix of at least 1 x 1 finite numbers up to 1e30."""
    check_numbers(scores)
    if scores.ndim != 2 or 0 in scores.shape:
        raise ValueError(f"{name} must be a matrix (n_images, n_texts), at least 1 x 1; got "
                         f"{tuple(scores.shape)}")
    for start, part in pieces(scores):
        bad = ~(abs(part) <= LARGEST)
        if bad.any():
            row, column = np.argwhere(bad.cpu().numpy() if isinstance(bad, Tensor) else bad)[0]
            raise ValueError(f"{name} must be finite and at most {LARGEST:g} in size to be "
                             f"re-ranked; found {float(part[row, column])} at image {start + row}, "
                             f"text {column}. For -inf, which ranks last, give the least score.")


def pieces(scores: Matrix) -> Iterator[tuple[int, Matrix]]:
    """(first row, some rows) of a matrix, float32 or float64."""
    step = max(1, PAIRS // scores.shape[1])
    return ((a, wide(scores[a:a + step])) for a in range(0, len(scores), step))


def by_direction(scores: AnyScores, rerank: Callable[[Matrix], Scores]) -> Scores:
    """The re-ranked scores of a matrix; of a pair each direction from its own matrix."""
    scores = Scores.of(scores)
    if scores.single:
        return rerank(prepared(scores.i2t))
    i2t, t2i = (rerank(prepared(matrix)) for matrix in scores)
    return Pair(i2t, t2i)


def prepared(scores: Matrix) -> Matrix:
    """A checked matrix, outside of autograd."""
    check_matrix(scores)
    return scores.detach() if isinstance(scores, Tensor) else scores


class Pair(LazyScores):
    """i2t of one lazy pair, t2i of another."""

    def __init__(self, i2t: LazyScores, t2i: LazyScores) -> None:
        super().__init__(i2t._like)
        self.parts = {"i2t": i2t, "t2i": t2i}

    def of_queries(self, direction: str, queries: slice) -> Matrix:
        return self.parts[direction].of_queries(direction, queries)

    def best_ranks(self, direction: str, image_of_text: np.ndarray) -> np.ndarray:
        return self.parts[direction].best_ranks(direction, image_of_text)


def ranks_of_rows(scores: Scores, direction: str, image_of_text: np.ndarray) -> np.ndarray:
    """(Q,) rank of the best match of every query, block by block: no matrix is kept."""
    matches = Truth(image_of_text, scores.shape[0]).positives(direction)
    width = scores.shape[1 if direction == "i2t" else 0]
    found = []
    for queries, values in scores.blocks(direction, max(1, PAIRS // width)):
        values = values.cpu().numpy() if isinstance(values, Tensor) else values
        found.append(best_of_block(values, matches, queries))
    return np.concatenate(found)


def best_of_block(values: np.ndarray, matches: Positives, queries: slice) -> np.ndarray:
    """(q,) 1 + what does not match and scores at least as high as the best match of its row."""
    starts = matches.starts[queries.start:queries.stop + 1]
    row = np.repeat(np.arange(len(values)), np.diff(starts))
    own = values[row, matches.items[starts[0]:starts[-1]]]
    best = np.maximum.reduceat(own, starts[:-1] - starts[0])
    ties = np.bincount(row[own >= best[row]], minlength=len(values))
    return 1 + np.count_nonzero(values >= best[:, None], axis=1) - ties


class Listed(LazyScores):
    """Scores of which each query's first results are put in another order; the rest stays below.

    Args:
        scores: (I, T).
        candidates: {"i2t": (I, k), "t2i": (T, k)} the re-ordered results of each query.
        places: of the same shapes, 0 = first; equal places tie.
    What is re-ordered scores above all of its query's others, in even steps from place to place.
    """

    def __init__(self, scores: Matrix, candidates: dict[str, np.ndarray],
                 places: dict[str, np.ndarray]) -> None:
        super().__init__(scores)
        self.scores, self.candidates, self.places = scores, candidates, places

    def of_queries(self, direction: str, queries: slice) -> Matrix:
        given = wide(query_rows(self.scores, direction, queries))
        values = torch.as_tensor(given).clone()
        candidates, places = (torch.from_numpy(part[direction][queries]).to(values.device)
                              for part in (self.candidates, self.places))
        top = values.amax(dim=1, keepdim=True)
        step = 4 * torch.finfo(values.dtype).eps * top.abs().clamp(min=1)
        values.scatter_(1, candidates, top + (places.shape[1] - places) * step)
        return values if isinstance(given, Tensor) else values.numpy()

    def best_ranks(self, direction: str, image_of_text: np.ndarray) -> np.ndarray:
        return ranks_of_rows(self, direction, image_of_text)
