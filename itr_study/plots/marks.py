"""Pieces that several pictures share: seeds with their band, labels at line ends."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, NullFormatter

from itr_study.digits import counted
from itr_study.metrics.intervals import student_interval
from itr_study.plots.style import Look


def summarise(rows: pd.DataFrame, by: str, value: str) -> pd.DataFrame:
    """Mean and 95 % Student-t interval over the seeds, one row per value of `by`, in its order.

    With fewer than two seeds `low` and `high` are NaN: there is no interval to draw.
    """
    records = []
    for key, group in rows.groupby(by, sort=False):
        values = group[value].dropna().to_numpy(dtype=float)
        low, high = student_interval(values) if len(values) > 1 else (np.nan, np.nan)
        records.append({by: key, "mean": values.mean() if len(values) else np.nan,
                        "low": low, "high": high, "n": len(values)})
    return pd.DataFrame(records, columns=[by, "mean", "low", "high", "n"])


def plain_log(axis: Axis) -> None:
    """Ticks at the powers of ten, written out (1, 10, 100)."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def seeds_note(counts: pd.Series) -> str:
    """How many seeds stand behind the points: "n = 5 seeds", "n = 3 to 5 seeds"."""
    least, most = int(counts.min()), int(counts.max())
    return f"n = {counted(least, 'seed', most)}, " + (
        "band: 95 % interval of the mean" if most > 1 else "no interval")


def band_line(axes: Axes, rows: pd.DataFrame, x: str, value: str, how: Look,
              dots: bool = True, far: float = np.inf) -> pd.DataFrame:
    """Mean line with its band and a faint dot for every seed; a single mean, which makes no line,
    is marked in any case. Between neighbours of which one is `far` times the other, where nothing
    is known, the line is dotted and has no band. Returns the summary."""
    summary = summarise(rows.sort_values(x, kind="stable"), x, value)
    if dots:
        axes.plot(rows[x], rows[value], how.marker, color=how.colour, alpha=0.25, markersize=3,
                  markeredgewidth=0)
    marker = how.marker if dots or summary["mean"].notna().sum() == 1 else None
    at = summary[x].to_numpy(dtype=float)
    holes = np.flatnonzero(at[1:] >= far * at[:-1]) + 1 if np.isfinite(far) else []
    for place, piece in enumerate(np.split(np.arange(len(at)), holes)):
        part = summary.iloc[piece]
        axes.fill_between(part[x], part["low"], part["high"], color=how.colour, alpha=0.15,
                          linewidth=0)
        axes.plot(part[x], part["mean"], how.line, marker=marker, color=how.colour,
                  label="_" if place else how.label)
        if len(holes) and len(part) == 1:  # has no band: its interval as a bar
            axes.plot([part[x].iloc[0]] * 2, [part["low"].iloc[0], part["high"].iloc[0]],
                      color=how.colour, linewidth=1.2)
    for hole in holes:
        ends = summary.iloc[hole - 1:hole + 1]
        axes.plot(ends[x], ends["mean"], ":", color=how.colour, linewidth=1)
    return summary


def level_line(axes: Axes, ends: tuple[float, float], rows: pd.DataFrame, value: str,
               how: Look) -> None:
    """The mean of some runs as a dashed line from end to end, with its interval."""
    level = summarise(rows.assign(all=0), "all", value).iloc[0]
    axes.plot(ends, [level["mean"]] * 2, color=how.colour, linestyle=(0, (4, 2)), linewidth=1.1)
    axes.fill_between(ends, level["low"], level["high"], color=how.colour, alpha=0.07, linewidth=0)


def spread(heights: np.ndarray, gap: float) -> np.ndarray:
    """Move heights apart as little as is simple, until neighbours are at least `gap` apart.

    Example:
        >>> spread(np.array([0.0, 1.0, 1.0, 9.0]), 1.5).round(2).tolist()  # mean of three: 2 / 3
        [-0.83, 0.67, 2.17, 9.0]
    """
    order = np.argsort(heights, kind="stable")
    clusters = [([index], float(heights[index])) for index in order]
    position = 0
    while position + 1 < len(clusters):
        (low, centre_low), (high, centre_high) = clusters[position:position + 2]
        if centre_high - centre_low >= gap * (len(low) + len(high)) / 2 - 1e-9:
            position += 1
            continue
        members = low + high
        shift = gap * (np.arange(len(members)) - (len(members) - 1) / 2)
        clusters[position:position + 2] = [(members, float((heights[members]).mean()
                                                           - shift.mean()))]
        position = max(position - 1, 0)
    moved = np.empty(len(heights))
    for members, centre in clusters:
        moved[members] = centre + gap * (np.arange(len(members)) - (len(members) - 1) / 2)
    return moved


def label_ends(axes: Axes, ends: list[tuple[float, float, str, str]], size: float = 8) -> None:
    """Write each line's name beside its end, moved apart where they would overlap.

    Args:    ends: (x, y in data units, text, colour) of each line.
    Notes:   draws the figure once, because the layout decides how far apart labels must be.
    """
    if not ends:
        return
    notes = [axes.annotate(text, (x, y), xytext=(8, 0), textcoords="offset points", va="center",
                           fontsize=size, color=colour, annotation_clip=False)
             for x, y, text, colour in ends]
    axes.figure.canvas.draw()
    to_points = 72 / axes.figure.dpi
    heights = axes.transData.transform([(x, y) for x, y, _, _ in ends])[:, 1] * to_points
    for note, shift in zip(notes, spread(heights, size * 1.35) - heights, strict=True):
        note.set_position((8, shift))
