"""How far a reader, experts and computed scores agree about the same few pairs."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from itr_study.digits import number
from itr_study.plots.style import GREY, INK, canvas, caption, headline, legend_below, styled

ROW = 0.26  # inches
# Marks of who rates: the reader, people and computed scores.
LOOKS = {"you": dict(color="#d55e00", marker="D", markersize=8),
         "rater": dict(color=INK, marker="s"),
         "computed": dict(color="#0072b2", marker="o", markerfacecolor="white")}


class Agreement(NamedTuple):
    """Whose agreement (`kind` is a key of LOOKS), how large, and its interval."""

    name: str
    kind: str
    value: float
    low: float
    high: float


@styled
def you_judge(agreements: Sequence[Agreement], title: str, label: str, note: str = "",
              judges: str = "who rated them before") -> Figure:
    """A line for each of those who rate, the one who agrees most on top.

    Args:    agreements: in any order, or none; title: the headline; label: of the axis; note:
             below; judges: who rated them before, in the legend.
    """
    figure, (axes,) = canvas(size=(7.2, 1.5 + ROW * len(agreements)))
    ordered = sorted(agreements, key=lambda one: -one.value)
    for row, one in enumerate(ordered):
        look = LOOKS[one.kind]
        axes.plot([one.low, one.high], [row, row], color=look["color"], linewidth=1.4)
        axes.plot([one.value], [row], linestyle="", **look)
        axes.annotate(number(one.value, 2), (1.02, row), xycoords=("axes fraction", "data"),
                      va="center", fontsize=8)
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_yticks(range(len(ordered)), [one.name for one in ordered])
    for tick, one in zip(axes.get_yticklabels(), ordered, strict=True):
        tick.set_fontweight("bold" if one.kind == "you" else "normal")
    axes.set(xlim=(-1.05, 1.05), ylim=(max(len(ordered), 1) - 0.4, -0.6), xlabel=label)
    headline(figure, title)
    caption(figure, note)
    shown = {"you": "you", "rater": judges, "computed": "computed scores"}
    kinds = [kind for kind in LOOKS if any(one.kind == kind for one in ordered)]
    if kinds:
        legend_below(figure, [Line2D([], [], linestyle="", **LOOKS[kind]) for kind in kinds],
                     [shown[kind] for kind in kinds])
    return figure


@styled
def nobody_yet(title: str, label: str, note: str) -> Figure:
    """The axis of `you_judge` with nobody on it, and why."""
    figure, (axes,) = canvas()
    axes.set(xlabel=label, xlim=(-1.05, 1.05), yticks=[])
    headline(figure, title)
    caption(figure, note)
    return figure
