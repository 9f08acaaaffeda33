"""One query's first results under two models, side by side: who moved where."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from itr_study.plots.style import (
    GREY,
    INK,
    VALUES,
    canvas,
    caption,
    headline,
    legend_below,
    styled,
)

ROW = 0.21  # inches
GAP = 1.0  # rows between the first results and those beyond them


class Mover(NamedTuple):
    """A result: its text, cut short; whether it is a match; its relevance in [0, 1]; in each of
    the two lists its rank, its row from 0, and whether it is beyond the first."""

    text: str
    match: bool
    relevance: float
    ranks: tuple[int, int]
    rows: tuple[int, int]
    beyond: tuple[bool, bool]


def relevance_colours(relevance: np.ndarray | Sequence[float], low: float = 0.0) -> list[str]:
    """Hex colours of relevance, dark to bright, told apart by the colour-blind too.

    Args:    low: in [0, 1), the relevance that is darkest; 1 is brightest.

    Example:
        >>> relevance_colours([0.5, 1.0], low=0.5)
        ['#440154', '#fde725']
    """
    place = (np.asarray(relevance, float) - low) / (1 - low)
    return [to_hex(colour) for colour in matplotlib.colormaps[VALUES](np.clip(place, 0, 1))]


@styled
def who_moved(movers: Sequence[Mover], names: tuple[str, str], title: str, top: int,
              low: float = 0.0, graded: bool = True) -> Figure:
    """A bump chart: the first results of one model left, of the other right, a line for each.

    Args:    movers: of either list's first; names: of the two models; title: the headline; top:
             how many are the first; low: as in `relevance_colours`; graded: whether relevance is
             more than match or not, and has a scale of its own.
    """
    high = 1 + max(row + GAP * far for one in movers
                   for row, far in zip(one.rows, one.beyond, strict=True))
    figure, (axes,) = canvas(size=(9.6, 1.4 + ROW * high))
    colours = relevance_colours([one.relevance for one in movers], low)
    for one, colour in zip(movers, colours, strict=True):
        draw_mover(axes, one, colour)
    axes.set(xlim=(-1.35, 2.35), ylim=(high - 0.4, -1.6))
    axes.axis("off")
    for x, name, side in ((-0.1, names[0], "right"), (1.1, names[1], "left")):
        axes.text(x, -1.2, name, ha=side, fontweight="bold", fontsize=9)
    if any(any(one.beyond) for one in movers):
        axes.axhline(top - 0.5 + GAP / 2, color=GREY, linewidth=0.6, linestyle=(0, (4, 3)))
    if graded:
        bar = figure.colorbar(ScalarMappable(Normalize(low, 1), VALUES), ax=axes, shrink=0.5,
                              pad=0.01)
        bar.set_label("relevance")
    headline(figure, title)
    caption(figure, f"below the dashed line: beyond the first {top}, with the rank there; "
                    "… a text cut short")
    shapes = {"match": dict(marker="*", markersize=10), "no match": dict(marker="o")}
    legend_below(figure, [Line2D([], [], linestyle="", color=INK, **shape)
                          for shape in shapes.values()], list(shapes))
    return figure


def draw_mover(axes: Axes, one: Mover, colour: str) -> None:
    """The line of one result, its marks, and at each end its rank, and its text if it is there
    among the first; of what is so nowhere, at the left."""
    ends = [row + GAP * far for row, far in zip(one.rows, one.beyond, strict=True)]
    steps = np.linspace(0, 1, 40)
    path = ends[0] + (ends[1] - ends[0]) * steps**2 * (3 - 2 * steps)
    for width, shade in ((3.6, GREY), (2.4, colour)):  # yellow needs an edge on white paper
        axes.plot(steps, path, color=shade, linewidth=width, zorder=2 + one.match,
                  solid_capstyle="round")
    look: dict[str, Any] = dict(marker="*", markersize=12) if one.match else dict(
        marker="o", markersize=6)
    axes.plot([0, 1], ends, linestyle="", color=colour, markeredgecolor=INK, zorder=4, **look)
    for x, side, row, rank, far in zip((-0.1, 1.1), ("right", "left"), ends, one.ranks, one.beyond,
                                       strict=True):
        words, place = one.text, f"rank {rank:,}" if far else str(rank)
        if far and (x > 0 or not all(one.beyond)):  # its text stands at the other end
            words = ""
        shown = "  ".join(filter(None, [words, place] if side == "right" else [place, words]))
        axes.text(x, row, shown, ha=side, va="center", fontsize=8, color=GREY if far else INK)
