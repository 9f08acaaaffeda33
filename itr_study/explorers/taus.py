"""How far scores agree with ratings of a few pairs, and how little so few pairs say."""

import numpy as np

from itr_study.data.judgements import Judgements
from itr_study.metrics.human import human_correlation

FEWEST = 5  # pairs from which on an interval is known


def tau_interval(tau: float, pairs: int) -> tuple[float, float]:
    """About 95 % interval of Kendall's tau over other pairs, by Fisher's transformation with the
    variance 0.437 / (n - 4) of Fieller, Hartley and Pearson (1957); they had no ties.

    A tau of 1 is taken for one that lies half a step below it: with few pairs it may be chance.

    Args:    pairs: at least 5.

    Example:
        >>> [round(end, 2) for end in tau_interval(0.6, 20)], tau_interval(1.0, 5)[0] < 0.2
        ([0.35, 0.77], True)
    """
    half = 1.959964 * (0.437 / (pairs - 4)) ** 0.5
    most = 1 - 2 / (pairs * (pairs - 1))  # neighbours that swap move it by twice as much below 1
    middle = np.arctanh(np.clip(tau, -most, most))
    low, high = (float(np.tanh(middle + way * half)) for way in (-1, 1))
    return min(low, tau), max(high, tau)


def agreement(scores: np.ndarray, ratings: np.ndarray) -> tuple[float, float, float]:
    """Kendall's tau-c of scores (N,) with all ratings (N, raters) of each pair, and its interval.

    Example: equal grades of five pairs
        >>> agreement(np.array([1, 2, 3, 4, 4]), np.array([[1.0], [2], [3], [4], [4]]))[0]
        0.96
    """
    pairs = len(scores)
    nobody = ("",) * pairs
    judged = Judgements("you", nobody, nobody, ratings, np.zeros(pairs, bool), "c")
    (tau,) = human_correlation(scores, judged).values()
    return tau, *tau_interval(tau, pairs)
