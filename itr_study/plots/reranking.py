"""Re-ranking: a worked example, hubs, and the map of scales."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from itr_study.digits import number
from itr_study.plots.style import (
    DIFFERENCES,
    DIRECTIONS,
    GREY,
    INK,
    RIGHT,
    WRONG,
    Picture,
    canvas,
    finish,
    name_above,
    styled,
)


def draw_matrix(axes: Axes, scores: np.ndarray, columns: Sequence[str]) -> None:
    """Draw scores as grey cells with their values."""
    axes.imshow(scores, cmap="Greys", vmin=0, vmax=1.3, aspect="auto")
    for (row, column), value in np.ndenumerate(scores):
        axes.text(column, row, number(value, 2), ha="center", va="center", fontsize=8.5,
                  color="white" if value > 0.75 else INK)
    axes.set_xticks(range(scores.shape[1]), columns)
    axes.set_yticks(range(scores.shape[0]), [f"image {i + 1}" for i in range(scores.shape[0])])
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def outline(axes: Axes, row: int, column: int, colour: str, line: str | tuple) -> None:
    """Frame one cell."""
    axes.add_patch(Rectangle((column - 0.45, row - 0.44), 0.9, 0.88, fill=False,
                             edgecolor=colour, linestyle=line, linewidth=2))


@styled
def schematic_rerank(stages: Mapping[str, np.ndarray], title: str) -> Picture:
    """Draw a matrix of scores before and after re-ranking, first results framed.

    Source: dvse, Fig. 5, redrawn with numbers.

    Args: stages: (I, I) scores by the title of their panel; text i is of image i.
    """
    figure, panels = canvas(len(stages), size=(3.2 * len(stages), 2.9))
    for axes, (name, scores) in zip(panels, stages.items(), strict=True):
        draw_matrix(axes, scores, [f"text {j + 1}" for j in range(scores.shape[1])])
        axes.set_title(name)
        for row, best in enumerate(scores.argmax(axis=1)):
            outline(axes, row, best, *((RIGHT, "-") if best == row else (WRONG, (0, (3, 1.5)))))
    return finish(figure, title, "frame: the first result of each image, green and solid where it "
                                 "is its own text")


@styled
def occurrence_lines(table: pd.DataFrame, title: str, note: str = "") -> Picture:
    """Draw how many candidates are how often among the first ten results.

    Args: table: direction, method (drawn in the order it comes), occurrences, candidates (how many
        occur so often).
    """
    figure, panels = canvas(table["direction"].nunique())
    looks = ((GREY, "--"), ("#0072b2", "-"), ("#d55e00", ":"))
    for axes, (direction, part) in zip(panels, table.groupby("direction", sort=False), strict=True):
        most = part["occurrences"].max()
        edges = np.arange(-0.5, most + 1.5) if most <= 30 else np.linspace(-0.5, most + 0.5, 31)
        for (method, values), (colour, line) in zip(part.groupby("method", sort=False), looks,
                                                    strict=False):
            axes.hist(values["occurrences"], edges, weights=values["candidates"], histtype="step",
                      color=colour, linestyle=line, linewidth=1.6, label=method)
        mean = np.average(part["occurrences"], weights=part["candidates"])
        axes.axvline(mean, color=INK, linewidth=0.7)
        name_above(axes, mean, "mean of all", INK)
        axes.set(xlabel="lists of ten that it is in",
                 ylabel={"i2t": "texts", "t2i": "images"}[direction])
        axes.set_title(DIRECTIONS[direction], pad=14)  # above the name of the line
        axes.legend(loc="center right")
    return finish(figure, title, note)


SYMBOLS = {"i2t": "γ", "t2i": "λ"}
MARKS = (("□", {"marker": "s", "markersize": 8, "markerfacecolor": "none"}),
         ("☆", {"marker": "*", "markersize": 11, "markerfacecolor": "white"}),
         ("○", {"marker": "o", "markersize": 8, "markerfacecolor": "none"}))
TICKS = 6  # about


@styled
def scale_maps(table: pd.DataFrame, title: str, marks: Mapping[str, pd.DataFrame],
               note: str = "") -> Picture:
    """Draw what FR adds to R@1 at every pair of its scales, a panel per direction.

    Source: dvse, Fig. 7, which draws R@1 itself; here red is a gain and blue a loss, and a loss
    beyond the largest gain is drawn as that.

    Args:
        table: direction, first, second (the scales), gain (points of R@1).
        marks: at most three marked pairs of scales by name: first and second by direction (index).
    """
    limit = max(table["gain"].max(), 0.1)
    figure, panels = canvas(2, size=(9.6, 4.9))
    figure.get_layout_engine().set(h_pad=0.1)
    for axes, (direction, part) in zip(panels, table.groupby("direction", sort=False), strict=True):
        grid = part.pivot(index="second", columns="first", values="gain")
        image = axes.imshow(grid, cmap=DIFFERENCES, vmin=-limit, vmax=limit, origin="lower",
                            aspect="equal", interpolation="nearest")
        diagonal = [-0.5, len(grid) - 0.5]  # of equal scales
        axes.plot(diagonal, diagonal, color=GREY, linewidth=0.6)
        step = -(-len(grid) // TICKS)
        shown = [*(n for n in range(0, len(grid), step) if n + step / 2 < len(grid)), len(grid) - 1]
        texts = [f"{scale:g}" for scale in grid.index[shown]]
        axes.set_xticks(shown, texts)
        axes.set_yticks(shown, texts)
        axes.grid(False)
        for pairs, (_, how) in zip(marks.values(), MARKS, strict=False):
            first, second = pairs.loc[direction, ["first", "second"]]
            axes.plot(grid.columns.get_loc(first), grid.index.get_loc(second), linestyle="",
                      color=INK, markeredgewidth=1.2, **how)
        symbol = SYMBOLS[direction]
        axes.set(title=DIRECTIONS[direction], xlabel=f"{symbol}1, of the scores in the sum",
                 ylabel=f"{symbol}2, of the pair's own score")
    figure.colorbar(image, ax=panels, extend="min", shrink=0.9, pad=0.02,
                    label="R@1 with FR minus R@1 without, points")
    signs = [f"{sign} {name}" for name, (sign, _) in zip(marks, MARKS, strict=False)]
    return finish(figure, title, *signs, note)
