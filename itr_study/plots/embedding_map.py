"""Images and texts of one space on a plane, coloured by what is known of each."""

from collections.abc import Sequence
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, to_hex
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from itr_study.plots.style import (
    INK,
    VALUES,
    Picture,
    canvas,
    caption,
    headline,
    legend_below,
    styled,
)

STEPS = 64  # colours of a scale
# On light and on dark paper: what is as light, or as dark, as the paper is lost on it.
AMOUNTS = {"light": (0.0, 0.75), "dark": (0.4, 1.0)}  # ends of the map VALUES
SIGNS = {"light": ("#0b5fa5", "#8c8c8c", "#c8400e"), "dark": ("#6fb7ff", "#8a8a8a", "#ff8a5c")}
KINDS = {"light": ("#0b5fa5", "#c8400e"), "dark": ("#6fb7ff", "#ff8a5c")}  # images, texts


class Shade(NamedTuple):
    """What the colours of some points mean.

    label: what is coloured; levels: (n,) places on the scale in [0, 1], below 0.5 for the one sign
    and above it for the other where it is `signed`; hollow: (n,) bool, drawn hollow; ticks: places
    on the scale, with what stands there; none: the points are of two kinds; meaning: what filled
    and hollow marks are, where some are hollow.
    """

    label: str
    levels: np.ndarray
    hollow: np.ndarray
    ticks: Sequence[tuple[float, str]] = ()
    signed: bool = False
    meaning: tuple[str, str] = ("", "")


def colours_of(shade: Shade, paper: str = "light") -> list[str]:
    """The colours of a scale from its low end to its high end, as hex; of kinds, two.

    Args:    paper: "light" or "dark".
    """
    if not shade.ticks:
        return list(KINDS[paper])
    return [to_hex(colour) for colour in scale_map(shade, paper)(np.linspace(0, 1, STEPS))]


def scale_map(shade: Shade, paper: str) -> Colormap:
    """The colour map of a scale: amounts, or signs around a grey middle."""
    if shade.signed:
        return LinearSegmentedColormap.from_list("signs", SIGNS[paper])
    return ListedColormap(matplotlib.colormaps[VALUES](np.linspace(*AMOUNTS[paper], 256)))


@styled
def embedding_map(places: np.ndarray, images: int, shade: Shade, title: str,
                  labels: tuple[str, str], window: tuple[Sequence[float], float],
                  rectangle: tuple[Sequence[float], Sequence[float]] | None = None,
                  note: str = "") -> Picture:
    """Images as squares, texts as dots, both axes on one scale.

    Args:    places: (I + T, 2) of the images, then of the texts; images: I; shade: of as many
             points; labels: of the axes; window: the middle of what is shown, and half its side;
             rectangle: its ends across and upwards.
    """
    figure, (axes,) = canvas(size=(7.2, 6.4))
    colours = np.array(colours_of(shade))
    steps = np.round(shade.levels * (len(colours) - 1)).astype(int)
    order = np.arange(len(places)) < images
    for kind, marker, size in ((~order, "o", 10), (order, "s", 14)):  # few images over many texts
        draw_marks(axes, places[kind], colours[steps[kind]], shade.hollow[kind], marker, size)
    if rectangle is not None:
        (left, right), (low, high) = rectangle
        axes.add_patch(Rectangle((left, low), right - left, high - low, fill=False, color=INK,
                                 linewidth=1.4, linestyle=(0, (4, 2)), zorder=4))
    middle, half = window
    axes.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half),
             xlabel=labels[0], ylabel=labels[1], aspect="equal")
    if shade.ticks:
        bar = figure.colorbar(ScalarMappable(cmap=scale_map(shade, "light")), ax=axes, shrink=0.8)
        bar.set_ticks([at for at, _ in shade.ticks], labels=[text for _, text in shade.ticks])
        bar.set_label(shade.label)
    headline(figure, title)
    caption(figure, note)
    add_legend(figure, shade)
    return figure


def draw_marks(axes: Axes, places: np.ndarray, colours: np.ndarray, hollow: np.ndarray,
               marker: str, size: float) -> None:
    """The points of one kind, hollow ones, mostly the few, over the filled."""
    for part, alpha in ((~hollow, 0.8), (hollow, 0.9)):
        axes.scatter(*places[part].T, s=size, marker=marker, edgecolors=colours[part],
                     facecolors="none" if part is hollow else colours[part], linewidths=0.7,
                     alpha=alpha)


def add_legend(figure: Picture, shade: Shade) -> None:
    """What the marks are; their colours where they say the kind."""
    kinds = colours_of(shade) if not shade.ticks else [INK, INK]
    marks = [("image", "s", kinds[0], True), ("text", "o", kinds[1], True)]
    if shade.hollow.any():
        marks += [(shade.meaning[0], "D", INK, True), (shade.meaning[1], "D", INK, False)]
    handles = [Line2D([], [], linestyle="", marker=marker, color=colour, markersize=5,
                      markerfacecolor=colour if filled else "none")
               for _, marker, colour, filled in marks]
    legend_below(figure, handles, [name for name, *_ in marks])
