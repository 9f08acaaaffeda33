"""Differences and means in words: for titles, and for tables that a person reads."""

import pandas as pd

from itr_study.plots.names import name_of
from itr_study.plots.tables import title_of


def readable(differences: pd.DataFrame) -> pd.DataFrame:
    """Differences as `Study.compare` gives them, for the eye: names and titles in the place of
    code, two digits."""
    shown = differences.assign(comparison=differences["comparison"].map(name_of),
                               metric=differences["metric"].map(title_of))
    return shown[["comparison", "metric", "n", "difference", "low", "high", "verdict"]].round(2)


def settled(differences: pd.DataFrame) -> str:
    """How many differences an interval settles, and which way: "settled: 3 higher, 2 lower"; and
    how many rest on collapsed runs, which settle nothing."""
    higher, lower, fallen = ((differences["verdict"] == verdict).sum()
                             for verdict in ("higher", "lower", "collapsed"))
    return f"settled: {higher} higher, {lower} lower" + f", {fallen} collapsed" * bool(fallen)


def ordered(means: pd.Series) -> str:
    """Arms with their means, the highest first.

    Example:
        >>> ordered(pd.Series({"sum": 249.7, "hardest": 291.2}))
        'hardest (291) > sum (250)'
    """
    falling = means.sort_values(ascending=False)
    return " > ".join(f"{name_of(arm)} ({value:.0f})" for arm, value in falling.items())
