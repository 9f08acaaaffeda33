"""Intervals of a mean over seeds and of a rank correlation, and the range of chance alone.

Those over other images are in evaluation/table.py.
"""

from collections.abc import Sequence
from warnings import catch_warnings

import numpy as np

LEVEL = 0.95  # confidence


def student_interval(values: Sequence[float] | np.ndarray,
                     level: float = LEVEL) -> tuple[float, float]:
    """Two-sided Student-t interval of the mean; infinite with fewer than two values.

    Args:
        values: (n,), such as one difference for each seed.
        level: confidence, in (0, 1).

    Example: 2 -+ 4.303 / sqrt(3)
        >>> [round(x, 2) for x in student_interval([1.0, 2.0, 3.0])]
        [-0.48, 4.48]
    """
    from scipy import stats

    if len(values) < 2:
        return -np.inf, np.inf
    with catch_warnings(action="ignore", category=RuntimeWarning):  # of values that are all equal
        interval = stats.ttest_1samp(values, 0).confidence_interval(level)
    return float(interval.low), float(interval.high)


def rank_correlation_interval(rho: float, count: int) -> tuple[float, float]:
    """95 % interval of Spearman's rank correlation over independent methods; -1 to 1 below five.

    Source: Fisher's transformation with the variance 1.06 / (n - 3) of Fieller, Hartley and Pearson
        (1957).
    Example: of 12 methods
        >>> [round(end, 2) for end in rank_correlation_interval(0.84, 12)]
        [0.5, 0.96]
    """
    if count < 5:
        return -1.0, 1.0
    half = 1.959964 * (1.06 / (count - 3)) ** 0.5
    middle = np.arctanh(np.clip(rho, -1 + 1e-12, 1 - 1e-12))
    return float(np.tanh(middle - half)), float(np.tanh(middle + half))


def range_by_chance(count: int) -> float:
    """Average range of some draws of a normal distribution, in standard deviations.

    The integral of 1 - P^n - (1 - P)^n over its axis.

    Example: two draws are 2 / sqrt(pi) apart
        >>> round(range_by_chance(2), 4), round(range_by_chance(30), 3)
        (1.1284, 4.086)
    """
    from scipy import stats

    axis = np.linspace(-10, 10, 4001)
    below = stats.norm.cdf(axis)
    return float(np.trapezoid(1 - below**count - (1 - below) ** count, axis))
