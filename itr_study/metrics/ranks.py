"""The rank of the best match of every query, by counting: no list is ever sorted.

A rank needs no order of the others, only how many of them score at least as high. One pass over
the scores in blocks that stay in cache serves both directions.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor

from itr_study.checks import check_count, check_numbers
from itr_study.metrics.scores import AnyScores, LazyScores, Matrix, Scores
from itr_study.metrics.truth import DIRECTIONS, check_image_of_text

ROWS = 16  # 16 x 25,000 float32 fit a core's cache; at most 255, because hits are summed in uint8
DEVICE_ROWS = 1024


@dataclass(frozen=True, eq=False)
class Ranks:
    """1-based rank of the best match of every image, i2t (I,), and of every text, t2i (T,)."""

    i2t: np.ndarray
    t2i: np.ndarray

    def by_direction(self, direction: str) -> np.ndarray:
        """Return the ranks of one direction, "i2t" or "t2i"."""
        return {"i2t": self.i2t, "t2i": self.t2i}[direction]


def ranks(scores: AnyScores, image_of_text: np.ndarray, block: int | None = None) -> Ranks:
    """Rank the best match of every query: 1 + non-matching items that score at least as high.

    Ties count against the model: constant scores rank every match last.

    Args:
        scores: (I, T) numpy array or tensor, higher = more alike, or `Scores` of each direction.
            A CPU tensor is read in place, any other is counted on its device; half precision is
            compared as float32.
        image_of_text: (T,) int, the row of each text's image, in any order and number.
        block: rows at a time (memory: block x T bytes); it never changes a result.
    Raises: ValueError for NaN anywhere, shapes that differ, an index out of range, an image
        without a text, anything but real numbers.
    Source: R@K as the field uses it needs only this rank; counting instead of sorting is ours.
    Differs: published code sorts, which ranks NaN first and breaks ties by position, and takes
        five texts per image for granted.
    Example: image 0 has texts 0 and 1; text 2 scores higher than both
        >>> result = ranks(np.array([[0.5, 0.4, 0.7], [0.2, 0.3, 0.6]]), np.array([0, 0, 1]))
        >>> result.i2t, result.t2i
        (array([2, 1]), array([1, 1, 2]))
    """
    if block is not None:
        check_count("block", block)
    if isinstance(scores, LazyScores):
        owner = check_image_of_text(image_of_text, *scores.shape)
        return Ranks(*(scores.ranks_of(direction, owner) for direction in DIRECTIONS))
    if isinstance(scores, Scores):
        if not scores.single:  # a pass over each: i2t of the one, t2i of the other
            i2t, t2i = (ranks(matrix, image_of_text, block) for matrix in scores)
            return Ranks(i2t.i2t, t2i.t2i)
        scores = scores.i2t
    check_matrix(scores)
    owner = check_image_of_text(image_of_text, *scores.shape)
    if isinstance(scores, Tensor):
        scores = scores.detach()
        if scores.device.type == "cpu" and scores.dtype in (torch.float32, torch.float64):
            scores = scores.numpy()
    own = scores[owner, np.arange(len(owner))]
    step = block or (DEVICE_ROWS if elsewhere(scores) else ROWS)
    pieces = ((a, wide(scores[a:a + step])) for a in range(0, len(scores), step))
    return rank_pieces(pieces, wide(own), owner, len(scores))


def ranks_from_embeddings(images: Matrix, texts: Matrix, image_of_text: np.ndarray,
                          block: int = 256) -> Ranks:
    """Rank as `ranks` by the inner products of two sets of vectors, without the (I, T) matrix.

    Args:
        images: (I, D) array or tensor. Normalise both first if the score is a cosine. Half
            precision is multiplied as float32.
        texts: (T, D) on the same device.
        image_of_text: (T,) int, the row of each text's image.
        block: images at a time (memory: block x T scores).
    Raises: as `ranks`, and ValueError where the sizes D differ.
    Source: ours.
    Differs: scores within rounding of the match tie with it, so that equal vectors do, whose
        products some libraries round by their place (MKL under AVX2); else equal to
        `ranks(images @ texts.T, ...)`.
    Example: of two images and two texts
        >>> ranks_from_embeddings(np.eye(2), np.array([[1, 0], [0.6, 0.8]]), np.array([0, 1])).i2t
        array([1, 1])
    """
    images, texts = vectors_of(images, texts)
    if images.ndim != 2 or texts.ndim != 2 or images.shape[1] != texts.shape[1] \
            or 0 in images.shape:
        raise ValueError("images and texts must be (n_images, D) and (n_texts, D), at least 1 x 1; "
                         f"got {tuple(images.shape)}, {tuple(texts.shape)}")
    check_count("block", block)
    owner = check_image_of_text(image_of_text, len(images), len(texts))
    with torch.no_grad(), torch.autocast(images.device.type, enabled=False):
        own = own_products(images, texts, owner, block)
        pieces = product_pieces(images, texts, own, owner, block)
        return rank_pieces(pieces, own, owner, len(images), rounding(images, texts, owner))


def rounding(images: Tensor, texts: Tensor, owner: np.ndarray) -> np.ndarray:
    """Bound the rounding error (T,) of the product of each text with its own image."""
    # sums of D terms in another order differ by about sqrt(D) of the least step
    lengths = images.norm(dim=1).cpu().numpy()[owner] * texts.norm(dim=1).cpu().numpy()
    return lengths * (torch.finfo(images.dtype).eps * images.shape[1] ** 0.5)


def rank_pieces(pieces: Iterable[tuple[int, Matrix]], own: Matrix, owner: np.ndarray,
                n_images: int, slack: np.ndarray | float = 0.0) -> Ranks:
    """Rank from (first row, rows of scores) pieces and the score of each text's own pair.

    own (T,) must hold the very values found in the pieces, or a query would not meet its match;
    slack (T,): what scores by so much less ties with it.
    """
    true = own.cpu().numpy() if isinstance(own, Tensor) else own
    matched = (true - slack).astype(true.dtype)
    best = np.full(n_images, -np.inf, matched.dtype)
    with np.errstate(invalid="ignore"):  # NaN is refused below, with its place
        np.maximum.at(best, owner, matched)
    (at_least_best, at_least_own), = count_pieces(pieces, (best, matched))
    # what was counted includes the best match itself, and further matches that tie with it
    ties = np.bincount(owner[true >= best[owner]], minlength=n_images)
    return Ranks(i2t=1 + at_least_best - ties, t2i=at_least_own)


def count_pieces(pieces: Iterable[tuple[int, Matrix]],
                 *bests: tuple[np.ndarray, np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Count in rows (I,) and columns (T,) the scores at least as high as their best matches.

    For each pair of scores of the best matches of rows (I,) and columns (T,); rows come in pieces,
    each with its first row.
    """
    counts = [(np.zeros(len(rows), np.int64), np.zeros(len(columns), np.int64))
              for rows, columns in bests]
    for start, piece in pieces:
        stop = start + len(piece)
        count = count_tensor if elsewhere(piece) else count_array
        for (best, own), (rows, columns) in zip(bests, counts, strict=True):
            by_row, by_column = count(piece, best[start:stop], own, start)
            rows[start:stop] = by_row
            columns += by_column
    return counts


