"""Images and texts of one space on a plane, coloured by what is known of each."""

from collections.abc import Sequence
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, to_hex
from matplotlib.patches import Rectangle

from itr_study.plots.style import (
    INK,
    VALUES,
    Picture,
    canvas,
    finish,
    legend_below,
    mark,
    styled,
)

STEPS = 64  # colours of a scale
# On light and on dark paper: what is as light, or as dark, as the paper is lost on it.
AMOUNTS = {"light": (0.0, 0.75), "dark": (0.4, 1.0)}  # ends of the map VALUES
SIGNS = {"light": ("#0b5fa5", "#8c8c8c", "#c8400e"), "dark": ("#6fb7ff", "#8a8a8a", "#ff8a5c")}
KINDS = {"light": ("#0b5fa5", "#c8400e"), "dark": ("#6fb7ff", "#ff8a5c")}  # images, texts


class Shade(NamedTuple):
    """What the colours of some points mean."""

    label: str
    levels: np.ndarray  # (n,) places on the scale in [0, 1]; if signed 0.5 is zero
    hollow: np.ndarray  # (n,) bool
    ticks: Sequence[tuple[float, str]] = ()  # places, texts; without any there are two kinds
    signed: bool = False
    meaning: tuple[str, str] = ("", "")  # of filled and of hollow marks, if some are hollow


def colours_of(shade: Shade, paper: str = "light") -> list[str]:
    """List the colours of a scale from low to high as hex, on "light" or "dark" paper."""
    if not shade.ticks:
        return list(KINDS[paper])
    return [to_hex(colour) for colour in scale_map(shade, paper)(np.linspace(0, 1, STEPS))]


def scale_map(shade: Shade, paper: str) -> Colormap:
    """Make the colour map of a scale: amounts, or signs around a grey middle."""
    if shade.signed:
        return LinearSegmentedColormap.from_list("signs", SIGNS[paper])
    return ListedColormap(matplotlib.colormaps[VALUES](np.linspace(*AMOUNTS[paper], 256)))


@styled
def embedding_map(places: np.ndarray, images: int, shade: Shade, title: str,
                  labels: tuple[str, str], window: tuple[Sequence[float], float],
                  rectangle: tuple[Sequence[float], Sequence[float]] | None = None,
                  note: str = "") -> Picture:
    """Draw images as squares and texts as dots, both axes on one scale.

    Args:
        places: (I + T, 2) of the images, then of the texts.
        images: I.
        shade: of as many points.
        labels: of the two axes.
        window: the middle of what is shown, and half its side.
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
        bar = figure.colorbar(ScalarMappable(cmap=scale_map(shade, "light")), ax=axes, shrink=0.8,
                              label=shade.label)
        bar.set_ticks([at for at, _ in shade.ticks], labels=[text for _, text in shade.ticks])
    finish(figure, title, note)
    kinds = [INK, INK] if shade.ticks else colours_of(shade)
    marks = [mark("s", kinds[0], "image"), mark("o", kinds[1], "text")]
    if shade.hollow.any():
        marks += [mark("D", INK, shade.meaning[0]), mark("D", INK, shade.meaning[1], fill="none")]
    legend_below(figure, marks)
    return figure


def draw_marks(axes: Axes, places: np.ndarray, colours: np.ndarray, hollow: np.ndarray,
               marker: str, size: float) -> None:
    """Draw the points of one kind, hollow ones over the filled."""
    for part, alpha in ((~hollow, 0.8), (hollow, 0.9)):
        axes.scatter(*places[part].T, s=size, marker=marker, edgecolors=colours[part],
                     facecolors="none" if part is hollow else colours[part], linewidths=0.7,
                     alpha=alpha)
