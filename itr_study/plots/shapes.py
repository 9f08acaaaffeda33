"""Functions and distributions: losses, histograms, ranks, grids, windows."""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter

import matplotlib
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.ticker import MaxNLocator

from itr_study.digits import number
from itr_study.losses import LOSSES
from itr_study.plots.style import (
    DIFFERENCES,
    DIRECTIONS,
    GREY,
    INK,
    METHODS,
    RIGHT,
    SPARE,
    VALUES,
    WRONG,
    Picture,
    canvas,
    finish,
    label_ends,
    legend_above,
    look,
    name_above,
    plain_log,
    styled,
)


def tabulate(functions: Mapping[str, Callable[[float], float]],
             scores: Sequence[float]) -> pd.DataFrame:
    """Tabulate functions of one score: method, score, loss."""
    return pd.DataFrame([(name, float(score), float(function(score)))
                         for name, function in functions.items() for score in scores],
                        columns=["method", "score", "loss"])


@styled
def loss_curves(table: pd.DataFrame, title: str, x_label: str = "score of one negative",
                y_label: str = "loss", match: float | None = None, note: str = "") -> Picture:
    """Draw the value of losses while one score moves and everything else stays.

    Args:
        table: method, score, loss, as `tabulate` makes it.
        match: score of the match, marked.
    """
    figure, (axes,) = canvas()
    ends = []
    methods = list(table.groupby("method", sort=False))
    for position, (name, part) in enumerate(methods):
        how, apart = look(name, position), max(len(part) // 6, 1)
        first = position * apart // len(methods)  # marks of lines that coincide stand side by side
        axes.plot(part["score"], part["loss"], how.line, color=how.colour, label=how.label,
                  marker=how.marker, markevery=(first, apart))
        ends.append((*part.iloc[-1][["score", "loss"]], how.label, how.colour))
    if match is not None:
        axes.axvline(match, color=GREY, linewidth=0.7, linestyle=":")
        name_above(axes, match, "match")
    axes.set(xlabel=x_label, ylabel=y_label)
    finish(figure, title, note)
    label_ends(axes, ends)
    return figure


@styled
def score_histogram(scores: pd.DataFrame, title: str, x_label: str = "score (cosine)",
                    bins: int = 50, note: str = "") -> Picture:
    """Draw the densities of scores of matches and of other pairs, a panel per method.

    Args: scores: score, match (bool), and method if there are several.
    """
    groups = list(scores.groupby("method", sort=False)) if "method" in scores else [("", scores)]
    figure, panels = canvas(len(groups), sharex=True)
    edges = np.linspace(scores["score"].min(), scores["score"].max(), bins + 1)
    for axes, (name, part) in zip(panels, groups, strict=True):
        for match, colour, label, style in ((False, WRONG, "not a match", "--"),
                                            (True, RIGHT, "match", "-")):
            values = part.loc[part["match"] == match, "score"]
            axes.hist(values, edges, density=True, histtype="stepfilled", color=colour, alpha=0.2)
            axes.hist(values, edges, density=True, histtype="step", color=colour,
                      linestyle=style, label=f"{label} ({len(values):,})")
        axes.set(title=METHODS[name].label if name in METHODS else name, xlabel=x_label,
                 ylabel="density")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0) if not name else (0.3, 1.0),
                    ncols=2, borderaxespad=0.2)
    return finish(figure, title, note)


@styled
def histogram(values: pd.DataFrame, column: str, title: str, x_label: str,
              y_label: str = "texts", by: str | None = None, share: bool = False,
              note: str = "") -> Picture:
    """Draw counts of whole numbers, such as words per text; one line per group.

    Args:
        values: a row each: `column`, `by`.
        share: whether to draw the percent of each group, not counts.
    """
    groups = list(values.groupby(by, sort=False)) if by else [("", values)]
    figure, (axes,) = canvas()
    for position, (name, part) in enumerate(groups):
        counts = part[column].value_counts(normalize=share).sort_index() * (100 if share else 1)
        how = look(str(name), position)
        axes.step(counts.index, counts, where="mid", color=how.colour, label=how.label)
        axes.fill_between(counts.index, counts, step="mid", color=how.colour, alpha=0.15)
    axes.set(xlabel=x_label, ylabel=y_label, ylim=(0, None))
    return finish(figure, title, note, marks=axes.get_legend_handles_labels()[0] if by else ())


