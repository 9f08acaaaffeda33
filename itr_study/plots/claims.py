"""Claims and the differences behind them, two measures of methods, verdicts."""

from collections.abc import Mapping
from itertools import chain
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from itr_study.checks import check_choice
from itr_study.digits import signed, with_interval
from itr_study.plots.curves import panel_canvas
from itr_study.plots.names import name_of
from itr_study.plots.style import (
    DOUBLE,
    GREY,
    INK,
    RIGHT,
    WRONG,
    Picture,
    canvas,
    finish,
    legend_above,
    legend_below,
    look,
    mark,
    room_for_words,
    seeds_note,
    styled,
    summarise,
)


@styled
def trade_off(rows: pd.DataFrame, x: str, y: str, title: str, x_label: str, y_label: str,
              note: str = "") -> Picture:
    """Draw methods at their means by two measures, with 95 % intervals, by base model.

    Args: rows: method, seed, the columns x and y (more is better), and of each method base (the
        model it was trained in) and hollow (another is above it by both).
    """
    bases = list(rows.groupby("base", sort=False))
    figure, panels = canvas(len(bases), size=(DOUBLE[0] if len(bases) > 1 else 6.4, 4.6))
    looks = {name: look(name, place) for place, name in enumerate(rows["method"].unique())}
    for axes, (base, part) in zip(panels, bases, strict=True):
        points = summarise(part, "method", x).merge(summarise(part, "method", y), on="method")
        points = points.merge(part.drop_duplicates("method")[["method", "hollow"]])
        for row in points.itertuples():
            how = looks[row.method]
            axes.plot([row.low_x, row.high_x], [row.mean_y] * 2, color=how.colour, linewidth=0.9)
            axes.plot([row.mean_x] * 2, [row.low_y, row.high_y], color=how.colour, linewidth=0.9)
            axes.plot(row.mean_x, row.mean_y, how.marker, color=how.colour, markersize=8,
                      markerfacecolor="white" if row.hollow else how.colour)
        axes.set(title=base if len(bases) > 1 else "", xlabel=x_label,
                 ylabel=y_label if axes is panels[0] else "")
        axes.margins(0.1)
    marks = [mark(how.marker, how.colour, how.label) for how in looks.values()]
    if rows["hollow"].any():
        marks.append(mark("o", GREY, "hollow: another is better by both", fill="none"))
    return finish(figure, title, note,
                  seeds_note(rows.groupby(["base", "method"])["seed"].nunique()),
                  marks=marks, columns=4 if len(bases) > 1 else 3)


# Verdicts, from good to unknown: colour, hatching, colour of the letters on it.
LOOKS = {"reproduced": (RIGHT, "", "white"), "contradicted": (WRONG, "xx", "white"),
         "no effect": ("#6b7a8f", "", "white"), "undecided": ("#bbbbbb", "", "black"),
         "collapsed": ("#f2dfb3", "..", "black"),
         "held by a test": ("#9ecae1", "", "black"), "not as printed": ("#e7c6dd", "\\\\", "black"),
         "not tested": ("white", "", GREY)}


@styled
def verdict_bars(table: pd.DataFrame, title: str, panel: str | None = None,
                 note: str = "") -> Picture:
    """Draw a bar of claims per section, cut by verdict, with the counts inside.

    Args:
        table: one claim per row: section, `panel`, and outcome as the ledger gives it.
        panel: column of kinds of claims, a panel each, headed by value and number of claims.
    Raises: ValueError: an outcome that the ledger does not know.
    """
    for outcome in table["outcome"].unique():
        check_choice("outcome", outcome, LOOKS)
    parts = [("", table)] if panel is None else list(table.groupby(panel, sort=False))
    bars = [part["section"].nunique() for _, part in parts]
    figure, panels = canvas(rows=len(parts), height_ratios=[n + 0.6 for n in bars], sharex=True,
                            size=(DOUBLE[0], 1.5 + 0.36 * sum(bars) + 0.5 * len(parts)))
    for axes, (name, part) in zip(panels, parts, strict=True):
        bars_of(axes, part)
        axes.set(title=f"{name} ({len(part)})" if name else "")
    panels[-1].set(xlabel="claims")
    shown = [outcome for outcome in LOOKS if (table["outcome"] == outcome).any()]
    legend_above(panels[0], [Patch(facecolor=LOOKS[outcome][0], hatch=LOOKS[outcome][1],
                                   edgecolor=GREY, label=outcome) for outcome in shown])
    return finish(figure, title, note)


