"""Random test sets that the tests of metrics share."""

import numpy as np

# Every metric of (scores, truth); each has an oracle.
METRICS = ("recall", "map_at_r", "r_precision", "ndcg", "kendall", "coherent",
           "mean_relevance")


def random_set(seed, ties=False, images=None):
    """Scores (I, T) float32 and image_of_text (T,) in random order, 1 to 5 texts per image."""
    rng = np.random.default_rng(seed)
    images = images or int(rng.integers(2, 40))
    owner = rng.permutation(np.repeat(np.arange(images), rng.integers(1, 6, images)))
    if ties:
        return rng.integers(0, 4, (images, len(owner))).astype(np.float32), owner
    distinct = rng.permutation(images * len(owner)).reshape(images, len(owner))
    return distinct.astype(np.float32), owner
