"""Re-ranking: a worked example, hubs, and what a gain goes with."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from itr_study.plots.names import name_marks, obstacles, settle
from itr_study.plots.schematics import draw_matrix, outline
from itr_study.plots.style import (
    DIFFERENCES,
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
    """A gain against something known before, a dot a method with the intervals of both, numbered;
    the key stands at the right. A colour and marker per model, a panel per direction.

    Args:    table: direction, model, label, x, x_low, x_high, y, y_low, y_high (NaN: no interval);
             the same methods in both directions.
    """
    figure, panels = canvas(table["direction"].nunique(), size=(9.6, 3.9))
    looks = dict(zip(table["model"].unique(), MODEL_LOOKS, strict=False))
    parts = [part for _, part in table.groupby("direction", sort=False)]
    for axes, part in zip(panels, parts, strict=True):
        for row in part.itertuples():
            colour, marker = looks[row.model]
            axes.plot([row.x_low, row.x_high], [row.y, row.y], color=colour, linewidth=0.9)
            axes.plot([row.x, row.x], [row.y_low, row.y_high], color=colour, linewidth=0.9)
            axes.plot(row.x, row.y, marker, color=colour)
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.set(title=DIRECTIONS[part["direction"].iloc[0]], xlabel=x_label,
                 ylabel=y_label if axes is panels[0] else "")
        axes.margins(x=0.08)
    entries = [panels[0].plot([], [], marker, color=colour, linestyle="", label=model)[0]
               for model, (colour, marker) in looks.items()]
    headline(figure, title)
    caption(figure, note)
    colours = [looks[model][0] for model in parts[-1]["model"]]
    key(panels[-1], parts[-1]["label"], colours)
    legend_below(figure, entries, [entry.get_label() for entry in entries])
    settle(figure)
    for axes, part in zip(panels, parts, strict=True):
        zero = np.array([(x, 0.0) for x in axes.get_xlim()])
        ends = {f"{axis}_{end}": f"{end}_{axis}" for axis in "xy" for end in ("low", "high")}
        name_marks(axes, [f"{number}" for number in range(1, len(part) + 1)],
                   part[["x", "y"]].to_numpy(), colours,
                   obstacles(axes, part.rename(columns=ends), [zero]), size=8)
    return figure


def key(axes: Axes, names: Sequence[str], colours: Sequence[str], size: float = 8) -> None:
    """Numbered names in a column right of a panel, from its top."""
    for number, (name, colour) in enumerate(zip(names, colours, strict=True), start=1):
        axes.annotate(f"{number}  {name}", (1, 1), xycoords="axes fraction", fontsize=size,
                      xytext=(12, -1.5 * size * (number - 1)), textcoords="offset points",
                      color=colour, va="top", annotation_clip=False)


# What FR's scales do: R@1 over the whole grid of them (dvse Fig. 7).

SYMBOLS = {"i2t": "γ", "t2i": "λ"}
MARKS = (("□", {"marker": "s", "markersize": 8, "markerfacecolor": "none"}),
         ("☆", {"marker": "*", "markersize": 11, "markerfacecolor": "white"}),
         ("○", {"marker": "o", "markersize": 8, "markerfacecolor": "none"}))
TICKS = 6  # about


@styled
def scale_maps(table: pd.DataFrame, title: str, marks: Mapping[str, pd.DataFrame],
               note: str = "") -> Picture:
    """What FR adds to R@1 at every pair of its scales, a panel per direction; cells of equal size,
    in the steps in which the scales come.

    Args:    table: direction, first, second (the scales), gain (points of R@1); marks: by name the
             pair of scales that is marked, by direction (index) first and second; three at most.
    Source:  dvse, Fig. 7.
    Differs: it draws R@1 itself; here red is better than without FR and blue is worse, on the same
             colours for both directions, and a loss beyond the largest gain is drawn as that.
    """
    limit = max(table["gain"].max(), 0.1)
    figure, panels = canvas(2, size=(9.6, 4.9))
    figure.get_layout_engine().set(h_pad=0.1)
    for axes, (direction, part) in zip(panels, table.groupby("direction", sort=False),
                                       strict=True):
        grid = part.pivot(index="second", columns="first", values="gain")
        image = scale_panel(axes, grid, limit)
        for pairs, (_, mark) in zip(marks.values(), MARKS, strict=False):
            first, second = pairs.loc[direction, ["first", "second"]]
            axes.plot(grid.columns.get_loc(first), grid.index.get_loc(second), linestyle="",
                      color=INK, markeredgewidth=1.2, **mark)
        symbol = SYMBOLS[direction]
        axes.set(title=DIRECTIONS[direction], xlabel=f"{symbol}1, of the scores in the sum",
                 ylabel=f"{symbol}2, of the pair's own score")
    bar = figure.colorbar(image, ax=panels, extend="min", shrink=0.9, pad=0.02)
    bar.set_label("R@1 with FR less R@1 without, points")
    headline(figure, title)
    signs = [f"{sign} {name}" for name, (sign, _) in zip(marks, MARKS, strict=False)]
    caption(figure, " · ".join(filter(None, [*signs, note])))
    return figure


def scale_panel(axes: Axes, grid: pd.DataFrame, limit: float) -> AxesImage:
    """One direction: the cells, and the diagonal of equal scales."""
    image = axes.imshow(grid, cmap=DIFFERENCES, vmin=-limit, vmax=limit, origin="lower",
                        aspect="equal", interpolation="nearest")
    axes.plot([-0.5, len(grid) - 0.5], [-0.5, len(grid) - 0.5], color=GREY, linewidth=0.6)
    scales = list(grid.index)
    step = -(-len(scales) // TICKS)
    shown = [place for place in range(0, len(scales), step) if place + step / 2 < len(scales)]
    shown.append(len(scales) - 1)
    axes.set_xticks(shown, [f"{scales[place]:g}" for place in shown])
    axes.set_yticks(shown, [f"{scales[place]:g}" for place in shown])
    axes.grid(False)
    return image
