"""Percent begins here: metrics give fractions, tables and plots print percent."""

import numpy as np


def percent(part: float | np.ndarray, whole: float = 1) -> float | np.ndarray:
    """Convert a fraction, or a part of a whole, to percent.

    Example:
        >>> percent(0.25), percent(3, 4)
        (25.0, 75.0)
    """
    return 100 * part / whole
