"""Many methods beside each other by several measures: which one should I use?"""

from collections.abc import Mapping
from textwrap import fill

import pandas as pd

from itr_study.plots.marks import summarise
from itr_study.plots.names import name_of
from itr_study.plots.style import GREY, INK, WIDEST, Picture, canvas, caption, headline, styled

BEST = "#0072b2"
ROW = 0.21  # inches


@styled
def method_board(rows: pd.DataFrame, measures: Mapping[str, str], title: str,
                 baseline: str | None = None, note: str = "") -> Picture:
    """A panel per measure, a line per method: mean and 95 % interval over seeds; the best in blue.

    Args:    rows: method, seed and the columns of `measures`; measures: column -> its name, the
             first of which sorts the methods; baseline: a method whose mean is drawn as a line
             through each panel.
    """
    first = next(iter(measures))
    names = list(rows.groupby("method")[first].mean().sort_values(ascending=False).index)
    place = {name: height for height, name in enumerate(names)}
    width = min(2.6 + 1.55 * len(measures), WIDEST)  # of many measures, each gets less
    letters = int((width - 2.2) / len(measures) * 72 / (0.62 * 9))  # above a panel
    figure, panels = canvas(len(measures), size=(width, 1.3 + ROW * len(names)), sharey=True)
    for axes, (column, name_of_measure) in zip(panels, measures.items(), strict=True):
        table = summarise(rows.dropna(subset=column), "method", column).set_index("method")
        top = table["mean"].idxmax()
        if baseline in table.index:
            axes.axvline(table.loc[baseline, "mean"], color=GREY, linewidth=0.8, linestyle="--")
        for name, line in table.iterrows():
            colour = BEST if name == top else INK
            axes.plot([line["low"], line["high"]], [place[name]] * 2, color=colour, linewidth=1.4)
            axes.plot(line["mean"], place[name], "D" if name == top else "o", color=colour)
        axes.set_title(fill(name_of_measure, letters), fontsize=9)
        axes.margins(x=0.08)
        axes.locator_params(axis="x", nbins=4)
    panels[0].set_yticks(range(len(names)), list(map(name_of, names)))
    panels[0].set_ylim(len(names) - 0.4, -0.6)
    panels[0].tick_params(axis="y", length=0)
    headline(figure, title)
    caption(figure, note)
    return figure
