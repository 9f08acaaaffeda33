"""Values on a grid (heat map) and differences with their intervals (the ledger)."""

import numpy as np
import pandas as pd
from matplotlib.patches import Rectangle

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
    styled,
)

OUTCOME_LOOKS = {"reproduced": (RIGHT, "o", "full"), "contradicted": (WRONG, "X", "full"),
                 "undecided": (GREY, "o", "none")}


@styled
def heat_map(table: pd.DataFrame, title: str, x_label: str, y_label: str, value_label: str,
             *, limits: tuple[float, float] | None = None, signed: bool = False,
             best: str | None = "max", note: str = "") -> Picture:
    """A value for every cell of a grid; printed where there are at most 12 x 12 cells.

    Args:    table: wide frame, index down, columns across.
             limits: colour limits, the same for pictures that are compared.
             signed: differences or correlations: a diverging map centred at zero.
             best: outline the "max" or "min" cell; None outlines nothing.
    """
    figure, (axes,) = canvas(size=(max(4.8, 1.6 + 0.48 * table.shape[1]),
                                   max(3.2, 1.3 + 0.34 * table.shape[0])))
    values = table.to_numpy(dtype=float)
    extent = np.nanmax(np.abs(values))
    low, high = limits or ((-extent, extent) if signed
                           else (np.nanmin(values), np.nanmax(values)))
    image = axes.imshow(values, cmap=DIFFERENCES if signed else VALUES, vmin=low, vmax=high,
                        aspect="auto")
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.set_xticks(range(table.shape[1]), table.columns)
    axes.set_yticks(range(table.shape[0]), table.index)
    axes.grid(False)
    if max(values.shape) <= 12:
        print_values(axes, image, values)
    if best:
        pick = {"max": np.nanargmax, "min": np.nanargmin}[best]
        row, column = np.unravel_index(pick(values), values.shape)
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=WRONG,
                                 linewidth=2, clip_on=False))
    figure.colorbar(image, label=value_label)
    headline(figure, title)
    caption(figure, note)
    return figure


def print_values(axes, image, values: np.ndarray) -> None:
    """The number in each cell, black or white, whichever reads better on its colour."""
    for (row, column), value in np.ndenumerate(values):
        if np.isnan(value):
            continue
        red, green, blue, _ = image.cmap(image.norm(value))
        light = 0.299 * red + 0.587 * green + 0.114 * blue > 0.55
        text = f"{value:.1f}" if abs(value) >= 1 else f"{value:.2f}"
        axes.text(column, row, text, ha="center", va="center", fontsize=8,
                  color="black" if light else "white")


@styled
def dot_intervals(table: pd.DataFrame, title: str, x_label: str = "difference, points",
                  note: str = "") -> Picture:
    """Paired differences with their 95 % intervals around a zero line, grouped by claim.

    Args:    table: label, difference, low, high, and where known: outcome (colour, mark),
             group (a heading over neighbouring rows), margin (a grey zone around zero),
             reported (a hollow grey square).
    """
    heads = table["group"].ne(table["group"].shift()) if "group" in table \
        else pd.Series(False, index=table.index)
    heights = np.arange(len(table)) + heads.cumsum().to_numpy() * 1.0
    figure, (axes,) = canvas(size=(7.2, max(2.2, 1.1 + 0.2 * (heights[-1] + 1))))
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
    shown = [said for said in OUTCOME_LOOKS if "outcome" in table
             and (table["outcome"] == said).any()]
    entries = [axes.plot([], [], marker=OUTCOME_LOOKS[said][1], linestyle="",
                         fillstyle=OUTCOME_LOOKS[said][2], color=OUTCOME_LOOKS[said][0],
                         label=said)[0] for said in shown]
    if "reported" in table and table["reported"].notna().any():
        entries += axes.plot([], [], marker="s", linestyle="", markerfacecolor="white",
                             color=GREY, label="reported")
    if entries:
        axes.legend(handles=entries, loc="lower right", bbox_to_anchor=(1, 1), ncols=4,
                    borderaxespad=0.2)
    headline(figure, title)
    caption(figure, note)
    return figure


def interval_row(axes, height: float, row: pd.Series) -> None:
    """One difference: its interval as a bar, its mean as a mark, margin and printed number."""
    colour, marker, fill = OUTCOME_LOOKS.get(row.get("outcome"), (INK, "o", "full"))
    margin, printed = row.get("margin", np.nan), row.get("reported", np.nan)
    if not pd.isna(margin):
        axes.barh(height, 2 * margin, left=-margin, height=0.9, color="#ececec", zorder=0)
    if np.isfinite([row["low"], row["high"]]).all():
        axes.plot([row["low"], row["high"]], [height, height], color=colour, linewidth=1.6)
    axes.plot(row["difference"], height, marker, fillstyle=fill, color=colour,
              markerfacecolor="white" if fill == "none" else colour)
    if not pd.isna(printed):
        axes.plot(printed, height, "s", markerfacecolor="white", color=GREY)
