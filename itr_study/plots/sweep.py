"""A metric against a hyperparameter, with every seed shown."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from itr_study.plots.curves import Ends, finish_labels, panel_canvas
from itr_study.plots.style import (
    DIRECTIONS,
    GREY,
    INK,
    Picture,
    band_line,
    caption,
    headline,
    level_line,
    look,
    seeds_note,
    styled,
    summarise,
)

Panels = Mapping[str, Sequence[str]]
FAR, APART = 5.0, 1.6  # on a log axis: values with nothing tried between; ticks side by side


def panels_of(columns: Sequence[str] | Panels) -> Panels:
    """Columns by panel title: as given, or one panel per direction named in the columns."""
    if isinstance(columns, Mapping):
        return columns
    found: dict[str, list[str]] = {}
    for column in columns:
        title = next((words for key, words in DIRECTIONS.items() if key in column.split("_")), "")
        found.setdefault(title, []).append(column)
    return found


def positions(values: pd.Series, apart: Sequence[str], log: bool) -> dict[object, float]:
    """Where each value of a hyperparameter is drawn; those in `apart` stand right of a gap."""
    unknown = {value for value in values if isinstance(value, str)} - set(apart)
    if unknown:
        raise ValueError(f"{sorted(unknown)} are neither numbers nor in apart={list(apart)}; "
                         "name them there to give them ticks of their own")
    numbers = sorted({float(value) for value in values if not isinstance(value, str)})
    if log and numbers and numbers[0] <= 0:
        raise ValueError(f"a log scale needs values above 0, got {numbers[0]}")
    extra = [value for value in apart if value in set(values)]
    if not numbers:
        return {value: float(place) for place, value in enumerate(extra)}
    scale = np.log10 if log else np.asarray
    width = float(np.ptp(scale(numbers))) or 1.0
    beyond = [scale(numbers[-1]) + width * (0.15 + 0.13 * place) for place in range(len(extra))]
    places = {number: number for number in numbers}
    return places | {value: float(10 ** at if log else at)
                     for value, at in zip(extra, beyond, strict=True)}


@styled
def sweep_curve(rows: pd.DataFrame, x: str, y: Sequence[str] | Panels, title: str,
                x_label: str, y_label: str = "recall, %", *, by: str | None = None,
                apart: Sequence[str] = (), log: bool = False, default: float | None = None,
                default_name: str = "paper", reported: pd.DataFrame | None = None,
                reported_label: str = "as printed, %",
                marked: pd.DataFrame | None = None, note: str = "", sharey: bool = False,
                names: Mapping[str, str] | None = None,
                baseline: pd.DataFrame | None = None, baseline_name: str = "baseline") -> Picture:
    """A metric against a hyperparameter: its mean, every seed a faint dot, a band for the interval;
    dotted and without a band where a log axis has nothing tried over a factor of five.

    Args:    rows: one run per row: the hyperparameter, seed, one column per metric (percent).
             x: column of the hyperparameter; text values must be listed in `apart` ("sum").
             y: metric columns; a panel per direction, or {panel title: columns}.
             by: column of method names, a line for each (takes one metric per panel).
             default: the paper's choice, a thin vertical line; default_name: whose.
             reported: printed numbers, columns panel, x, metric, value: in panels of their own,
             which are named in y without columns; reported_label: of their axis.
             marked: points with a ring, columns metric, `by`, x, at_edge (bool: a square one).
             note: text under the figure, before the number of seeds; sharey: one scale for all.
             names: of some columns, for the ends of their lines.
             baseline: runs without it: their mean is a dashed line across each panel.
    Raises:  ValueError for text values that are not in `apart`, or a log scale with values <= 0.
    """
    panels = panels_of(y)
    places = positions(rows[x], apart, log)
    rows = rows.assign(at=[places[value if isinstance(value, str) else float(value)]
                           for value in rows[x]])
    figure, axes_list = panel_canvas(len(panels), sharey=sharey)
    ends, counts = [], []
    for axes, (panel, columns) in zip(axes_list, panels.items(), strict=True):
        prepare(axes, panel, places, log, default, default_name)
        axes.set(xlabel=x_label, ylabel=y_label if columns else reported_label)
        if not columns:
            ends.append(draw_reported(axes, reported[reported["panel"] == panel]))
            continue
        lines = sweep_lines(axes, rows, columns, by, apart, x, FAR if log else np.inf, names)
        ends.append(lines[0])
        if panel and len(columns) == 1 and by is None:  # the panel's title says it
            ends[-1] = []
            for line in axes.lines:
                line.set_label("_")
        counts += lines[1]
        if marked is not None:
            ring(axes, rows, marked[marked["metric"].isin(columns)], by, x)
        for place, column in enumerate(columns if baseline is not None else ()):
            level_line(axes, (rows["at"].min(), rows["at"].max()), baseline, column,
                       look(column, place))
    headline(figure, title)
    level = "" if baseline is None else f"dashed: {baseline_name}"
    holes = "dotted: nothing tried between" if log and has_holes(places) else ""
    caption(figure, " · ".join(filter(None, [note, level, holes, seeds_note(pd.concat(counts))])))
    finish_labels(axes_list, ends)
    return figure


def prepare(axes: Axes, panel: str, places: Mapping[object, float], log: bool,
            default: float | None, default_name: str) -> None:
    """Title, scale, ticks and the paper's choice of one panel."""
    axes.set_title(panel, pad=None if default is None else 14)  # room for the name of the choice
    if log:
        axes.set_xscale("log")
    value_ticks(axes, places, log)
    if default is not None:
        axes.axvline(default, color=INK, linewidth=0.9, linestyle=":", zorder=1.5)
        axes.annotate(default_name, (default, 1), xycoords=("data", "axes fraction"), xytext=(0, 1),
                      textcoords="offset points", fontsize=8, ha="center", va="bottom",
                      color=GREY)


