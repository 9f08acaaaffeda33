"""Curves: learning over epochs, sweeps with every seed, ways into collapse."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from itr_study.plots.style import (
    DIRECTIONS,
    DOUBLE,
    GREY,
    INK,
    VALUES,
    WIDEST,
    Look,
    Picture,
    band_line,
    canvas,
    finish,
    label_ends,
    legend_below,
    level_line,
    look,
    name_above,
    plain_log,
    seeds_note,
    styled,
    summarise,
)


@styled
def collapse_paths(rows: pd.DataFrame, title: str, equal: float, near: float,
                   note: str = "") -> Picture:
    """Draw runs from first epoch (dot) to last (mark) against the spread of scores.

    Args:
        rows: one epoch of one run per row: arm, seed, epoch, score_std, loss (NaN if it is another
            one), dev_rsum, collapsed (bool, of the run).
        equal: the loss if all scores are equal, a line.
        near: its grey zone, a share of it.
    """
    figure, panels = canvas(2, size=(9.6, 3.9))
    for axes, value, label in zip(panels, ("loss", "dev_rsum"), ("loss", "RSUM on dev"),
                                  strict=True):
        for place, (arm, part) in enumerate(rows.groupby("arm", sort=False)):
            how = look(arm, place)
            for number, (_, run) in enumerate(part.groupby("seed")):
                run = run.dropna(subset=value)
                axes.plot(run["score_std"], run[value], how.line, color=how.colour, linewidth=1)
                first, last = run[["score_std", value]].iloc[[0, -1]].to_numpy()
                axes.plot(*first, "o", color=how.colour, markersize=2.5)
                axes.plot(*last, how.marker, color=how.colour, markersize=7,
                          label="_" if number else how.label,
                          markerfacecolor=how.colour if run["collapsed"].any() else "white")
        axes.set(xscale="log", xlabel="spread (standard deviation) of the scores", ylabel=label)
        plain_log(axes.xaxis)
    panels[0].axhline(equal, color=GREY, linestyle="--", linewidth=0.9)
    panels[0].axhspan(equal * (1 - near), equal * (1 + near), color=GREY, alpha=0.12, linewidth=0)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside center right")
    return finish(figure, title, note)


Panels = Mapping[str, Sequence[str]]
ONE = (7.2, 3.4)  # inches of a single panel, which has a title as long as others
LIGHTEST = 0.75  # of the map of colours for ordered lines: what is lighter is lost on white
Ends = list[tuple[float, float, str, str]]  # x, y, text and colour of each line's end


def panel_canvas(number: int, **options: Any) -> tuple[Picture, list[Axes]]:
    """Make one or two full panels, or rows of three (or two or four without a gap)."""
    if number <= 2:
        return canvas(number, size=ONE if number == 1 else None, **options)
    width = {4: 2, 8: 4}.get(number, 3)
    height = -(-number // width)
    size = (WIDEST if width == 4 else DOUBLE[0], 0.6 + 2.4 * height)
    return canvas(width, height, size, number, **options)


def finish_labels(axes_list: Sequence[Axes], ends_list: Sequence[Ends]) -> None:
    """Name the line ends of each panel, or six or more lines in a legend."""
    entries: dict = {}
    for axes, ends in zip(axes_list, ends_list, strict=True):
        if len(ends) <= 5:
            label_ends(axes, ends)
        names = {text for _, _, text, _ in ends} if len(ends) <= 5 else set()
        entries.update({label: line for line, label in zip(*axes.get_legend_handles_labels(),
                                                           strict=True)
                        if label not in names | entries.keys()})
    if entries:
        legend_below(axes_list[0].figure, [*entries.values()])


@styled
def learning_curves(rows: pd.DataFrame, y: Sequence[str] | Panels, title: str,
                    y_label: str = "recall, %", *, x: str = "epoch", by: str = "method",
                    x_label: str = "epoch", log: bool = False, sharey: bool = False,
                    ordered: bool = False, note: str = "") -> Picture:
    """Draw a value after every epoch (or step): one line per method, seeds as a band.

    Args:
        rows: one epoch of one run per row: `by`, seed, `x`, the columns of `y` (NaN: not shown).
        y: columns, a panel each, or {panel title: columns}.
        ordered: whether methods are rising values of one parameter, coloured dark to light.
    """
    panels = y if isinstance(y, Mapping) else {column: [column] for column in y}
    figure, axes_list = panel_canvas(len(panels), sharey=sharey)
    looks = looks_of(list(rows[by].unique()), ordered)
    ends_list, counts = [], []
    for axes, (panel, columns) in zip(axes_list, panels.items(), strict=True):
        axes.set(title=panel, xlabel=x_label, ylabel=y_label, yscale="log" if log else "linear")
        if log:
            plain_log(axes.yaxis)
        if (rows[x] % 1 == 0).all():
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        ends: Ends = []
        for column in columns:
            for name, part in rows.groupby(by, sort=False):
                summary = band_line(axes, part, x, column, looks[name], dots=False)
                ends.append((*summary.iloc[-1][[x, "mean"]], *looks[name][:2]))
                counts.append(summary["n"][summary["n"] > 0])
        ends_list.append(ends)
    finish(figure, title, note, seeds_note(pd.concat(counts)))
    finish_labels(axes_list, ends_list)
    return figure


def looks_of(names: Sequence[str], ordered: bool) -> dict[str, Look]:
    """Look up how lines are drawn: as everywhere, or if ordered from dark to light."""
    looks = {name: look(name, place) for place, name in enumerate(names)}
    if not ordered:
        return looks
    colours = matplotlib.colormaps[VALUES]
    steps = max(len(names) - 1, 1)
    return {name: how._replace(colour=matplotlib.colors.to_hex(
        colours(LIGHTEST * place / steps))) for place, (name, how) in enumerate(looks.items())}

FAR, APART = 5.0, 1.6  # on a log axis: values with nothing tried between; ticks side by side


def panels_of(columns: Sequence[str] | Panels) -> Panels:
    """Group columns by panel title: as given, or one panel per direction they name."""
    if isinstance(columns, Mapping):
        return columns
    found: dict[str, list[str]] = {}
    for column in columns:
        title = next((words for key, words in DIRECTIONS.items() if key in column.split("_")), "")
        found.setdefault(title, []).append(column)
    return found


def positions(values: pd.Series, apart: Sequence[str], log: bool) -> dict[object, float]:
    """Place each value of a hyperparameter; those in `apart` go right of a gap."""
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
    beyond = [scale(numbers[-1]) + width * (0.22 + 0.16 * place) for place in range(len(extra))]
    return dict(zip(numbers, numbers, strict=True)) | {
        value: float(10 ** at if log else at) for value, at in zip(extra, beyond, strict=True)}


@styled
def sweep_curve(rows: pd.DataFrame, x: str, y: Sequence[str] | Panels, title: str,
                x_label: str, y_label: str = "recall, %", *, by: str | None = None,
                apart: Sequence[str] = (), log: bool = False, default: float | None = None,
                default_name: str = "paper", reported: pd.DataFrame | None = None,
                reported_label: str = "as printed, %",
                marked: pd.DataFrame | None = None, note: str = "", sharey: bool = False,
                names: Mapping[str, str] | None = None,
                baseline: pd.DataFrame | None = None, baseline_name: str = "baseline") -> Picture:
    """Draw a metric against a hyperparameter: mean, 95 % band, a dot for every seed.

    On a log axis the line is dotted, without a band, over a factor of five with nothing tried.

    Args:
        rows: one run per row: the hyperparameter, seed, one column per metric (percent).
        x: column of the hyperparameter; text values must be listed in `apart` ("sum").
        y: metric columns; a panel per direction, or {panel title: columns}.
        by: column of method names, a line for each (takes one metric per panel).
        apart: text values, right of a gap.
        default: place of a thin vertical line.
        reported: printed numbers, columns panel, x, metric, value, in panels of their own, which y
            names without columns.
        marked: points with a ring, columns metric, `by`, x, at_edge (bool: a square).
        note: caption, before the number of seeds.
        names: of some columns, for the ends of their lines.
        baseline: runs whose mean is a dashed line across each panel.
    Raises: ValueError: text values that are not in `apart`, or a log scale with values <= 0.
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
    level = "" if baseline is None else f"dashed: {baseline_name}"
    numbers = [value for value in places if not isinstance(value, str)]
    holes = "dotted: nothing tried between" * (
        log and any(high / low >= FAR for low, high in pairwise(numbers)))
    finish(figure, title, note, level, holes, seeds_note(pd.concat(counts)))
    finish_labels(axes_list, ends)
    return figure


