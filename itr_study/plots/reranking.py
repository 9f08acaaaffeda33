"""Re-ranking: a worked example, hubs, and what a gain goes with."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from itr_study.plots.marks import spread
from itr_study.plots.schematics import draw_matrix, outline
from itr_study.plots.style import (
    DIRECTIONS,
    GREY,
    INK,
    RIGHT,
    WRONG,
    Picture,
    canvas,
    caption,
    headline,
    legend_below,
    styled,
)

MODEL_LOOKS = (("#0072b2", "o"), ("#d55e00", "D"), ("#7b3294", "s"), ("#222222", "^"))


@styled
def schematic_rerank(stages: Mapping[str, np.ndarray], title: str, note: str = "") -> Picture:
    """A small matrix of scores before and after re-ranking, text i written about image i; in every
    row the result that comes first is framed: solid and green if it is the match.

    Args:    stages: (I, I) scores by the title of their panel.
    Source:  dvse, Fig. 5, redrawn with numbers.
    """
    figure, panels = canvas(len(stages), size=(3.2 * len(stages), 2.9))
    for axes, (name, scores) in zip(panels, stages.items(), strict=True):
        draw_matrix(axes, scores, [f"text {j + 1}" for j in range(scores.shape[1])])
        axes.set_title(name)
        for row, best in enumerate(scores.argmax(axis=1)):
            outline(axes, row, best, *((RIGHT, "-") if best == row else (WRONG, (0, (3, 1.5)))))
    headline(figure, title)
    caption(figure, note or "frame: the first result of each image, green and solid where it is "
                            "its own text")
    return figure


@styled
def occurrence_lines(table: pd.DataFrame, title: str, note: str = "") -> Picture:
    """How many candidates are how often among the first ten results, a panel per direction.

    Args:    table: direction, method (drawn in the order it comes), occurrences (of a candidate).
    """
    figure, panels = canvas(table["direction"].nunique())
    looks = ((GREY, "--"), ("#0072b2", "-"), ("#d55e00", ":"))
    for axes, (direction, part) in zip(panels, table.groupby("direction", sort=False),
                                       strict=True):
        most = part["occurrences"].max()
        edges = np.arange(-0.5, most + 1.5) if most <= 30 else np.linspace(-0.5, most + 0.5, 31)
        for (method, values), (colour, line) in zip(part.groupby("method", sort=False), looks,
                                                    strict=False):
            axes.hist(values["occurrences"], edges, histtype="step", color=colour, linestyle=line,
                      linewidth=1.6, label=method)
        axes.axvline(part["occurrences"].mean(), color=INK, linewidth=0.7)
        axes.annotate("mean of all", (part["occurrences"].mean(), 1), xytext=(0, 1), va="bottom",
                      ha="center", xycoords=("data", "axes fraction"), fontsize=8,
                      textcoords="offset points")
        axes.set(xlabel="lists of ten that it is in",
                 ylabel={"i2t": "texts", "t2i": "images"}[direction])
        axes.set_title(DIRECTIONS[direction], pad=14)  # above the name of the line
        axes.legend(loc="center right")
    headline(figure, title)
    caption(figure, note)
    return figure


@styled
def gain_scatter(table: pd.DataFrame, title: str, x_label: str, y_label: str,
                 note: str = "") -> Picture:
    """A gain against something known before, a dot a method with the intervals of both, named at
    the right edge; a colour and marker per model, a panel per direction.

    Args:    table: direction, model, label, x, x_low, x_high, y, y_low, y_high (NaN: no interval).
    """
    figure, panels = canvas(table["direction"].nunique(), size=(9.6, 3.9))
    looks = dict(zip(table["model"].unique(), MODEL_LOOKS, strict=False))
    for axes, (direction, part) in zip(panels, table.groupby("direction", sort=False),
                                       strict=True):
        for row in part.itertuples():
            colour, marker = looks[row.model]
            axes.plot([row.x_low, row.x_high], [row.y, row.y], color=colour, linewidth=0.9)
            axes.plot([row.x, row.x], [row.y_low, row.y_high], color=colour, linewidth=0.9)
            axes.plot(row.x, row.y, marker, color=colour)
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.set(title=DIRECTIONS[direction], xlabel=x_label,
                 ylabel=y_label if axes is panels[0] else "")
        axes.margins(x=0.08)
    entries = [panels[0].plot([], [], marker, color=colour, linestyle="", label=model)[0]
               for model, (colour, marker) in looks.items()]
    headline(figure, title)
    caption(figure, note)
    legend_below(figure, entries, [entry.get_label() for entry in entries])
    for axes, (_, part) in zip(panels, table.groupby("direction", sort=False), strict=True):
        name_dots(axes, part, [looks[model][0] for model in part["model"]])
    return figure


def name_dots(axes: Axes, part: pd.DataFrame, colours: list[str], size: float = 8) -> None:
    """Names in a column right of a panel, moved apart, each joined to its dot by a thin line: level
    to the edge, aslant beyond it, so that no line crosses another."""
    left, right = axes.get_xlim()
    axes.set_xlim(left, right)  # else the level lines would move it
    names = right + 0.05 * (right - left)
    line = {"linewidth": 0.5, "alpha": 0.5}
    notes = []
    for row, colour in zip(part.itertuples(), colours, strict=True):
        axes.plot([row.x, right], [row.y, row.y], color=colour, zorder=1, **line)
        notes.append(axes.annotate(
            row.label, (right, row.y), xytext=(names, row.y), textcoords="data", fontsize=size,
            color=colour, va="center", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "relpos": (0, 0.5), "shrinkA": 0,
                        "shrinkB": 0} | line))
    axes.figure.canvas.draw()
    to_points = 72 / axes.figure.dpi
    heights = axes.transData.transform([(right, y) for y in part["y"]])[:, 1] * to_points
    for note, height in zip(notes, spread(heights, size * 1.35), strict=True):
        y = axes.transData.inverted().transform((0, height / to_points))[1]
        note.set_position((names, y))
