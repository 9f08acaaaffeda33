"""Random test sets with graded relevance, and the bad ones, for every metric that reads it."""

import numpy as np
import pytest

from itr_study.metrics import Truth


def graded_set(seed, ties=False, dtype=np.float32):
    """Scores (I, T), relevance (I, T) float32 in [0, 1], and the truth that gives it in blocks."""
    rng = np.random.default_rng(seed)
    images = int(rng.integers(1, 12))
    owner = rng.permutation(np.repeat(np.arange(images), rng.integers(1, 4, images)))
    shape = (images, len(owner))
    scores = rng.integers(-1, 3, shape) if ties else rng.standard_normal(shape)
    relevance = rng.integers(0, 4, shape) / 4 if ties else rng.random(shape)
    relevance = relevance.astype(np.float32)
    relevance[owner, np.arange(len(owner))] = 1
    return scores.astype(dtype), relevance, graded(relevance, owner)


def graded(relevance, owner=None):
    """A truth with this relevance; without owners every text belongs to image 0, 1, ... in turn."""
    relevance = np.asarray(relevance)
    owner = np.arange(relevance.shape[1]) % len(relevance) if owner is None else owner
    return Truth(owner, len(relevance), graded=lambda images: relevance[images])


def bad_input_is_refused(metric):
    """Every metric on graded relevance refuses the same things."""
    ok = graded([[1, 0.5], [0, 1]])
    nan = np.array([[0.1, 0.2], [0.3, np.nan]])
    for scores, truth, message in [
            (nan, ok, "NaN; found one at image 1, text 1"),
            (nan.astype(np.float32), ok, "NaN; found one at image 1, text 1"),
            (np.zeros((3, 2)), ok, r"\(2, 2\); got \(3, 2\)"),
            (np.zeros((2, 2)), graded([[1, -0.5], [0, 1]]), "found -0.5 to 1"),
            (np.zeros((2, 2)), graded([[1, 0.5], [0, 1.5]]), "found 0.0 to 1.5"),
            (np.zeros((2, 2)), graded([[1, 0.5], [np.nan, 1]]), "relevance must lie in"),
            (np.zeros((2, 2)), Truth(np.array([0, 1]), graded=lambda images: np.eye(3)),
             r"must be \(2, 2\), got \(3, 3\)")]:
        with pytest.raises(ValueError, match=message):
            metric(scores, truth)