def has_holes(places: Mapping[object, float]) -> bool:
    """Whether neighbouring values of a log axis are so far apart that a line would invent them."""
    numbers = [value for value in places if not isinstance(value, str)]
    return any(high / low >= FAR for low, high in pairwise(numbers))


def value_ticks(axes: Axes, places: Mapping[object, float], log: bool) -> None:
    """A tick for every value (fewer when there are many), and for those apart."""
    numbers = [value for value in places if not isinstance(value, str)]
    extra = [value for value in places if isinstance(value, str)]
    shown = spaced(numbers) if log else evenly(numbers) if len(numbers) <= 9 else numbers[::2]
    axes.set_xticks([places[value] for value in shown + extra],
                    [value if isinstance(value, str) else f"{value:g}"
                     for value in shown + extra])
    axes.set_xticks([places[value] for value in numbers], minor=True)
    axes.tick_params(axis="x", which="minor", labelbottom=False)


def evenly(numbers: Sequence[float]) -> list[float]:
    """Rising numbers of a linear axis whose ticks can be read side by side, a tenth of the axis
    apart at least; of two that are nearer, the larger.

    Example:
        >>> evenly([0.05, 0.1, 0.2, 0.6]), evenly([3])
        ([0.1, 0.2, 0.6], [3])
    """
    shown = [numbers[-1]]
    for number in numbers[-2::-1]:
        if shown[0] - number >= (numbers[-1] - numbers[0]) / 10:
            shown.insert(0, number)
    return shown


def spaced(numbers: Sequence[float]) -> list[float]:
    """Rising numbers of a log axis whose ticks can be read side by side: a seventh of
    the axis apart at least, and never less than a factor of 1.6.

    Example:
        >>> spaced([1, 5, 10, 15, 20, 25, 30, 35]), spaced([0.001, 0.01, 0.02, 0.1, 1])
        ([1, 5, 10, 20, 35], [0.001, 0.01, 0.1, 1])
    """
    least = max(APART, (numbers[-1] / numbers[0]) ** (1 / 7))
    shown = [numbers[0]]
    for number in numbers[1:]:
        if number >= least * shown[-1]:
            shown.append(number)
    return shown


def sweep_lines(axes: Axes, rows: pd.DataFrame, columns: Sequence[str], by: str | None,
                apart: Sequence[str], x: str, far: float,
                names: Mapping[str, str] | None = None) -> tuple[Ends, list[pd.Series]]:
    """The lines of one panel and their points apart; returns their ends and counts of seeds."""
    groups = [(name, part) for name, part in rows.groupby(by, sort=False)] if by else \
        [(None, rows)]
    ends, counts = [], []
    for position, (name, column, part) in enumerate(
            (name, column, part) for column in columns for name, part in groups):
        part, how = part.dropna(subset=column), look(name or column, position)
        how = how._replace(label=(names or {}).get(column, how.label))
        away = part[x].isin(list(apart))
        summary = band_line(axes, part[~away], "at", column, how, far=far)
        lone = summarise(part[away], "at", column)
        axes.errorbar(lone["at"], lone["mean"], [lone["mean"] - lone["low"],
                      lone["high"] - lone["mean"]], fmt=how.marker, color=how.colour, capsize=3)
        axes.plot(part.loc[away, "at"], part.loc[away, column], how.marker, color=how.colour,
                  alpha=0.25, markersize=3, markeredgewidth=0)
        last = pd.concat([summary, lone]).iloc[-1]
        ends.append((last["at"], last["mean"], how.label, how.colour))
        counts += [part["n"] for part in (summary, lone) if len(part)]
    return ends, counts


def ring(axes: Axes, rows: pd.DataFrame, marked: pd.DataFrame, by: str, x: str) -> None:
    """A circle around points of some lines, a square around those at the edge of what was tried."""
    for point in marked.to_dict("records"):
        of_line = rows[(rows[by] == point[by]) & (rows[x] == point[x])]
        axes.plot(of_line["at"].iloc[0], of_line[point["metric"]].mean(),
                  "s" if point["at_edge"] else "o", markersize=11, markerfacecolor="none",
                  color=INK, markeredgewidth=0.9)


def draw_reported(axes: Axes, printed: pd.DataFrame) -> Ends:
    """Printed numbers in a panel of their own: hollow grey marks, dashed; returns the line ends."""
    ends: Ends = []
    for metric, part in printed.groupby("metric", sort=False):
        how = look(metric)
        axes.plot(part["x"], part["value"], linestyle=(0, (4, 2)), linewidth=1, color=GREY,
                  marker=how.marker, markerfacecolor="white", markeredgecolor=GREY)
        ends.append((*part.iloc[-1][["x", "value"]], how.label, GREY))
    return ends