def bars_of(axes: Axes, table: pd.DataFrame) -> None:
    """Draw the bars of one panel."""
    groups = list(dict.fromkeys(table["section"]))
    start = pd.Series(0, index=groups)
    for outcome, (colour, hatch, letters) in LOOKS.items():
        part = table[table["outcome"] == outcome]
        count = part.groupby("section").size().reindex(groups, fill_value=0)
        bars = axes.barh(groups, count, left=start, color=colour, hatch=hatch, edgecolor=GREY,
                         height=0.7, label=outcome)
        numbers = axes.bar_label(bars, [str(n) if n else "" for n in count], label_type="center",
                                 fontsize=9, color=letters, fontweight="bold")
        for number in numbers if hatch else ():  # a number is not read across lines
            number.set_bbox({"facecolor": colour, "edgecolor": "none", "pad": 0.8})
        start = start + count
    axes.margins(y=0.02)
    axes.invert_yaxis()
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(False, axis="y")


APART = 2.5  # points between the marks of neighbouring losses at one place
HIGHER = 1.3  # times a usual panel: lines of losses are close
STRIP = 0.035  # of a panel's height: between the bars of two crossings


@styled
def gain_curves(table: pd.DataFrame, places: Mapping[float, str], title: str, x_label: str, *,
                crossings: pd.DataFrame | None = None, log: bool = False,
                note: str = "", reference: str = "the hardest negative") -> Picture:
    """Draw what each loss gains over a reference (the line at 0), with 95 % intervals.

    Args:
        table: panel, loss, x, difference, low, high (NaN: no interval), n (seeds), verdict
            ("collapsed" is hollow).
        places: ticks, x -> text.
        crossings: panel, loss, at, low, high (on the scale of x): bars at the foot of the panel,
            with the loss's mark where it passes 0.
    """
    figure, panels = panel_canvas(table["panel"].nunique())
    for axes, (panel, part) in zip(panels, table.groupby("panel", sort=False), strict=True):
        axes.set(title=panel, xlabel=x_label, xscale="log" if log else "linear",
                 ylabel=f"minus {reference}, points")
        axes.margins(x=0.04)
        axes.set_xticks(list(places), list(places.values()))
        axes.set_xticks([], minor=True)
        axes.axhline(0, color=INK, linewidth=1.0, linestyle=(0, (4, 2)), zorder=1.5)
        loss_lines(axes, part)
        if crossings is not None:
            crossing_bars(axes, crossings[crossings["panel"] == panel])
    hollow = "hollow: scores have collapsed" * bool((table["verdict"] == "collapsed").any())
    finish(figure, title, note, hollow, seeds_note(table["n"]))
    figure.set_figheight(HIGHER * figure.get_figheight())
    room_for_words(figure)
    named = [zip(*axes.get_legend_handles_labels()[::-1], strict=True) for axes in panels]
    legend_below(figure, [*dict(chain.from_iterable(named)).values()], columns=6)
    return figure


def loss_lines(axes: Axes, table: pd.DataFrame) -> None:
    """Draw the lines of one panel, each moved aside a little."""
    losses = list(table["loss"].unique())
    for place, loss in enumerate(losses):
        part, how = table[table["loss"] == loss].sort_values("x"), look(loss, place)
        aside = APART * (place - (len(losses) - 1) / 2) / 72
        moved = axes.transData + ScaledTranslation(aside, 0, axes.figure.dpi_scale_trans)
        axes.vlines(part["x"], part["low"], part["high"], color=how.colour, linewidth=1.1,
                    transform=moved, clip_on=False)
        axes.plot(part["x"], part["difference"], how.line, marker=how.marker, color=how.colour,
                  label=how.label, transform=moved, linewidth=1.2, clip_on=False)
        for line in part[part["verdict"] == "collapsed"].itertuples():
            axes.plot(line.x, line.difference, how.marker, color=how.colour, clip_on=False,
                      markerfacecolor="white", transform=moved)
    values = table[["difference", "low", "high"]].stack()
    axes.update_datalim([(x, y) for x in table["x"] for y in (values.min(), values.max(), 0)])
    axes.autoscale_view()


def crossing_bars(axes: Axes, found: pd.DataFrame) -> None:
    """Draw a bar for each crossing below all lines, in room made for it."""
    low, high = axes.get_ylim()
    if len(found):
        axes.set_ylim(low - (high - low) * STRIP * (len(found) + 1), high)
    for place, line in enumerate(found.itertuples(), start=1):
        how, at = look(line.loss), axes.get_xaxis_transform()
        axes.plot([line.low, line.high], [STRIP * place] * 2, color=how.colour, linewidth=2.5,
                  alpha=0.6, transform=at, solid_capstyle="butt")
        axes.plot(line.at, STRIP * place, how.marker, color=how.colour, transform=at)


