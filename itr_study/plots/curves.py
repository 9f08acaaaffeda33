"""Curves: a metric against a hyperparameter with every seed shown; learning over epochs."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from itr_study.plots.marks import (
    band_line,
    label_ends,
    level_line,
    plain_log,
    seeds_note,
    summarise,
)
from itr_study.plots.style import (
    DIRECTIONS,
    DOUBLE,
    GREY,
    INK,
    Picture,
    canvas,
    caption,
    headline,
    look,
    styled,
)

Panels = Mapping[str, Sequence[str]]
Ends = list[tuple[float, float, str, str]]  # x, y, text and colour of each line's end


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


def panel_canvas(number: int) -> tuple[Picture, list[Axes]]:
    """One or two panels at their full size, more of them in rows of three."""
    if number <= 2:
        return canvas(number)
    height = -(-number // 3)
    figure, axes_list = canvas(3, height, size=(DOUBLE[0], 0.6 + 2.4 * height))
    for axes in axes_list[number:]:
        axes.remove()
    return figure, axes_list[:number]


@styled
def sweep_curve(rows: pd.DataFrame, x: str, y: Sequence[str] | Panels, title: str,
                x_label: str, y_label: str = "recall, %", *, by: str | None = None,
                apart: Sequence[str] = (), log: bool = False, default: float | None = None,
                reported: pd.DataFrame | None = None, note: str = "",
                baseline: pd.DataFrame | None = None, baseline_name: str = "baseline") -> Picture:
    """A metric against a hyperparameter: its mean, every seed a faint dot, a band for the interval.

    Args:    rows: one run per row: the hyperparameter, seed, one column per metric (percent).
             x: column of the hyperparameter; text values must be listed in `apart` ("sum").
             y: metric columns; a panel per direction, or {panel title: columns}.
             by: column of method names, a line for each (takes one metric per panel).
             default: the paper's choice, a thin vertical line.
             reported: printed numbers, columns x, metric (a name from y), value, label.
             note: text under the figure, before the number of seeds.
             baseline: runs without it: their mean is a dashed line across each panel.
    Raises:  ValueError for text values that are not in `apart`, or a log scale with values <= 0.
    """
    panels = panels_of(y)
    places = positions(rows[x], apart, log)
    rows = rows.assign(at=[places[value if isinstance(value, str) else float(value)]
                           for value in rows[x]])
    figure, axes_list = panel_canvas(len(panels))
    ends, counts = [], []
    for axes, (panel, columns) in zip(axes_list, panels.items(), strict=True):
        axes.set(xlabel=x_label, ylabel=y_label)
        axes.set_title(panel, pad=None if default is None else 14)  # room for the word "paper"
        if log:
            axes.set_xscale("log")
        value_ticks(axes, places, rows, x, log)
        lines = sweep_lines(axes, rows, columns, by, apart, x)
        ends.append(lines[0])
        counts += lines[1]
        for place, column in enumerate(columns if baseline is not None else ()):
            level_line(axes, (rows["at"].min(), rows["at"].max()), baseline, column,
                       look(column, place))
        if reported is not None:
            for column in columns:
                draw_reported(axes, reported[reported["metric"] == column], places,
                              look(column).marker)
        mark_default(axes, default)
    headline(figure, title)
    level = "" if baseline is None else f"dashed: {baseline_name}"
    caption(figure, " · ".join(filter(None, [note, level, seeds_note(pd.concat(counts))])))
    finish_labels(axes_list, ends)
    return figure


def value_ticks(axes: Axes, places: Mapping[object, float], rows: pd.DataFrame, x: str,
               log: bool) -> None:
    """A tick for every value (fewer when there are many), and for those apart."""
    numbers = [value for value in places if not isinstance(value, str)]
    extra = [value for value in places if isinstance(value, str)]
    shown = numbers if len(numbers) <= 9 else spaced(numbers) if log else numbers[::2]
    axes.set_xticks([places[value] for value in shown + extra],
                    [value if isinstance(value, str) else f"{value:g}"
                     for value in shown + extra])
    axes.minorticks_off()


def spaced(numbers: Sequence[float]) -> list[float]:
    """Rising numbers, each at least 2.2 times the one before.

    Example:
        >>> spaced([1, 5, 10, 15, 20, 25, 30, 35])
        [1, 5, 15, 35]
    """
    shown = [numbers[0]]
    for number in numbers[1:]:
        if number >= 2.2 * shown[-1]:
            shown.append(number)
    return shown


def sweep_lines(axes: Axes, rows: pd.DataFrame, columns: Sequence[str], by: str | None,
                apart: Sequence[str], x: str) -> tuple[Ends, list[pd.Series]]:
    """The lines of one panel and their points apart; returns their ends and counts of seeds."""
    groups = [(name, part) for name, part in rows.groupby(by, sort=False)] if by else \
        [(None, rows)]
    ends, counts = [], []
    for position, (name, column, part) in enumerate(
            (name, column, part) for column in columns for name, part in groups):
        how = look(name or column, position)
        away = part[x].isin(list(apart))
        summary = band_line(axes, part[~away], "at", column, how)
        lone = summarise(part[away], "at", column)
        axes.errorbar(lone["at"], lone["mean"], [lone["mean"] - lone["low"],
                      lone["high"] - lone["mean"]], fmt=how.marker, color=how.colour, capsize=3)
        axes.plot(part.loc[away, "at"], part.loc[away, column], how.marker, color=how.colour,
                  alpha=0.25, markersize=3, markeredgewidth=0)
        last = pd.concat([summary, lone]).iloc[-1]
        ends.append((last["at"], last["mean"], how.label, how.colour))
        counts += [part["n"] for part in (summary, lone) if len(part)]
    return ends, counts


def draw_reported(axes: Axes, printed: pd.DataFrame, places: Mapping[object, float],
                  marker: str) -> None:
    """Printed numbers: hollow grey marks, dashed, named by paper and table."""
    for label, part in printed.groupby("label", sort=False):
        at = [places.get(value if isinstance(value, str) else float(value), value)
              for value in part["x"]]
        axes.plot(at, part["value"], linestyle=(0, (4, 2)), linewidth=1, marker=marker,
                  markerfacecolor="white", markeredgecolor=GREY, color=GREY,
                  label=f"reported: {label}")


def mark_default(axes: Axes, default: float | None) -> None:
    """The paper's choice as a thin vertical line with a name."""
    if default is not None:
        axes.axvline(default, color=INK, linewidth=0.9, linestyle=":", zorder=1.5)
        axes.annotate("paper", (default, 1), xycoords=("data", "axes fraction"), xytext=(0, 1),
                      textcoords="offset points", fontsize=8, ha="center", va="bottom",
                      color=GREY)


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
        axes_list[0].figure.legend(entries.values(), entries.keys(), loc="outside lower right",
                                   ncols=min(len(entries), 4))


@styled
def learning_curves(rows: pd.DataFrame, y: Sequence[str] | Panels, title: str,
                    y_label: str = "recall, %", *, x: str = "epoch", by: str = "method",
                    x_label: str = "epoch", log: bool = False, note: str = "") -> Picture:
    """A value after every epoch, one line per method, seeds as a band.

    Args:    rows: one epoch of one run per row: `by`, seed, `x`, the columns of `y`; NaN where
             nothing is to be shown.
             y: columns, a panel each (or {panel title: columns}).
             log: logarithmic values, for losses over many magnitudes.
    """
    panels = y if isinstance(y, Mapping) else {column: [column] for column in y}
    figure, axes_list = panel_canvas(len(panels))
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
            for position, (name, part) in enumerate(rows.groupby(by, sort=False)):
                how = look(name, position)
                summary = band_line(axes, part, x, column, how, dots=False)
                ends.append((*summary.iloc[-1][[x, "mean"]], how.label, how.colour))
                counts.append(summary["n"][summary["n"] > 0])
        ends_list.append(ends)
    headline(figure, title)
    caption(figure, " · ".join(filter(None, [note, seeds_note(pd.concat(counts))])))
    finish_labels(axes_list, ends_list)
    return figure