def prepare(axes: Axes, panel: str, places: Mapping[object, float], log: bool,
            default: float | None, default_name: str) -> None:
    """Set title, scale, the default, and a tick for every value (fewer if there are many)."""
    axes.set_title(panel, pad=None if default is None else 14)  # room for the name of the choice
    if log:
        axes.set_xscale("log")
    numbers = [value for value in places if not isinstance(value, str)]
    extra = [value for value in places if isinstance(value, str)]
    shown = spaced(numbers) if log else evenly(numbers) if len(numbers) <= 9 else numbers[::2]
    axes.set_xticks([places[value] for value in shown + extra],
                    [f"{value:g}" for value in shown] + extra)
    axes.set_xticks([places[value] for value in numbers], minor=True)
    axes.tick_params(axis="x", which="minor", labelbottom=False)
    if default is not None:
        axes.axvline(default, color=INK, linewidth=0.9, linestyle=":", zorder=1.5)
        name_above(axes, default, default_name)


def evenly(numbers: Sequence[float]) -> list[float]:
    """Choose rising numbers of a linear axis, a tenth of the axis apart.

    Example:
        >>> evenly([0.05, 0.1, 0.2, 0.6]), evenly([3])
        ([0.1, 0.2, 0.6], [3])
    """
    shown = [*numbers[-1:]]
    for number in numbers[-2::-1]:
        if shown[0] - number >= (numbers[-1] - numbers[0]) / 10:
            shown.insert(0, number)
    return shown


