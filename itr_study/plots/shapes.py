"""Shapes of functions and distributions: losses against a score, histograms, rank curves."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from itr_study.plots.style import (
    GREY,
    METHODS,
    RIGHT,
    WRONG,
    Picture,
    canvas,
    caption,
    headline,
    label_ends,
    legend_below,
    look,
    plain_log,
    styled,
)


def tabulate(functions: Mapping[str, Callable[[float], float]],
             scores: Sequence[float]) -> pd.DataFrame:
    """Tidy table of functions of one score: method, score, loss."""
    return pd.DataFrame([(name, float(score), float(function(score)))
                         for name, function in functions.items() for score in scores],
                        columns=["method", "score", "loss"])


@styled
def loss_curves(table: pd.DataFrame, title: str, x_label: str = "score of one negative",
                y_label: str = "loss", match: float | None = None, note: str = "") -> Picture:
    """The value of losses while one score moves and everything else stays.

    Args:    table: method, score, loss, as `tabulate` makes it.
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
        axes.annotate("match", (match, 1), xycoords=("data", "axes fraction"), xytext=(0, 1),
                      textcoords="offset points", fontsize=8, ha="center", va="bottom",
                      color=GREY)
    axes.set(xlabel=x_label, ylabel=y_label)
    headline(figure, title)
    caption(figure, note)
    label_ends(axes, ends)
    return figure


@styled
def score_histogram(scores: pd.DataFrame, title: str, x_label: str = "score (cosine)",
                    bins: int = 50, note: str = "") -> Picture:
    """Scores of matches and of other pairs, each to its own scale, one panel per method.

    Args:    scores: score, match (bool), and method where there are several.
    """
    groups = list(scores.groupby("method", sort=False)) if "method" in scores else [("", scores)]
    figure, panels = canvas(len(groups), sharex=True)
    edges = np.linspace(scores["score"].min(), scores["score"].max(), bins + 1)
    for axes, (name, part) in zip(panels, groups, strict=True):
        for match, colour, label, style in ((False, WRONG, "not a match", "--"),
                                            (True, RIGHT, "match", "-")):
            values = part.loc[part["match"] == match, "score"]
            axes.hist(values, edges, density=True, histtype="stepfilled", color=colour,
                      alpha=0.2)
            axes.hist(values, edges, density=True, histtype="step", color=colour,
                      linestyle=style, label=f"{label} ({len(values):,})")
        axes.set(title=METHODS[name].label if name in METHODS else name, xlabel=x_label,
                 ylabel="density")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0) if not name else (0.3, 1.0),
                    ncols=2, borderaxespad=0.2)
    headline(figure, title)
    caption(figure, note)
    return figure


@styled
def histogram(values: pd.DataFrame, column: str, title: str, x_label: str,
              y_label: str = "texts", by: str | None = None, share: bool = False,
              note: str = "") -> Picture:
    """Counts of whole numbers, such as words per text or texts per image; one line per group.

    Args:    share: percent of each group in the place of counts, to compare groups of other sizes.
    """
    groups = list(values.groupby(by, sort=False)) if by else [("", values)]
    figure, (axes,) = canvas()
    for position, (name, part) in enumerate(groups):
        counts = part[column].value_counts(normalize=share).sort_index() * (100 if share else 1)
        how = look(str(name), position)
        axes.step(counts.index, counts, where="mid", color=how.colour, label=how.label)
        axes.fill_between(counts.index, counts, step="mid", color=how.colour, alpha=0.15)
    axes.set(xlabel=x_label, ylabel=y_label, ylim=(0, None))
    headline(figure, title)
    caption(figure, note)
    if by:
        legend_below(figure, *axes.get_legend_handles_labels())
    return figure


@styled
def rank_curve(table: pd.DataFrame, title: str, note: str = "") -> Picture:
    """Recall at every K, on a logarithmic axis: one line per method, a panel per direction.

    Args:    table: method, direction ("i2t", "t2i"), k, recall (percent).
    """
    directions = list(table["direction"].unique())
    figure, panels = canvas(len(directions), sharey=True)
    ends = []
    for axes, direction in zip(panels, directions, strict=True):
        part = table[table["direction"] == direction]
        axes.set(title={"i2t": "image → text", "t2i": "text → image"}[direction], xscale="log",
                 xlabel="K", ylabel="R@K, %")
        plain_log(axes.xaxis)
        ends.append([])
        for position, (name, line) in enumerate(part.groupby("method", sort=False)):
            how = look(name, position)
            axes.plot(line["k"], line["recall"], how.line, color=how.colour)
            ends[-1].append((*line.iloc[-1][["k", "recall"]], how.label, how.colour))
    headline(figure, title)
    caption(figure, note)
    for axes, names in zip(panels, ends, strict=True):
        label_ends(axes, names)
    return figure
