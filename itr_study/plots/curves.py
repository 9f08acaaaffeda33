"""Learning over epochs or steps, one line per method; and what curves of other kinds share."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from itr_study.plots.marks import band_line, label_ends, plain_log, seeds_note
from itr_study.plots.style import (
    DOUBLE,
    VALUES,
    WIDEST,
    Look,
    Picture,
    canvas,
    caption,
    headline,
    legend_below,
    look,
    styled,
)

Panels = Mapping[str, Sequence[str]]
ONE = (7.2, 3.4)  # inches of a single panel, which has a title as long as others
LIGHTEST = 0.75  # of the map of colours for ordered lines: what is lighter is lost on white
Ends = list[tuple[float, float, str, str]]  # x, y, text and colour of each line's end


def panel_canvas(number: int, **options: Any) -> tuple[Picture, list[Axes]]:
    """One or two panels at their full size; more in rows of three, or of two or four where that
    leaves no place empty."""
    if number <= 2:
        return canvas(number, size=ONE if number == 1 else None, **options)
    width = {4: 2, 8: 4}.get(number, 3)
    height = -(-number // width)
    size = (WIDEST if width == 4 else DOUBLE[0], 0.6 + 2.4 * height)
    figure, axes_list = canvas(width, height, size=size, **options)
    for axes in axes_list[number:]:
        axes.remove()
    return figure, axes_list[:number]


def finish_labels(axes_list: Sequence[Axes], ends_list: Sequence[Ends]) -> None:
    """Names at the line ends (a legend from six lines on), and one legend of printed numbers."""
    entries: dict = {}
    for axes, ends in zip(axes_list, ends_list, strict=True):
        if len(ends) <= 5:
            label_ends(axes, ends)
        names = {text for _, _, text, _ in ends} if len(ends) <= 5 else set()
        entries.update({label: line for line, label in zip(*axes.get_legend_handles_labels(),
                                                           strict=True)
                        if label not in names | entries.keys()})
    if entries:
        legend_below(axes_list[0].figure, [*entries.values()], [*entries])


@styled
def learning_curves(rows: pd.DataFrame, y: Sequence[str] | Panels, title: str,
                    y_label: str = "recall, %", *, x: str = "epoch", by: str = "method",
                    x_label: str = "epoch", log: bool = False, sharey: bool = False,
                    ordered: bool = False, note: str = "") -> Picture:
    """A value after every epoch (or step), one line per method, seeds as a band.

    Args:    rows: one epoch of one run per row: `by`, seed, `x`, the columns of `y`; NaN where
             nothing is to be shown.
             y: columns, a panel each (or {panel title: columns}).
             log: logarithmic values, for losses over many magnitudes; sharey: one scale for all
             panels, which are compared; ordered: the methods are values of one parameter, from
             small to large, in colours from dark to light.
    """
    panels = y if isinstance(y, Mapping) else {column: [column] for column in y}
    figure, axes_list = panel_canvas(len(panels), sharey=sharey)
    looks = looks_of(list(rows[by].unique()), ordered)
    ends_list, counts = [], []
    for axes, (panel, columns) in zip(axes_list, panels.items(), strict=True):
        axes.set(title=panel, xlabel=x_label, ylabel=y_label,
                 yscale="log" if log else "linear")
        if log:
            plain_log(axes.yaxis)
        if (rows[x] % 1 == 0).all():
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        ends: Ends = []
        for column in columns:
            for name, part in rows.groupby(by, sort=False):
                summary = band_line(axes, part, x, column, looks[name], dots=False)
                ends.append((*summary.iloc[-1][[x, "mean"]], *looks[name][:2]))
                counts.append(summary["n"][summary["n"] > 0])
        ends_list.append(ends)
    headline(figure, title)
    caption(figure, " · ".join(filter(None, [note, seeds_note(pd.concat(counts))])))
    finish_labels(axes_list, ends_list)
    return figure


def looks_of(names: Sequence[str], ordered: bool) -> dict[str, Look]:
    """How some lines are drawn: as everywhere, or where they are ordered, from dark to light."""
    looks = {name: look(name, place) for place, name in enumerate(names)}
    if not ordered:
        return looks
    colours = matplotlib.colormaps[VALUES]
    steps = max(len(names) - 1, 1)
    return {name: how._replace(colour=matplotlib.colors.to_hex(
        colours(LIGHTEST * place / steps))) for place, (name, how) in enumerate(looks.items())}
