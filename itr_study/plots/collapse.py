"""How runs fall into collapse, or do not: loss and recall against the spread of the scores."""

import pandas as pd

from itr_study.plots.marks import plain_log
from itr_study.plots.style import GREY, Picture, canvas, caption, headline, look, styled


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
