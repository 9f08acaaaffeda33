"""One query's list on a line of scores, with the arrows of several losses."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from itr_study.checks import MATCH
from itr_study.plots.style import (
    GREY,
    INK,
    RIGHT,
    WRONG,
    canvas,
    caption,
    headline,
    legend_below,
    styled,
)

ARROW, SHORTEST = 0.25, 0.02  # of scores: the longest arrow of a panel, and what is too short


@styled
def push_pull(texts: Sequence[str], scores: np.ndarray, relevance: np.ndarray,
              up: Mapping[str, np.ndarray], felt: Mapping[str, np.ndarray],
              title: str) -> Figure:
    """A panel for each loss: every text at its score, with the arrow of minus the gradient.

    Args:    texts, scores (n,), relevance (n,) in [0, 1], 1 for a match; up: loss -> (n,) minus its
             gradient; felt: loss -> (n,) which texts it moves; title: the headline.
    """
    rows = -(-len(up) // 2)
    figure, panels = canvas(2, rows, size=(9.6, 0.6 + rows * (0.24 * len(texts) + 0.7)),
                            sharex=True, sharey=True)
    for axes, (loss, arrows) in zip(panels, up.items(), strict=False):
        draw_list(axes, scores, relevance, arrows, felt[loss])
        axes.set_title(loss)
    for axes in panels[len(up):]:
        axes.set_visible(False)
    panels[0].set_yticks(range(len(texts)), [f"{text} ({value:.2f})"
                                             for text, value in zip(texts, relevance, strict=True)])
    panels[0].invert_yaxis()
    for axes in panels[-2:]:
        axes.set_xlabel("score")
    headline(figure, title)
    caption(figure, "in brackets: relevance; arrows: minus the gradient, the longest of each panel "
                    "drawn alike; hollow: left alone")
    shapes = {"match": dict(marker="*", markersize=10), "no match": dict(marker="o")}
    legend_below(figure, [Line2D([], [], linestyle="", color=INK, **shape)
                          for shape in shapes.values()]
                 + [Line2D([], [], color=RIGHT), Line2D([], [], color=WRONG)],
                 [*shapes, "pulled up", "pushed down"])
    return figure


def draw_list(axes: Axes, scores: np.ndarray, relevance: np.ndarray, up: np.ndarray,
              felt: np.ndarray) -> None:
    """The texts of one list as rows, the arrow of each as long as its gradient is large."""
    largest = np.abs(up).max() or 1.0
    for row, (score, value, push, moved) in enumerate(zip(scores, relevance, up, felt,
                                                          strict=True)):
        colour = RIGHT if push > 0 else WRONG
        axes.axhline(row, color=GREY, linewidth=0.4, alpha=0.4, zorder=0)
        if moved and ARROW * abs(push) / largest > SHORTEST:
            axes.annotate("", (score + ARROW * push / largest, row), (score, row),
                          arrowprops=dict(arrowstyle="->", color=colour, linewidth=1.8,
                                          shrinkA=0, shrinkB=0), zorder=4)  # a mark hides it
        match = value >= MATCH
        axes.plot([score], [row], "*" if match else "o", markersize=11 if match else 6,
                  markeredgecolor=INK, markerfacecolor=INK if moved else "white", zorder=3)
    axes.set_xlim(min(-0.1, scores.min() - ARROW), max(1.0, scores.max() + ARROW))