def elsewhere(scores: Matrix) -> bool:
    """Whether these are on a device that numpy cannot read."""
    return isinstance(scores, Tensor) and scores.device.type != "cpu"


def count_array(piece: Matrix, best: np.ndarray, own: np.ndarray,
                start: int) -> tuple[np.ndarray, np.ndarray]:
    """Count per row the scores >= its best match (i,), per column those >= its own pair (T,)."""
    piece = np.asarray(piece)
    rows, columns = np.zeros(len(piece), np.int64), np.zeros(len(own), np.int64)
    hits = np.empty((min(ROWS, len(piece)), len(own)), bool)
    for a in range(0, len(piece), ROWS):
        part = piece[a:a + ROWS]
        hit = hits[:len(part)]
        check_nan(part, start + a)
        np.greater_equal(part, best[a:a + ROWS, None], out=hit)
        rows[a:a + ROWS] = [np.count_nonzero(row) for row in hit]
        np.greater_equal(part, own, out=hit)
        columns += np.add.reduce(hit.view(np.uint8), axis=0, dtype=np.uint8)
    return rows, columns


def count_tensor(piece: Any, best: np.ndarray, own: np.ndarray,
                 start: int) -> tuple[np.ndarray, np.ndarray]:
    """Count as `count_array`, on the device of a tensor."""
    if piece.isnan().any():
        check_nan(piece.cpu().numpy(), start)
    highest, matched = (torch.from_numpy(x).to(piece.device) for x in (best, own))
    rows, columns = (piece >= highest[:, None]).sum(dim=1), (piece >= matched).sum(dim=0)
    return rows.cpu().numpy(), columns.cpu().numpy()


