"""The differences behind claims: each beside its claim in words, each kind of unit on its own axis.
"""

from textwrap import wrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from itr_study.digits import signed, with_interval
from itr_study.plots.grids import OUTCOME_LOOKS
from itr_study.plots.names import name_of
from itr_study.plots.style import GREY, INK, Picture, canvas, caption, headline, styled
from itr_study.plots.verdicts import LOOKS

WIDTH, ROW = 9.6, 0.2  # inches
WORDS = 1.15  # inches from the left edge to the words of a claim, behind its verdict
LETTERS = int((WIDTH - WORDS - 0.1) * 72 / (0.56 * 8.5))
# Where one interval reaches FAR times as far as four fifths of them, the axis ends at NEAR times.
NEAR, FAR, FEW = 2.0, 3.0, 5  # of fewer than FEW rows none is an outlier
STANDINGS = {"for": "settled for the claim", "against": "settled against it",
             "open": "cannot tell"}
PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}


@styled
def claim_dots(table: pd.DataFrame, title: str, note: str = "") -> Picture:
    """Differences with their 95 % intervals below the verdict and the words of their claim; a panel
    for each unit. An interval that would flatten the others stands at the edge, with its numbers.

    Args:    table: unit, claim (its words), verdict (an outcome of the ledger), label, standing
             (one of OUTCOME_LOOKS), difference, low, high, margin (of an equivalence, drawn as a
             grey zone; else NaN); rows of a claim next to each other.
    """
    units = list(table.groupby("unit", sort=False))
    heights = [rows_of(part)[-1] for _, part in units]
    figure, panels = canvas(rows=len(units), height_ratios=[top + 1.2 for top in heights],
                            size=(WIDTH, 1.2 + ROW * sum(heights) + 0.62 * len(units)))
    for axes, (unit, part) in zip(panels, units, strict=True):
        unit_panel(axes, part)
        axes.set_xlabel(unit)
    shown = [mark for mark in OUTCOME_LOOKS if (table["standing"] == mark).any()]
    entries = [panels[0].plot([], [], OUTCOME_LOOKS[mark][1], fillstyle=OUTCOME_LOOKS[mark][2],
                              color=OUTCOME_LOOKS[mark][0], label=STANDINGS.get(mark, mark))[0]
               for mark in shown]
    panels[0].legend(handles=entries, loc="lower right", bbox_to_anchor=(1, 1), ncols=5,
                     borderaxespad=0.2)
    headline(figure, title)
    caption(figure, note)
    return figure


def rows_of(part: pd.DataFrame) -> np.ndarray:
    """The height of every row, which leaves room for the lines of its claim above the first; last
    of all the height that the panel needs."""
    first = part["claim"].ne(part["claim"].shift())
    lines = [len(wrap(claim, LETTERS)) if begins else 0
             for claim, begins in zip(part["claim"], first, strict=True)]
    return np.append(np.arange(len(part)) + np.cumsum(lines), len(part) + sum(lines))


def unit_panel(axes: Axes, part: pd.DataFrame) -> None:
    """The claims of one unit: words above, rows below."""
    *heights, bottom = rows_of(part)
    limit, before = reach(part), None
    for height, row in zip(heights, part.itertuples(), strict=True):
        if row.claim != before:
            words_above(axes, height, row)
        before = row.claim
        difference_row(axes, height, row, limit)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(heights, [name_of(label) for label in part["label"]])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set(ylim=(bottom - 0.3, -0.7))
    if limit is not None:
        axes.set_xlim(-limit, limit)
    axes.grid(False, axis="y")


def reach(part: pd.DataFrame) -> float | None:
    """How far from zero an axis goes where a few intervals would flatten the rest; None: no limit.

    Example:
        >>> rows = pd.DataFrame({"difference": [1.0, 2, 3, 4, 94], "low": [0.0, 1, 2, 3, 90],
        ...                      "high": [2.0, 3, 4, 5, 98]})
        >>> reach(rows), reach(rows.head(4))
        (10.0, None)
    """
    ends = part[["difference", "low", "high"]].abs().max(axis=1)
    usual = ends.quantile(0.8, interpolation="lower")
    return None if len(ends) < FEW or ends.max() <= FAR * usual else float(NEAR * usual)


def words_above(axes: Axes, height: float, row) -> None:
    """The verdict of a claim and its words, from the left edge of the picture."""
    lines = wrap(row.claim, LETTERS)
    colour = LOOKS[row.verdict][0] if row.verdict in ("reproduced", "contradicted") else GREY
    at = {"xycoords": (axes.figure.transFigure, axes.transData), "annotation_clip": False,
          "in_layout": False, "fontsize": 8.5, "va": "center", "bbox": PAPER, "zorder": 3}
    for place, line in enumerate(lines):
        where = height - len(lines) + place
        if not place:
            axes.annotate(row.verdict, (0.1 / WIDTH, where), color=colour, fontweight="bold", **at)
        axes.annotate(line, (WORDS / WIDTH, where), color=INK, **at)


def difference_row(axes: Axes, height: float, row, limit: float | None) -> None:
    """One difference: its interval as a bar, its mean as a mark; beyond the edge in numbers."""
    colour, marker, fill = OUTCOME_LOOKS[row.standing]
    face = {"fillstyle": fill, "color": colour,
            "markerfacecolor": "white" if fill == "none" else colour}
    known = np.isfinite([row.low, row.high]).all()
    if not np.isnan(row.margin):
        axes.barh(height, 2 * row.margin, left=-row.margin, height=0.9, color="#e4e4e4", zorder=0)
    if limit is not None and max(abs(row.difference), abs(row.low), abs(row.high)) > limit:
        side = np.sign(row.difference)
        words = (with_interval(row.difference, row.low, row.high) if known
                 else signed(row.difference))
        axes.plot(0.98 * side * limit, height, marker, **face)
        axes.annotate(f"{words} {'→' if side > 0 else '←'}",
                      (0.95 * side * limit, height), fontsize=8, color=colour, va="center",
                      ha="right" if side > 0 else "left")
        return
    if known:
        axes.plot([row.low, row.high], [height, height], color=colour, linewidth=1.6)
    axes.plot(row.difference, height, marker, **face)