WIDTH, ROW = 9.6, 0.2  # inches
WORDS = 1.15  # inches from the left edge to the words of a claim, behind its verdict
LETTERS = int((WIDTH - WORDS - 0.1) * 72 / (0.56 * 8.5))
# Where one interval reaches FAR times as far as four fifths of them, the axis ends at NEAR times.
NEAR, FAR, FEW = 2.0, 3.0, 5  # of fewer than FEW rows none is an outlier; so few seeds are open
STANDINGS = {"for": "for the claim", "against": "against it", "open": "undecided",
             "unlike fit": "training fits differ"}
PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}


@styled
def claim_dots(table: pd.DataFrame, title: str, note: str = "") -> Picture:
    """Draw differences with 95 % intervals below their claim, a panel per unit.

    An interval that would flatten the others is a mark at the edge, with its numbers.

    Args: table: unit, claim (its words), verdict (an outcome of the ledger), label, standing (one
        of OUTCOME_LOOKS), difference, low, high, margin (of an equivalence, a grey zone; else NaN);
        rows of a claim next to each other.
    """
    units = list(table.groupby("unit", sort=False))
    heights = [rows_of(part)[-1] for _, part in units]
    figure, panels = canvas(rows=len(units), height_ratios=[top + 1.2 for top in heights],
                            size=(WIDTH, 1.2 + ROW * sum(heights) + 0.62 * len(units)))
    for axes, (unit, part) in zip(panels, units, strict=True):
        unit_panel(axes, part)
        axes.set_xlabel(unit)
    legend_above(panels[0], outcome_marks(table["standing"], STANDINGS), columns=5)
    return finish(figure, title, note)


def rows_of(part: pd.DataFrame) -> np.ndarray:
    """Compute the height of every row, below its claim, and that of the panel."""
    first = part["claim"].ne(part["claim"].shift())
    lines = [len(wrap(claim, LETTERS)) if begins else 0
             for claim, begins in zip(part["claim"], first, strict=True)]
    return np.append(np.arange(len(part)) + np.cumsum(lines), len(part) + sum(lines))


def unit_panel(axes: Axes, part: pd.DataFrame) -> None:
    """Draw the claims of one unit: words above, rows below."""
    *heights, bottom = rows_of(part)
    limit, before = reach(part), None
    for height, row in zip(heights, part.itertuples(), strict=True):
        if row.claim != before:
            words_above(axes, height, row)
        before = row.claim
        difference_row(axes, height, row, limit)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(heights, [name_of(label) for label in part["label"]])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set(ylim=(bottom - 0.3, -0.7))
    if limit is not None:
        axes.set_xlim(-limit, limit)
    axes.grid(False, axis="y")


def reach(part: pd.DataFrame) -> float | None:
    """Limit an axis if a few intervals would flatten the rest; None: no limit.

    Example:
        >>> rows = pd.DataFrame({"difference": [1.0, 2, 3, 4, 94], "low": [0.0, 1, 2, 3, 90],
        ...                      "high": [2.0, 3, 4, 5, 98]})
        >>> reach(rows), reach(rows.head(4))
        (10.0, None)
    """
    ends = part[["difference", "low", "high"]].abs().max(axis=1)
    usual = ends.quantile(0.8, interpolation="lower")
    return None if len(ends) < FEW or ends.max() <= FAR * usual else float(NEAR * usual)


def words_above(axes: Axes, height: float, row: Any) -> None:
    """Write the verdict of a claim and its words, from the left edge of the picture."""
    lines = wrap(row.claim, LETTERS)
    colour = LOOKS[row.verdict][0] if row.verdict in ("reproduced", "contradicted") else GREY
    at = {"xycoords": (axes.figure.transFigure, axes.transData), "annotation_clip": False,
          "in_layout": False, "fontsize": 8.5, "va": "center", "bbox": PAPER, "zorder": 3}
    for place, line in enumerate(lines):
        where = height - len(lines) + place
        if not place:
            axes.annotate(row.verdict, (0.1 / WIDTH, where), color=colour, fontweight="bold", **at)
        axes.annotate(line, (WORDS / WIDTH, where), color=INK, **at)


def difference_row(axes: Axes, height: float, row: Any, limit: float | None) -> None:
    """Draw one difference, or if it is too far out its numbers at the edge."""
    ends, side = [row.difference, row.low, row.high], np.sign(row.difference)
    if limit is None or np.nanmax(np.abs(ends)) <= limit:
        interval_row(axes, height, pd.Series(row._asdict() | {"outcome": row.standing}))
        return
    colour, marker, fill = OUTCOME_LOOKS[row.standing]
    words = with_interval(*ends) if np.isfinite(ends).all() else signed(row.difference)
    axes.plot(0.98 * side * limit, height, marker, color=colour, fillstyle=fill)
    axes.annotate(f"{words} {'→' if side > 0 else '←'}",
                  (0.95 * side * limit, height), fontsize=8, color=colour, va="center",
                  ha="right" if side > 0 else "left")