@styled
def rank_curve(table: pd.DataFrame, title: str, note: str = "") -> Picture:
    """Draw recall at every K on a log axis: a line per method, a panel per direction.

    Args: table: method, direction ("i2t", "t2i"), k, recall (percent).
    """
    figure, panels = canvas(table["direction"].nunique(), sharey=True)
    ends = []
    for axes, (direction, part) in zip(panels, table.groupby("direction", sort=False), strict=True):
        axes.set(title=DIRECTIONS[direction], xscale="log", xlabel="K", ylabel="R@K, %")
        plain_log(axes.xaxis)
        ends.append([])
        for position, (name, line) in enumerate(part.groupby("method", sort=False)):
            how = look(name, position)
            axes.plot(line["k"], line["recall"], how.line, color=how.colour)
            ends[-1].append((*line.iloc[-1][["k", "recall"]], how.label, how.colour))
    finish(figure, title, note)
    for axes, names in zip(panels, ends, strict=True):
        label_ends(axes, names)
    return figure


@styled
def heat_map(table: pd.DataFrame, title: str, x_label: str, y_label: str, value_label: str,
             *, limits: tuple[float, float] | None = None, signed: bool = False,
             best: str | None = "max", framed: Sequence[tuple[int, int]] = (),
             note: str = "") -> Picture:
    """Draw a value for every cell of a grid, as a number too up to 12 x 12 cells.

    Args:
        table: wide frame, index down, columns across.
        limits: colour limits, the same for pictures that are compared.
        signed: whether the map diverges around zero.
        best: outline the "max" or "min" cell; None outlines nothing.
        framed: (row, column) of cells that get a frame.
    """
    import seaborn  # slow to load, and few pictures need it

    figure, (axes,) = canvas(size=(max(4.8, 1.6 + 0.48 * table.shape[1]),
                                   max(3.2, 1.3 + 0.34 * table.shape[0])))
    values = table.to_numpy(dtype=float)
    extent = np.nanmax(np.abs(values))
    low, high = limits or ((-extent, extent) if signed else (np.nanmin(values), np.nanmax(values)))
    seaborn.heatmap(table.astype(float), vmin=low, vmax=high, ax=axes,
                    cmap=DIFFERENCES if signed else VALUES, cbar_kws={"label": value_label},
                    annot=np.vectorize(cell_text)(values) if max(values.shape) <= 12 else None,
                    fmt="", annot_kws={"fontsize": 8})
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.tick_params(length=3, rotation=0)
    for row, column in framed:
        axes.add_patch(Rectangle((column + 0.03, row + 0.03), 0.94, 0.94, fill=False,
                                 edgecolor=INK, linewidth=2))
    if best:
        pick = {"max": np.nanargmax, "min": np.nanargmin}[best]
        row, column = np.unravel_index(pick(values), values.shape)
        axes.add_patch(Rectangle((column, row), 1, 1, fill=False, edgecolor=WRONG, linewidth=2,
                                 clip_on=False))
    return finish(figure, title, note)


def cell_text(value: float) -> str:
    """Write a number as it fits into a cell; nothing for NaN.

    Example:
        >>> [cell_text(value) for value in (12.34, 1.0, 0.9999, -0.5, float("nan"))]
        ['12.3', '1', '<1', '−0.50', '']
    """
    if np.isnan(value):
        return ""
    if abs(value) > 1:
        return number(value, 1)
    if abs(value) == 1:
        return number(value, 0)
    return "<1" if round(value, 2) == 1 else number(value, 2)


def window_table(labels: Sequence[float], relaxation: float = 0.2,
                 stride: float = 0.1) -> pd.DataFrame:
    """Tabulate what every window makes of a query's candidates.

    Returns: window (1 ... M), low, high (its edges), negatives (labels below low), between,
        positives (labels of high and above).

    Example: labels 1 and 0.3 are told apart by windows from (0.4, 0.6) to (0.8, 1)
        >>> table = window_table([1.0, 0.3])
        >>> useful = table[(table.negatives > 0) & (table.positives > 0)]
        >>> len(table), len(useful), useful.low.round(1).tolist()
        (18, 5, [0.4, 0.5, 0.6, 0.7, 0.8])
    """
    low, below, above = memberships(labels, relaxation, stride)
    negatives, positives = below.sum(axis=1), above.sum(axis=1)
    return pd.DataFrame({"window": np.arange(1, len(low) + 1), "low": low, "high": low + relaxation,
                         "negatives": negatives, "between": len(labels) - negatives - positives,
                         "positives": positives})


