"""Intervals of a mean over seeds and over models, of a rank correlation; the range of chance.

Those over other images are in evaluation/table.py.
"""

from collections.abc import Sequence
from typing import NamedTuple
from warnings import catch_warnings

import numpy as np

LEVEL = 0.95  # confidence


def student_interval(values: Sequence[float] | np.ndarray, level: float = LEVEL,
                     error: float = 0.0) -> tuple[float, float]:
    """Two-sided Student-t interval of the mean; infinite with fewer than two values.

    Args:
        values: (n,), such as one difference for each seed.
        level: confidence, in (0, 1).
        error: standard error of the mean over something else of which there are many, such as
            images: squares of half widths add up (Graybill and Wang, 1980).

    Example: 2 -+ 4.303 / sqrt(3)
        >>> [round(x, 2) for x in student_interval([1.0, 2.0, 3.0])]
        [-0.48, 4.48]
    """
    from scipy import stats

    if len(values) < 2:
        return -np.inf, np.inf
    with catch_warnings(action="ignore", category=RuntimeWarning):  # of values that are all equal
        low, high = stats.ttest_1samp(values, 0).confidence_interval(level)
    half = (high - low) / 2
    wider = np.hypot(half, stats.norm.isf((1 - level) / 2) * error) - half
    return float(low - wider), float(high + wider)


def crossed_error(values: np.ndarray) -> float:
    """Standard error over the columns of a mean over rows and columns, beyond that over the rows.

    Both are drawn at random, as seeds and images are. The variance of the mean is that over rows,
    plus that over columns, minus that of the residuals, which both contain; this is the root of
    the last two, or 0.

    Source: Searle, Casella and McCulloch, Variance Components, 1992, chapter 4: two-way crossed.

    Args: values: (rows, columns), two or more of each, such as seeds and images.

    Example: columns alone differ, with a variance of 0.5: sqrt(0.5 / 2)
        >>> round(crossed_error(np.array([[0.0, 1.0], [0.0, 1.0]])), 3)
        0.5
    """
    rows, columns = values.shape
    residuals = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    of_residuals = (residuals**2).sum() / ((rows - 1) * (columns - 1)) / (rows * columns)
    return float(np.sqrt(max(values.mean(0).var(ddof=1) / columns - of_residuals, 0.0)))


class Pooled(NamedTuple):
    """A mean over groups, its interval, and the standard deviation between groups."""

    mean: float
    low: float
    high: float
    between: float


def random_effects(means: np.ndarray, errors: np.ndarray, level: float = LEVEL) -> Pooled:
    """Summarise an effect that differs between groups, such as models.

    Source: the variance between groups of DerSimonian and Laird (1986); the interval of Hartung
        and Knapp (2001), never narrower than the errors of the groups allow (Knapp and Hartung,
        2003): groups that agree by chance settle nothing.

    Args:
        means: (k,) of k >= 2 groups.
        errors: (k,) standard errors of these means, above 0.
        level: confidence of the interval, in (0, 1).
    Raises: ValueError: fewer than two groups, or an error that is not above 0.

    Example: weights 1 and 1, Q = 8, between = sqrt((8 - 1) / 1), mean 2 -+ 12.71 x 2
        >>> [round(value, 2) for value in random_effects([0.0, 4.0], [1.0, 1.0])]
        [2.0, -23.41, 27.41, 2.65]
    """
    from scipy import stats

    means, variances = np.asarray(means, float), np.asarray(errors, float)**2
    if len(means) < 2 or not (variances > 0).all():
        raise ValueError("expected two groups or more with standard errors above 0, got "
                         f"{len(means)} with {errors}; leave out groups without spread")
    weights, free = 1 / variances, len(means) - 1
    spread = (weights * (means - np.average(means, weights=weights))**2).sum() - free
    between = max(spread / (weights.sum() - (weights**2).sum() / weights.sum()), 0.0)
    weights = 1 / (variances + between)
    mean = np.average(means, weights=weights)
    scale = max((weights * (means - mean)**2).sum() / free, 1.0)
    half = stats.t.isf((1 - level) / 2, free) * np.sqrt(scale / weights.sum())
    return Pooled(float(mean), float(mean - half), float(mean + half), float(np.sqrt(between)))


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
