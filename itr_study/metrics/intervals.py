"""How far a mean would move with other seeds: the interval of Student. (With other images:
evaluation/bootstrap.py.)
"""

from collections.abc import Sequence
from warnings import catch_warnings

import numpy as np

LEVEL = 0.95  # confidence


def student_interval(values: Sequence[float] | np.ndarray,
                     level: float = LEVEL) -> tuple[float, float]:
    """Two-sided Student-t interval of the mean; infinite with fewer than two values.

    Args:    values: (n,), such as one difference for each seed; level: confidence, in (0, 1).

    Example:
        >>> [round(x, 2) for x in student_interval([1.0, 2.0, 3.0])]  # 2 -+ 4.303 / sqrt(3)
        [-0.48, 4.48]
    """
    from scipy import stats

    if len(values) < 2:
        return -np.inf, np.inf
    with catch_warnings(action="ignore", category=RuntimeWarning):  # of values that are all equal
        interval = stats.ttest_1samp(values, 0).confidence_interval(level)
    return float(interval.low), float(interval.high)