def spaced(numbers: Sequence[float]) -> list[float]:
    """Choose rising numbers of a log axis a seventh of it, and a factor of 1.6, apart.

    Example:
        >>> spaced([1, 5, 10, 15, 20, 25, 30, 35]), spaced([0.001, 0.01, 0.02, 0.1, 1])
        ([1, 5, 10, 20, 35], [0.001, 0.01, 0.1, 1])
    """
    shown = [*numbers[:1]]
    for number in numbers[1:]:
        if number >= max(APART, (numbers[-1] / numbers[0]) ** (1 / 7)) * shown[-1]:
            shown.append(number)
    return shown


def sweep_lines(axes: Axes, rows: pd.DataFrame, columns: Sequence[str], by: str | None,
                apart: Sequence[str], x: str, far: float,
                names: Mapping[str, str] | None = None) -> tuple[Ends, list[pd.Series]]:
    """Draw the lines of one panel and points apart; return ends and counts of seeds."""
    groups = list(rows.groupby(by, sort=False)) if by else [(None, rows)]
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
    """Draw a circle around points of some lines, a square if at the edge of a grid."""
    for point in marked.to_dict("records"):
        of_line = rows[(rows[by] == point[by]) & (rows[x] == point[x])]
        axes.plot(of_line["at"].iloc[0], of_line[point["metric"]].mean(),
                  "s" if point["at_edge"] else "o", markersize=11, markerfacecolor="none",
                  color=INK, markeredgewidth=0.9)


def draw_reported(axes: Axes, printed: pd.DataFrame) -> Ends:
    """Draw printed numbers in a panel, hollow and dashed; return the line ends."""
    ends: Ends = []
    for metric, part in printed.groupby("metric", sort=False):
        how = look(metric)
        axes.plot(part["x"], part["value"], linestyle=(0, (4, 2)), linewidth=1, color=GREY,
                  marker=how.marker, markerfacecolor="white", markeredgecolor=GREY)
        ends.append((*part.iloc[-1][["x", "value"]], how.label, GREY))
    return ends
