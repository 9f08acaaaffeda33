"""Values on a grid (heat map) and differences with their intervals (the ledger)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.patches import Rectangle

from itr_study.digits import number
from itr_study.plots.names import name_of
from itr_study.plots.style import (
    DIFFERENCES,
    GREY,
    INK,
    RIGHT,
    VALUES,
    WRONG,
    Picture,
    canvas,
    caption,
    headline,
    room_for_words,
    styled,
)

BLUE = "#0072b2"
# What one difference says by itself: its sign; for a claim, against it, neither; or nothing at all,
# since runs have collapsed or fit their training images too differently. One whose whole interval
# lies inside its margin says that it is none to speak of.
OUTCOME_LOOKS = {"settled": (INK, "o", "full"), "for": (RIGHT, "o", "full"),
                 "against": (WRONG, "X", "full"), "open": (GREY, "o", "none"),
                 "collapsed": (GREY, "D", "none"), "unlike fit": (GREY, "v", "none"),
                 "the same (inside the zone)": (BLUE, "D", "full")}
OUTCOMES = {"same": "the same (inside the zone)", "higher": "settled",
            "lower": "settled", "undecided": "open", "collapsed": "collapsed"}


@styled
def heat_map(table: pd.DataFrame, title: str, x_label: str, y_label: str, value_label: str,
             *, limits: tuple[float, float] | None = None, signed: bool = False,
             best: str | None = "max", framed: Sequence[tuple[int, int]] = (),
             note: str = "") -> Picture:
    """A value for every cell of a grid; printed where there are at most 12 x 12 cells.

    Args:    table: wide frame, index down, columns across.
             limits: colour limits, the same for pictures that are compared.
             signed: differences or correlations: a diverging map centred at zero.
             best: outline the "max" or "min" cell; None outlines nothing.
             framed: (row, column) of cells that get a frame.
    """
    import seaborn  # slow to load, and few pictures need it

    figure, (axes,) = canvas(size=(max(4.8, 1.6 + 0.48 * table.shape[1]),
                                   max(3.2, 1.3 + 0.34 * table.shape[0])))
    values = table.to_numpy(dtype=float)
    extent = np.nanmax(np.abs(values))
    low, high = limits or ((-extent, extent) if signed
                           else (np.nanmin(values), np.nanmax(values)))
    seaborn.heatmap(table.astype(float), vmin=low, vmax=high, ax=axes,
                    cmap=DIFFERENCES if signed else VALUES, cbar_kws={"label": value_label},
                    annot=np.vectorize(cell_text)(values) if max(values.shape) <= 12 else None,
                    fmt="", annot_kws={"fontsize": 8})
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.tick_params(length=3, rotation=0)
    for row, column in framed:
        axes.add_patch(Rectangle((column + 0.03, row + 0.03), 0.94, 0.94, fill=False,
                                 edgecolor=INK, linewidth=2))
    if best:
        pick = {"max": np.nanargmax, "min": np.nanargmin}[best]
        row, column = np.unravel_index(pick(values), values.shape)
        axes.add_patch(Rectangle((column, row), 1, 1, fill=False, edgecolor=WRONG, linewidth=2,
                                 clip_on=False))
    headline(figure, title)
    caption(figure, note)
    return figure


def cell_text(value: float) -> str:
    """A number as it fits into a cell; nothing where there is none.

    Example:
        >>> [cell_text(value) for value in (12.34, 1.0, 0.9999, -0.5, float("nan"))]
        ['12.3', '1', '<1', '−0.50', '']
    """
    if np.isnan(value):
        return ""
    if abs(value) > 1:
        return number(value, 1)
    if abs(value) == 1:
        return number(value, 0)
    return "<1" if round(value, 2) == 1 else number(value, 2)


@styled
def dot_intervals(table: pd.DataFrame, title: str, x_label: str = "difference, points",
                  note: str = "") -> Picture:
    """Paired differences with their 95 % intervals around a zero line, grouped by claim.

    Args:    table: label, difference, low, high, and where known: outcome (colour, mark; one of
             OUTCOME_LOOKS; else that of `verdict`, as `Study.compare` gives it), group (a heading
             over neighbouring rows), margin (a grey zone around zero), reported (a hollow grey
             square).
    """
    if "verdict" in table and "outcome" not in table:
        table = table.assign(outcome=table["verdict"].str.split().str[0].map(OUTCOMES))
    heads = table["group"].ne(table["group"].shift()) if "group" in table \
        else pd.Series(False, index=table.index)
    heights = np.arange(len(table)) + heads.cumsum().to_numpy() * 1.0
    figure, (axes,) = canvas(size=(7.2, max(2.2, 1.4 + 0.2 * (heights[-1] + 1))))
    for height, (_, row) in zip(heights, table.iterrows(), strict=True):
        interval_row(axes, height, row)
    axes.axvline(0, color=INK, linewidth=0.8)
    labels = [*zip(heights, table["label"], strict=True)]
    labels += [(height - 1, group) for height, group in zip(
        heights[heads], table.loc[heads, "group"], strict=True)] if heads.any() else []
    axes.set_yticks([height for height, _ in labels], [name_of(label) for _, label in labels])
    for tick in axes.get_yticklabels()[len(table):]:
        tick.set_fontweight("bold")
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel=x_label, ylim=(heights[-1] + 0.7, -0.7))
    axes.grid(False, axis="y")
    shown = [outcome for outcome in OUTCOME_LOOKS if "outcome" in table
             and (table["outcome"] == outcome).any()]
    entries = [axes.plot([], [], marker=OUTCOME_LOOKS[outcome][1], linestyle="",
                         fillstyle=OUTCOME_LOOKS[outcome][2], color=OUTCOME_LOOKS[outcome][0],
                         label=outcome)[0] for outcome in shown]
    if "reported" in table and table["reported"].notna().any():
        entries += axes.plot([], [], marker="s", linestyle="", markerfacecolor="white",
                             color=GREY, label="reported")
    if entries:
        axes.legend(handles=entries, loc="lower right", bbox_to_anchor=(1, 1), ncols=4,
                    borderaxespad=0.2)
    headline(figure, title)
    caption(figure, note)
    room_for_words(figure)
    return figure


def interval_row(axes, height: float, row: pd.Series) -> None:
    """One difference: its interval as a bar, its mean as a mark, margin and printed number."""
    colour, marker, fill = OUTCOME_LOOKS.get(row.get("outcome"), (INK, "o", "full"))
    margin, printed = row.get("margin", np.nan), row.get("reported", np.nan)
    if not pd.isna(margin):
        axes.barh(height, 2 * margin, left=-margin, height=0.9, color="#ececec", zorder=0)
    if not pd.isna(printed):  # below our own, which it may touch
        axes.plot(printed, height, "s", markerfacecolor="white", color=GREY)
    if np.isfinite([row["low"], row["high"]]).all():
        axes.plot([row["low"], row["high"]], [height, height], color=colour, linewidth=1.6)
    axes.plot(row["difference"], height, marker, fillstyle=fill, color=colour,
              markerfacecolor="white" if fill == "none" else colour)
