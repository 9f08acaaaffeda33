"""The numbers along an axis that a page draws."""

from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from itr_study.digits import number

MOST = 5  # steps between them, about


def ticks_between(low: float, high: float, whole: bool = False) -> list[list[Any]]:
    """Round places on an axis with what stands there; the first and the last hold both ends between
    them.

    Args:    whole: at whole numbers only.
    Example: a quarter needs two decimals
        >>> ticks_between(0.3, 0.9)
        [[0.3, '0.30'], [0.45, '0.45'], [0.6, '0.60'], [0.75, '0.75'], [0.9, '0.90']]
        >>> ticks_between(0, 4, whole=True)[-1]
        [4.0, '4']
    """
    high = high if high > low else low + 1
    ticks = MaxNLocator(MOST, integer=whole).tick_values(low, high)
    step = ticks[1] - ticks[0]
    digits = next((many for many in range(16)
                   if np.abs(ticks - ticks.round(many)).max() < step / 1000), 16)
    return [[round(float(at), digits), number(at, digits)] for at in ticks]