# Outcomes of one difference: colour, marker, fill. "unlike fit": runs fit their training images
# too differently; "the same": the whole interval is inside the margin.
OUTCOME_LOOKS = {"settled": (INK, "o", "full"), "for": (RIGHT, "o", "full"),
                 "against": (WRONG, "X", "full"), "open": (GREY, "o", "none"),
                 "collapsed": (GREY, "D", "none"), "unlike fit": (GREY, "v", "none"),
                 "the same (inside the zone)": ("#0072b2", "D", "full")}
MEANINGS = {"settled": "interval on one side of zero", "open": "undecided"}
OUTCOMES = {"same": "the same (inside the zone)", "higher": "settled",
            "lower": "settled", "undecided": "open", "collapsed": "collapsed"}


@styled
def dot_intervals(table: pd.DataFrame, title: str, x_label: str = "difference, points",
                  note: str = "") -> Picture:
    """Draw paired differences with their 95 % intervals around a zero line.

    Args: table: label, difference, low, high, and if known: outcome (one of OUTCOME_LOOKS; else
        that of `verdict`, as `Study.compare` gives it), group (a heading over neighbouring rows),
        margin (a grey zone around zero), reported (a hollow grey square).
    """
    if "verdict" in table and "outcome" not in table:
        table = table.assign(outcome=table["verdict"].str.split().str[0].map(OUTCOMES))
    heads = table["group"].ne(table["group"].shift()) if "group" in table \
        else pd.Series(False, index=table.index)
    heights = np.arange(len(table)) + heads.cumsum().to_numpy() * 1.0
    figure, (axes,) = canvas(size=(7.2, max(2.2, 1.4 + 0.2 * (heights[-1] + 1))))
    for height, (_, row) in zip(heights, table.iterrows(), strict=True):
        interval_row(axes, height, row)
    axes.axvline(0, color=INK, linewidth=0.8)
    labels = [*zip(heights, table["label"], strict=True)]
    labels += [(height - 1, group) for height, group in zip(
        heights[heads], table.loc[heads, "group"], strict=True)] if heads.any() else []
    axes.set_yticks([height for height, _ in labels], [name_of(label) for _, label in labels])
    for tick in axes.get_yticklabels()[len(table):]:
        tick.set_fontweight("bold")
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel=x_label, ylim=(heights[-1] + 0.7, -0.7))
    axes.grid(False, axis="y")
    few = table.get("n", pd.Series(FEW, table.index)) < FEW
    why = f"undecided: fewer than {FEW} seeds"
    entries = outcome_marks(table["outcome"], MEANINGS | {"open": why} if few.all() else MEANINGS) \
        if "outcome" in table else [mark("o", INK, why, "none")] * bool(few.any())
    if "reported" in table and table["reported"].notna().any():
        entries.append(mark("s", GREY, "reported", fill="none"))
    if entries:
        legend_above(axes, entries)
    paired = {"comparison", "n"} <= set(table)  # as `Study.compare` gives them
    finish(figure, title, note, seeds_note(table["n"]) if paired else "")
    room_for_words(figure)
    return figure


def interval_row(axes: Axes, height: float, row: pd.Series) -> None:
    """Draw one difference: interval, mean as a mark, margin and printed number."""
    alone = INK, "o", "none" if row.get("n", FEW) < FEW else "full"  # without an outcome
    colour, marker, fill = OUTCOME_LOOKS.get(row.get("outcome"), alone)
    margin, printed = row.get("margin", np.nan), row.get("reported", np.nan)
    if not pd.isna(margin):
        axes.barh(height, 2 * margin, left=-margin, height=0.9, color="#ececec", zorder=0)
    if not pd.isna(printed):  # below our own, which it may touch
        axes.plot(printed, height, "s", markerfacecolor="white", color=GREY)
    if np.isfinite([row["low"], row["high"]]).all():
        axes.plot([row["low"], row["high"]], [height, height], color=colour, linewidth=1.6)
    axes.plot(row["difference"], height, marker, color=colour, fillstyle=fill)


def outcome_marks(outcomes: pd.Series, names: Mapping[str, str]) -> list[Line2D]:
    """Make the marks of a legend, of the outcomes that occur."""
    return [mark(marker, colour, names.get(outcome, outcome), fill)
            for outcome, (colour, marker, fill) in OUTCOME_LOOKS.items()
            if (outcomes == outcome).any()]
