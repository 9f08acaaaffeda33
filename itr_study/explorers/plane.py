"""Images and texts of one space on a plane, and how good and how common each of them is there."""

from collections.abc import Hashable, Mapping
from typing import NamedTuple

import numpy as np

from itr_study.metrics.first import first, first_with_scores
from itr_study.metrics.ranks import ranks, ranks_from_embeddings
from itr_study.metrics.scores import AnyScores, Scores

FIRST = 10  # results of a query that count for hubness
BLOCK = 512  # queries scored at a time

Frame = tuple[np.ndarray, np.ndarray]  # images (I, D), texts (T, D)


class Plane(NamedTuple):
    """Places of all images, then of all texts, frame by frame, on axes that stay.

    places: frame -> (I + T, 2) float64; shares: frame -> (2,) of the variance of its vectors that
    each axis keeps, in [0, 1].
    """

    places: dict[Hashable, np.ndarray]
    shares: dict[Hashable, np.ndarray]

    @property
    def bounds(self) -> tuple[np.ndarray, float]:
        """(2,) the middle of all places of all frames, and half the side of a square that holds
        them."""
        every = np.concatenate(list(self.places.values()))
        low, high = every.min(axis=0), every.max(axis=0)
        return (low + high) / 2, float((high - low).max() / 2) or 1.0


def plane_of(frames: Mapping[Hashable, Frame]) -> Plane:
    """The first two principal components of the last frame, and all frames on them.

    Each axis points to where its largest loading is positive, whatever the solver says, so that the
    same vectors give the same picture everywhere.
    """
    from sklearn.decomposition import PCA  # here: it takes a second, which a search need not pay

    vectors = {name: np.concatenate(frame).astype(np.float64) for name, frame in frames.items()}
    with np.errstate(invalid="ignore", divide="ignore"):  # its shares of no variance, not used
        fitted = PCA(2, svd_solver="covariance_eigh").fit(list(vectors.values())[-1])
    axes = fitted.components_
    axes = axes * np.sign(np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], 1))
    places = {name: (values - fitted.mean_) @ axes.T for name, values in vectors.items()}
    return Plane(places, {name: shares(vectors[name], places[name]) for name in vectors})


def shares(vectors: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(2,) of the variance of vectors (n, D) what two axes keep of it; 0 where there is none."""
    whole = vectors.var(axis=0).sum()
    return places.var(axis=0) / whole if whole > 0 else np.zeros(2)


class Known(NamedTuple):
    """Of all images, then all texts: ranks (I + T,), of the best match of each, from 1; counts
    (I + T,), of how many queries of the other kind each is among the first FIRST: the counts whose
    skewness `metrics.hubness` is."""

    ranks: np.ndarray
    counts: np.ndarray


def known_of(frame: Frame, image_of_text: np.ndarray) -> Known:
    """What the inner products of two sets of vectors say.

    Example: of galleries of two, all are among the first ten of both queries
        >>> frame = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.6, 0.8]])
        >>> known_of(frame, np.array([0, 1]))
        Known(ranks=array([1, 1, 1, 1]), counts=array([2, 2, 2, 2]))
    """
    images, texts = (np.asarray(part, np.float32) for part in frame)
    found = ranks_from_embeddings(images, texts, image_of_text)
    return Known(np.concatenate([found.i2t, found.t2i]),
                 np.concatenate([counts_of(images, texts), counts_of(texts, images)]))


def ranks_by(scores: AnyScores, image_of_text: np.ndarray) -> np.ndarray:
    """(I + T,) of all images, then all texts, the rank of the best match by the scores (I, T)."""
    found = ranks(scores, image_of_text)
    return np.concatenate([found.i2t, found.t2i])


def known_by(scores: AnyScores, image_of_text: np.ndarray) -> Known:
    """What the scores (I, T) of a model say."""
    results = first(scores, FIRST)
    n_images, n_texts = Scores.of(scores).shape
    return Known(ranks_by(scores, image_of_text),
                 np.concatenate([np.bincount(results["t2i"].ravel(), minlength=n_images),
                                 np.bincount(results["i2t"].ravel(), minlength=n_texts)]))


def counts_of(candidates: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """(n,) of how many queries (q, D) each candidate (n, D) is among the first FIRST."""
    counts = np.zeros(len(candidates), np.int64)
    for start in range(0, len(queries), BLOCK):
        scores = queries[start:start + BLOCK] @ candidates.T
        found, _ = first_with_scores(scores, FIRST, "i2t")  # rows ask
        counts += np.bincount(found.ravel(), minlength=len(candidates))
    return counts


def spread_out(places: np.ndarray, centre: np.ndarray, most: int) -> np.ndarray:
    """Indices of at most so many of places (n, 2): the nearest to a centre first, then always the
    one that is farthest from those taken.

    Example:
        >>> spread_out(np.array([[0, 0], [1, 0], [9, 0], [8, 0]]), np.array([1.2, 0]), 3)
        array([1, 2, 0])
    """
    if not len(places):
        return np.zeros(0, np.int64)
    taken = [int(np.square(places - centre).sum(axis=1).argmin())]
    far = np.square(places - places[taken[0]]).sum(axis=1)
    far[taken[0]] = -1
    while len(taken) < min(most, len(places)):
        taken.append(int(far.argmax()))
        far = np.minimum(far, np.square(places - places[taken[-1]]).sum(axis=1))
        far[taken] = -1
    return np.array(taken)