def memberships(labels: Sequence[float], relaxation: float,
                stride: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute lower edges (M,), and which candidates are negative and positive (M, n)."""
    loss = LOSSES["kendall_window"](relaxation=relaxation, stride=stride)
    row = torch.tensor([list(labels)], dtype=torch.float64)
    upto, after = (places.numpy() for places in loss.windows(row, row == 1))
    window = np.arange(1, len(loss.edges) + 1)[:, None]
    return np.array(loss.edges), after < window, upto >= window


@styled
def sliding_windows(labels: Sequence[float], relaxation: float = 0.2, stride: float = 0.1,
                    chosen: int | None = None, title: str = "", note: str = "") -> Picture:
    """Draw windows as bars over the label axis, one at work on a query's candidates.

    Source: bcls Fig. 3.

    Args:
        labels: relevance of each candidate, in [-1, 1].
        relaxation, stride: alpha and beta.
        chosen: the window (1 ... M) at work; None: one in the middle of those with negatives and
            positives.
    """
    table, values = window_table(labels, relaxation, stride), np.asarray(labels, dtype=float)
    useful = (table["negatives"] > 0) & (table["positives"] > 0)
    if chosen is None:
        chosen = int(table["window"][useful if useful.any() else slice(None)].median())
    at, (_, below, above) = table.iloc[chosen - 1], memberships(labels, relaxation, stride)
    figure, (items, bars) = canvas(rows=2, size=(7.2, 4.2), sharex=True, height_ratios=[1, 2.4])
    kinds = np.select([below[chosen - 1], above[chosen - 1]], ["negative", "positive"], "left out")
    looks = {"negative": (WRONG, "x"), "left out": (GREY, "|"), "positive": (RIGHT, "o")}
    for kind, (colour, marker) in looks.items():
        shown = values[kinds == kind]
        items.plot(shown, np.zeros(len(shown)), marker, color=colour, markersize=7,
                   label=f"{kind}: {len(shown)}")
    items.set(yticks=[], ylim=(-1, 1), title=f"window {chosen}: from {number(at['low'], 2)} "
                                              f"to {number(at['high'], 2)}")
    legend_above(items, columns=3)
    for row, tells in zip(table.itertuples(), useful, strict=True):
        colour = INK if row.window == chosen else "#0072b2" if tells else "#c9c9c9"
        bars.plot([row.low, row.high], [row.window, row.window], color=colour,
                  linewidth=4 if row.window == chosen else 2.2, solid_capstyle="butt")
    for axes in (items, bars):
        axes.axvspan(at["low"], at["high"], color=INK, alpha=0.08, linewidth=0)
    bars.yaxis.set_major_locator(MaxNLocator(integer=True))
    bars.set(xlabel="label r, cosine of sentence vectors", ylabel="window m", xlim=(-1.03, 1.03))
    return finish(figure, title or f"{useful.sum()} of {len(table)} windows tell candidates apart",
                  note or f"α = {relaxation:g}, β = {stride:g}; pale: no negatives or no "
                          "positives, adds nothing")


@styled
def schematic_pairs_and_lists(relevance: Sequence[float] = (1.0, 0.8, 0.55, 0.3, 0.05)) -> Picture:
    """Draw the pairs of one ranked list that three losses look at, two of them wrong.

    Source: listwise Fig. 1 and topk Sec. I, redrawn as one story, without margins; top-2 is the
    first form of its paper (Eq. 8), while the mean that is trained looks at both.

    Args: relevance: of the items to the query, falling; 1 is the only match.
    """
    first, second, third, fourth, *rest = relevance
    items = [second, first, fourth, third, *rest]  # by score: two neighbours twice in wrong order
    others = [place for place in range(len(items)) if place != 1]
    asked = {"pairwise: the match above all others": [(1, other) for other in others],
             "top-k (k = 2): above all but 1": [(1, other) for other in others[1:]],
             "listwise: every pair in the right order": [
                 (upper, lower) for upper in range(len(items)) for lower in range(len(items))
                 if items[upper] > items[lower]]}
    figure, panels = canvas(3, size=(9.6, 3.1))
    for axes, (ask, pairs) in zip(panels, asked.items(), strict=True):
        draw_list(axes, items, pairs)
        wrong = sum(upper > lower for upper, lower in pairs)
        axes.set_title(f"{ask}\nwrong here: {wrong} of {len(pairs)}", fontsize=9, x=0.04)
    panels[1].text(0.85, 0, "tolerated", va="center", fontsize=8.5, color=GREY)
    return finish(figure, "The pairs of one list that three kinds of losses look at",
                  "from top to bottom: by score · darker green: more relevant (value inside) · "
                  "arcs: pairs that the loss looks at, solid red with an arrow where the lower "
                  "item should be above the upper one · top-k as drawn looks at the k-th best "
                  "negative (Eq. 8); what is trained is the mean of the k best")


def draw_list(axes: Axes, relevance: Sequence[float], pairs: Sequence[tuple[int, int]]) -> None:
    """Draw items from top to bottom, and an arc per (should be above, below)."""
    greens = matplotlib.colormaps["Greens"]
    axes.set(xlim=(-1.2, 2.6), ylim=(len(relevance) - 0.4, -0.6))
    axes.axis("off")
    for place, value in enumerate(relevance):
        axes.add_patch(Rectangle((-0.7, place - 0.34), 1.4, 0.68, facecolor=greens(0.75 * value),
                                 edgecolor=GREY, linestyle="-" if value == 1 else "--"))
        name = "match " if value == 1 else ""
        axes.text(0, place, f"{name}{value:.2f}", ha="center", va="center", fontsize=8.5,
                  color="white" if value > 0.7 else INK)
    for wrong, (upper, lower) in sorted(((a > b, sorted((a, b))) for a, b in pairs),
                                        key=itemgetter(0)):
        bend = f"arc3,rad={0.3 + 0.07 * (lower - upper)}"
        axes.add_patch(FancyArrowPatch((0.75, lower), (0.75, upper), connectionstyle=bend,
                                       arrowstyle="-|>" if wrong else "-", mutation_scale=11,
                                       color=WRONG if wrong else METHODS["topk"].colour,
                                       linewidth=2 if wrong else 0.9,
                                       linestyle="-" if wrong else (0, (4, 2))))


LINES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (6, 1, 1, 1)))
STEP_ORANGE = "#ee8866"
ACTIVE = 0.1  # of the peak slope: where the slope is more than that, a pair gets a gradient


def step_table(taus: Sequence[float], width: float = 0.2, points: int = 401) -> pd.DataFrame:
    """Tabulate the sigmoid and its slope: tau, x, sigmoid, slope, active.

    Example: at x = 0 the sigmoid is one half, and its slope 1 / (4 tau)
        >>> step_table([0.01], points=3)[["x", "sigmoid", "slope"]].iloc[1].tolist()
        [0.0, 0.5, 25.0]
    """
    x = np.linspace(-width, width, points)
    frames = []
    for tau in taus:
        high = 0.5 * (1 + np.tanh(x / (2 * tau)))  # the sigmoid, without overflow
        slope = high * (1 - high) / tau
        frames.append(pd.DataFrame({"tau": tau, "x": x, "sigmoid": high, "slope": slope,
                                    "active": slope > ACTIVE / (4 * tau)}))
    return pd.concat(frames, ignore_index=True)


def active_width(tau: float) -> float:
    """Compute half the width of the activation area, where differences get a gradient.

    Example:
        >>> round(active_width(0.01), 4)
        0.0364
    """
    high = (1 + np.sqrt(1 - ACTIVE)) / 2  # high (1 - high) = ACTIVE / 4
    return float(tau * np.log(high / (1 - high)))


@styled
def smooth_steps(taus: Sequence[float], width: float = 0.2) -> Picture:
    """Draw the step, its derivative, the sigmoid, and its slope with the active area.

    Source: listwise Fig. 4.

    Args:
        taus: 1 to 4 temperatures.
        width: largest difference of scores shown.
    """
    table = step_table(taus, width)
    figure, axes = canvas(2, 2, size=(9.6, 5.4), sharex=True)
    step, delta, sigmoid, slope = axes
    step.plot([-width, 0], [0, 0], color=GREY)
    step.plot([0, width], [1, 1], color=GREY)
    step.plot([0], [0], "o", color=GREY, markerfacecolor="white")
    step.plot([0], [1], "o", color=GREY)
    delta.axhline(0, color=GREY)
    delta.annotate("", (0, 1), (0, 0), arrowprops={"arrowstyle": "-|>", "color": GREY})
    for (tau, part), colour, line in zip(table.groupby("tau", sort=False), SPARE, LINES,
                                         strict=False):
        sigmoid.plot(part["x"], part["sigmoid"], color=colour, linestyle=line, label=f"τ = {tau:g}")
        slope.plot(part["x"], part["slope"], color=colour, linestyle=line)
        slope.fill_between(part["x"], part["slope"], where=part["active"], color=STEP_ORANGE,
                           alpha=0.35, linewidth=0)
    for panel, name, label in zip(axes, "abcd", (
            "step H(x): is the other above?", "its derivative δ(x): no gradient but at 0",
            "sigmoid σ(x; τ)", "slope dσ/dx; shaded: activation area"), strict=True):
        panel.set_title(f"({name}) {label}")
    for panel in (sigmoid, slope):
        panel.set_xlabel("x, difference of two scores")
    for panel in (step, delta, sigmoid):
        panel.set(ylim=(-0.1, 1.15), ylabel="value")
    delta.set(yticks=[], ylabel="")  # its height has no meaning
    slope.set(ylabel="slope", ylim=(0, None))
    sigmoid.legend(loc="upper left")
    return finish(figure, "The smooth step and its slope by τ",
                  f"activation area: slope above {ACTIVE:.0%} of its peak 1 / (4 τ)")
