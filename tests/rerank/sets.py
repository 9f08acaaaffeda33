"""What the tests of re-rankers share."""

import numpy as np

from itr_study.metrics import first


def cosines(seed, images=12, captions=3, matched=0.3):
    """Scores (I, T) float32 in [-1, 1] with a hub or two, and image_of_text (T,), in any order."""
    rng = np.random.default_rng(seed)
    owner = rng.permutation(np.repeat(np.arange(images), captions))
    scores = 0.2 * rng.standard_normal((images, len(owner)))
    scores += 0.15 * rng.standard_normal(len(owner)) + 0.15 * rng.standard_normal((images, 1))
    scores[owner, np.arange(len(owner))] += matched
    return np.clip(scores, -1, 1).astype(np.float32), owner


def orders(scores):
    """All results of every query, best first, ties by lower index: lists of images, of texts."""
    return [found.tolist() for found in first(scores, max(scores.shape)).values()]


def as_lists(found):
    """Ranks as two lists."""
    return found.i2t.tolist(), found.t2i.tolist()
