"""Scores of both directions: one matrix for both, as models give it, or one for each."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from itr_study.checks import check_choice, check_count, check_numbers
from itr_study.metrics.truth import DIRECTIONS

QUERIES = 256  # at a time, where a lazy matrix is made
TURNED = 256  # rows of a matrix of which columns are turned together

Matrix = np.ndarray | Tensor


@dataclass(frozen=True, eq=False)
class Scores:
    """Two matrices, both (I, T), higher = more alike: re-ranking gives one to each direction.

    Every metric takes this or a plain matrix for both. It unpacks: `i2t, t2i = scores`.

    Args:
        i2t: read along its rows, when images ask.
        t2i: read along its columns, when texts ask.
    Raises: ValueError unless both are matrices of one shape, of real numbers.
    Example: image 0 finds its text first; text 0 does not find its image first
        >>> scores = Scores(np.array([[2, 1], [0, 3]]), np.array([[2, 1], [4, 3]]))
        >>> scores.shape, scores.i2t[0].argmax(), scores.t2i[:, 0].argmax()
        ((2, 2), np.int64(0), np.int64(1))
    """

    i2t: Matrix
    t2i: Matrix

    def __post_init__(self) -> None:
        for matrix in (self.i2t,) if self.single else self:
            check_numbers(matrix)
        shapes = tuple(self.i2t.shape), tuple(self.t2i.shape)
        if len(shapes[0]) != 2 or shapes[0] != shapes[1]:
            raise ValueError("i2t and t2i must both be (n_images, n_texts), images down; got "
                             f"{shapes[0]} and {shapes[1]}. Is one of them turned round?")

    @classmethod
    def of(cls, scores: "AnyScores") -> "Scores":
        """Return a pair as it is, and a plain matrix (I, T) as a pair of itself."""
        return scores if isinstance(scores, Scores) else cls(scores, scores)

    @property
    def shape(self) -> tuple[int, int]:
        """(I, T)."""
        n_images, n_texts = self.i2t.shape
        return n_images, n_texts

    @property
    def single(self) -> bool:
        """Whether one matrix serves both directions, so that one pass over it does, too."""
        return self.i2t is self.t2i

    def by_direction(self, direction: str) -> Matrix:
        """Return the matrix of one direction, "i2t" or "t2i"."""
        return self.i2t if direction == "i2t" else self.t2i

    def cut(self, images: slice | np.ndarray, texts: slice | np.ndarray) -> "Scores":
        """Take the scores of some images and texts; nothing is copied where both are slices."""
        i2t = self.i2t[images][:, texts]
        return Scores(i2t, i2t if self.single else self.t2i[images][:, texts])

    def blocks(self, direction: str, size: int) -> "Iterator[tuple[slice, Matrix]]":
        """Yield queries of one direction, at most `size` at a time, and their scores (q, n)."""
        check_choice("direction", direction, DIRECTIONS)
        check_count("size", size)
        n = self.shape[DIRECTIONS.index(direction)]
        for start in range(0, n, size):
            queries = slice(start, min(start + size, n))
            yield queries, self.of_queries(direction, queries)

    def of_queries(self, direction: str, queries: slice | np.ndarray) -> "Matrix":
        """Return the scores (q, n) of some queries of one direction; may be a view."""
        return query_rows(self.by_direction(direction), direction, queries)

    def __iter__(self) -> "Iterator[Matrix]":
        return iter((self.i2t, self.t2i))


class LazyScores(Scores, ABC):
    """Scores that are computed when they are read, as re-ranking gives them.

    A subclass computes them in `of_queries`, and counts ranks without a matrix in `ranks_of`.
    `i2t` and `t2i`, each a whole matrix (I, T), are computed on first use and kept.

    Args: given: (I, T) the matrix they are computed of; they are of its kind and on its device.
    """

    single = False  # each direction has its own scores

    def __init__(self, given: Matrix) -> None:
        self.given = given

    @abstractmethod
    def of_queries(self, direction: str, queries: slice | np.ndarray) -> Matrix:
        """Compute the scores (q, n) of some queries of one direction."""

    @abstractmethod
    def ranks_of(self, direction: str, image_of_text: np.ndarray) -> np.ndarray:
        """Rank the best match of every query from 1: (I,) for "i2t", (T,) for "t2i"."""

    @property
    def shape(self) -> tuple[int, int]:
        """(I, T)."""
        n_images, n_texts = self.given.shape
        return n_images, n_texts

    def cut(self, images: slice | np.ndarray, texts: slice | np.ndarray) -> Scores:
        """Compute the scores of some images and texts alone."""
        return Scores(self.of_queries("i2t", images)[:, texts],
                      self.of_queries("t2i", texts).T[images])

    @cached_property
    def i2t(self) -> Matrix:
        """(I, T) scores when images ask."""
        return self.whole("i2t")

    @cached_property
    def t2i(self) -> Matrix:
        """(I, T) scores when texts ask."""
        return self.whole("t2i")

    def whole(self, direction: str) -> Matrix:
        """Compute the scores (I, T) of one direction, block by block."""
        matrix: Any = None
        for queries, values in self.blocks(direction, QUERIES):
            if matrix is None:
                matrix = empty_like(values, self.shape)
            (matrix if direction == "i2t" else matrix.T)[queries] = values
        return matrix


def query_rows(matrix: Matrix, direction: str, queries: slice | np.ndarray) -> Matrix:
    """Return the scores (q, n) of some queries of a matrix (I, T): its rows, or columns turned."""
    if direction == "i2t":
        return matrix[queries]
    # some rows at a time, several times faster: a column lies on thousands of pages of memory
    turned = empty_like(matrix, (matrix[:1, queries].shape[1], len(matrix)))
    for start in range(0, len(matrix), TURNED):
        turned[:, start:start + TURNED] = matrix[start:start + TURNED][:, queries].T
    return turned


def empty_like(values: Matrix, shape: tuple[int, ...]) -> Any:
    """Make an array or tensor of the same type, on the same device."""
    return values.new_empty(shape) if isinstance(values, Tensor) else np.empty(shape, values.dtype)


AnyScores = Matrix | Scores  # one matrix (I, T) for both directions, or two