def check_nan(part: np.ndarray, image: int = 0, text: int = 0) -> None:
    """Raise ValueError naming the first NaN of a part that begins at this image and text."""
    if np.isnan(part.max()):  # max passes NaN on and is several times faster than isnan
        row, column = np.argwhere(np.isnan(part))[0]
        raise ValueError(f"scores must not be NaN; found one at image {image + row}, text "
                         f"{text + column}. The model has diverged or divides by zero (an empty "
                         "mask, a zero vector).")


def check_matrix(scores: Matrix) -> None:
    """Raise ValueError unless this is a matrix of numbers with a row and a column."""
    check_numbers(scores)
    if scores.ndim != 2 or 0 in scores.shape:
        raise ValueError("scores must be (n_images, n_texts), at least 1 x 1; "
                         f"got {tuple(scores.shape)}")


@overload
def wide(values: np.ndarray) -> np.ndarray: ...
@overload
def wide(values: Tensor) -> Tensor: ...
def wide(values: Matrix) -> Matrix:
    """Convert half precision, and whole numbers that it holds, to float32, others to float64."""
    if isinstance(values, Tensor):
        double = values.dtype in (torch.float64, torch.int64, torch.int32)
        return values.double() if double else values.float()
    small = values.dtype.itemsize <= 2 or values.dtype == np.float32
    return values.astype(np.float32 if small else np.float64, copy=False)


def as_tensor(values: Matrix, name: str) -> Tensor:
    """Convert numbers of any kind to a tensor of single or double precision, without gradient."""
    check_numbers(values, name)
    if isinstance(values, Tensor):
        return wide(values.detach())
    return torch.from_numpy(np.require(wide(values), None, ["C", "W"]))


def as_doubles(values: Matrix, name: str) -> np.ndarray:
    """Convert numbers of any kind to a float64 array on the CPU, without gradient."""
    return as_tensor(values, name).cpu().double().numpy()


def vectors_of(images: Matrix, texts: Matrix) -> list[Tensor]:
    """Convert two sets of vectors to tensors of one precision, the higher of theirs."""
    given = as_tensor(images, "images"), as_tensor(texts, "texts")
    return [x.to(torch.promote_types(given[0].dtype, given[1].dtype)) for x in given]


def own_products(images: Tensor, texts: Tensor, owner: np.ndarray, block: int) -> Tensor:
    """Compute the inner product (T,) of each text with its own image.

    By the same matrix product as the blocks, not by a dot product, which rounds differently: two
    images with equal vectors must tie.
    """
    own = texts.new_empty(len(texts))
    order = np.argsort(owner, kind="stable")
    for start in range(0, len(images), block):
        first, last = np.searchsorted(owner[order], (start, start + block))
        column = torch.from_numpy(order[first:last]).to(texts.device)
        scores = padded(images[start:start + block], block) @ padded(texts[column], 64).T
        row = torch.from_numpy(owner[order[first:last]] - start).to(texts.device)
        own[column] = scores[row, torch.arange(len(column), device=texts.device)]
    return own


def product_pieces(images: Tensor, texts: Tensor, own: Tensor, owner: np.ndarray,
                   block: int) -> Iterator[tuple[int, Tensor]]:
    """Yield the first row of each piece of images @ texts.T, and its rows."""
    for start in range(0, len(images), block):
        part = images[start:start + block]
        scores = (padded(part, block) @ texts.T)[:len(part)]
        described = np.flatnonzero((owner >= start) & (owner < start + block))
        column = torch.from_numpy(described).to(texts.device)
        scores[torch.from_numpy(owner[described] - start).to(texts.device), column] = own[column]
        yield start, scores


def padded(vectors: Tensor, rows: int) -> Tensor:
    """Add zero rows up to a multiple of `rows`, and of 64.

    Libraries multiply narrow matrices by other routines that round differently; with equal, wide
    shapes equal vectors give equal scores wherever they are.
    """
    multiple = rows if rows % 64 == 0 else 64
    missing = -len(vectors) % multiple
    zeros = vectors.new_zeros(missing, vectors.shape[1])
    return torch.cat((vectors, zeros)) if missing else vectors
