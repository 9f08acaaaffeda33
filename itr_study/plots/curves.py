"""Learning over epochs or steps, one line per method; and what curves of other kinds share."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from itr_study.plots.style import (
    DOUBLE,
    GREY,
    VALUES,
    WIDEST,
    Look,
    Picture,
    band_line,
    canvas,
    caption,
    headline,
    label_ends,
    legend_below,
    look,
    plain_log,
    seeds_note,
    styled,
)

# How runs fall into collapse, or do not: loss and recall against the spread of the scores.

@styled
def collapse_paths(rows: pd.DataFrame, title: str, equal: float, near: float,
                   note: str = "") -> Picture:
    """The way of every run from its first epoch (dot) to its last (mark): left the loss, right RSUM
    on dev, both against the spread of the scores, which collapse brings to nothing.

    Args:    rows: one epoch of one run per row: arm, seed, epoch, score_std, loss (NaN where it is
             another one), dev_rsum, collapsed (bool, of the run).
             equal: the loss where all scores are equal, a line; near: its grey zone, a share of it.
    """
    figure, panels = canvas(2, size=(9.6, 3.9))
    for axes, value, label in zip(panels, ("loss", "dev_rsum"), ("loss", "RSUM on dev"),
                                  strict=True):
        for place, (arm, part) in enumerate(rows.groupby("arm", sort=False)):
            how = look(arm, place)
            for number, (_, run) in enumerate(part.groupby("seed")):
                run = run.dropna(subset=value)
                axes.plot(run["score_std"], run[value], how.line, color=how.colour, linewidth=1)
                axes.plot(run["score_std"].iloc[0], run[value].iloc[0], "o", color=how.colour,
                          markersize=2.5)
                axes.plot(run["score_std"].iloc[-1], run[value].iloc[-1], how.marker,
                          color=how.colour, markersize=7, label="_" if number else how.label,
                          markerfacecolor=how.colour if run["collapsed"].any() else "white")
        axes.set(xscale="log", xlabel="spread (standard deviation) of the scores", ylabel=label)
        plain_log(axes.xaxis)
    panels[0].axhline(equal, color=GREY, linestyle="--", linewidth=0.9)
    panels[0].axhspan(equal * (1 - near), equal * (1 + near), color=GREY, alpha=0.12, linewidth=0)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside center right")
    headline(figure, title)
    caption(figure, note)
    return figure


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
