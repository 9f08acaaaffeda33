"""FR over a grid of its scales: the heat maps of dvse Fig. 7."""

from collections.abc import Sequence

import numpy as np

from itr_study.metrics.ranks import ranks
from itr_study.metrics.scores import AnyScores
from itr_study.metrics.truth import DIRECTIONS
from itr_study.rerank.fast import fast


def fast_grid(scores: AnyScores, image_of_text: np.ndarray, gammas1: Sequence[float],
              gammas2: Sequence[float]) -> dict[str, np.ndarray]:
    """R@1 after FR for every pair of scales: {"i2t": (n1, n2), "t2i": (n1, n2)}, fractions.

    Args:
        scores: (I, T), higher = more alike; image_of_text: (T,).
        gammas1: (n1,) values of gamma1, for t2i of lambda1; gammas2: (n2,) of gamma2 and lambda2.
    Raises: as `fast` and `ranks`.
    Source: dvse, Fig. 7.
    """
    shape = len(gammas1), len(gammas2)
    found = {direction: np.empty(shape) for direction in DIRECTIONS}
    for place in np.ndindex(shape):
        first, second = gammas1[place[0]], gammas2[place[1]]
        best = ranks(fast(scores, first, second, first, second), image_of_text)
        for direction in DIRECTIONS:
            found[direction][place] = (best.by_direction(direction) == 1).mean()
    return found
