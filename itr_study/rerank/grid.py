"""FR over a grid of its scales: the heat maps of dvse Fig. 7."""

from collections.abc import Sequence

import numpy as np

from itr_study.metrics.scores import AnyScores, Scores
from itr_study.metrics.truth import DIRECTIONS, check_image_of_text
from itr_study.rerank.base import checked
from itr_study.rerank.fast import Normalised, check_scale


def fast_grid(scores: AnyScores, image_of_text: np.ndarray, gammas1: Sequence[float],
              gammas2: Sequence[float]) -> dict[str, np.ndarray]:
    """R@1 after FR for every pair of scales: {"i2t": (n1, n2), "t2i": (n1, n2)}, fractions.

    Args:
        scores: (I, T), higher = more alike; image_of_text: (T,).
        gammas1: (n1,) values of gamma1, for t2i of lambda1; gammas2: (n2,) of gamma2 and lambda2.
    Raises: as `fast` and `ranks`.
    Source: dvse, Fig. 7.
    """
    scores = Scores.of(scores)
    for name, values in (("gammas1", gammas1), ("gammas2", gammas2)):
        for value in values:
            check_scale(name, value)
    owner = check_image_of_text(image_of_text, *scores.shape)
    found = {direction: np.empty((len(gammas1), len(gammas2))) for direction in DIRECTIONS}
    for direction, table in found.items():
        matrix = checked(scores.by_direction(direction))
        for row, first in zip(table, gammas1, strict=True):
            known = {}  # what the sums over queries are does not depend on the second scale
            for place, second in enumerate(gammas2):
                one = Normalised(matrix, {direction: (first, second)}, known)
                row[place] = (one.ranks_of(direction, owner) == 1).mean()
    return found
