"""How far a mean would move with other seeds: the interval of Student."""

import numpy as np

LEVEL = 0.95  # confidence


def student_interval(values: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Two-sided Student-t interval of the mean; infinite with fewer than two values.

    Example:
        >>> [round(x, 2) for x in student_interval([1.0, 2.0, 3.0])]  # 2 -+ 4.303 / sqrt(3)
        [-0.48, 4.48]
    """
    from scipy import stats

    values = np.asarray(values, dtype=float)
    if len(values) < 2:
        return -np.inf, np.inf
    half = stats.t.ppf((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    return float(values.mean() - half), float(values.mean() + half)
