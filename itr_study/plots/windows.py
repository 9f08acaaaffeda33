"""Windows that slide over the label axis, and what each makes of the candidates (bcls Fig. 3)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from matplotlib.ticker import MaxNLocator

from itr_study.digits import number
from itr_study.losses import LOSSES
from itr_study.plots.style import (
    GREY,
    INK,
    RIGHT,
    WRONG,
    Picture,
    canvas,
    caption,
    headline,
    styled,
)


def window_table(labels: Sequence[float], relaxation: float = 0.2,
                 stride: float = 0.1) -> pd.DataFrame:
    """What every window makes of a query's candidates: window (1 ... M), low, high (its edges),
    negatives (labels below low), between, positives (labels of high and above).

    Example: labels 1 and 0.3 are told apart by windows from (0.4, 0.6) to (0.8, 1)
        >>> table = window_table([1.0, 0.3])
        >>> useful = table[(table.negatives > 0) & (table.positives > 0)]
        >>> len(table), len(useful), useful.low.round(1).tolist()
        (18, 5, [0.4, 0.5, 0.6, 0.7, 0.8])
    """
    low, below, above = memberships(labels, relaxation, stride)
    negatives, positives = below.sum(axis=1), above.sum(axis=1)
    return pd.DataFrame({"window": np.arange(1, len(low) + 1), "low": low, "high": low + relaxation,
                         "negatives": negatives, "between": len(labels) - negatives - positives,
                         "positives": positives})


def memberships(labels: Sequence[float], relaxation: float,
                stride: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lower edges (M,), and as the loss has it which candidates are negative and positive (M, n).
    """
    loss = LOSSES["kendall_window"](relaxation=relaxation, stride=stride)
    row = torch.tensor([list(labels)], dtype=torch.float64)
    upto, after = (places.numpy() for places in loss.windows(row, row == 1))
    window = np.arange(1, len(loss.edges) + 1)[:, None]
    return np.array(loss.edges), after < window, upto >= window


@styled
def sliding_windows(labels: Sequence[float], relaxation: float = 0.2, stride: float = 0.1,
                    chosen: int | None = None, title: str = "", note: str = "") -> Picture:
    """Windows as bars over the label axis, one of them at work on the candidates of a query.

    Args:    labels: relevance of each candidate, in [-1, 1]; relaxation, stride: alpha, beta;
             chosen: the window (1 ... M) that is shown at work, None for one in the middle of
             those that have negatives and positives.
    Source:  bcls Fig. 3.
    """
    table, values = window_table(labels, relaxation, stride), np.asarray(labels, dtype=float)
    useful = (table["negatives"] > 0) & (table["positives"] > 0)
    if chosen is None:
        chosen = int(table["window"][useful if useful.any() else slice(None)].median())
    at, (_, below, above) = table.iloc[chosen - 1], memberships(labels, relaxation, stride)
    figure, (items, bars) = canvas(rows=2, size=(7.2, 4.2), sharex=True, height_ratios=[1, 2.4])
    kinds = np.select([below[chosen - 1], above[chosen - 1]], ["negative", "positive"], "left out")
    looks = {"negative": (WRONG, "x"), "left out": (GREY, "|"), "positive": (RIGHT, "o")}
    for kind, (colour, marker) in looks.items():
        shown = values[kinds == kind]
        items.plot(shown, np.zeros(len(shown)), marker, color=colour, markersize=7,
                   label=f"{kind}: {len(shown)}")
    items.set(yticks=[], ylim=(-1, 1), title=f"window {chosen}: from {number(at['low'], 2)} "
                                              f"to {number(at['high'], 2)}")
    items.legend(ncols=3, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2)
    for row, tells in zip(table.itertuples(), useful, strict=True):
        colour = INK if row.window == chosen else "#0072b2" if tells else "#c9c9c9"
        bars.plot([row.low, row.high], [row.window, row.window], color=colour,
                  linewidth=4 if row.window == chosen else 2.2, solid_capstyle="butt")
    for axes in (items, bars):
        axes.axvspan(at["low"], at["high"], color=INK, alpha=0.08, linewidth=0)
    bars.yaxis.set_major_locator(MaxNLocator(integer=True))
    bars.set(xlabel="label r, cosine of sentence vectors", ylabel="window m", xlim=(-1.03, 1.03))
    headline(figure, title or f"{useful.sum()} of {len(table)} windows tell candidates apart")
    caption(figure, note or f"α = {relaxation:g}, β = {stride:g}; pale: no negatives or no "
                            "positives, adds nothing")
    return figure
