"""The ledger at a glance: how many claims of each section have which verdict."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from itr_study.checks import check_choice
from itr_study.plots.style import (
    DOUBLE,
    GREY,
    RIGHT,
    WRONG,
    Picture,
    canvas,
    caption,
    headline,
    styled,
)

# From good to unknown: colour, hatching for those who see no colour, letters that read well on it.
LOOKS = {"reproduced": (RIGHT, "", "white"), "contradicted": (WRONG, "xx", "white"),
         "undecided": ("#bbbbbb", "", "black"), "collapsed": ("#f2dfb3", "..", "black"),
         "held by a test": ("#9ecae1", "", "black"), "not as printed": ("#e7c6dd", "\\\\", "black"),
         "not tested": ("white", "", GREY)}


@styled
def verdict_bars(table: pd.DataFrame, title: str, by: str = "section", panel: str | None = None,
                 note: str = "") -> Picture:
    """A bar of claims per group, cut by verdict, with the counts inside.

    Args:    table: one claim per row: `by`, `panel`, and outcome as the ledger gives it.
             by: column of group names, a bar each, from top to bottom in order of appearance.
             panel: column of what must never be one bar, such as claims of the papers and checks
             of ours: a panel each, headed by its value and its number of claims.
    Raises:  ValueError for an outcome that the ledger does not know.
    """
    for outcome in table["outcome"].unique():
        check_choice("outcome", outcome, LOOKS)
    parts = [("", table)] if panel is None else list(table.groupby(panel, sort=False))
    bars = [part[by].nunique() for _, part in parts]
    figure, panels = canvas(rows=len(parts), height_ratios=[n + 0.6 for n in bars], sharex=True,
                            size=(DOUBLE[0], 1.5 + 0.36 * sum(bars) + 0.5 * len(parts)))
    for axes, (name, part) in zip(panels, parts, strict=True):
        bars_of(axes, part, by)
        axes.set(title=f"{name} ({len(part)})" if name else "")
    panels[-1].set(xlabel="claims")
    shown = [outcome for outcome in LOOKS if (table["outcome"] == outcome).any()]
    panels[0].legend(handles=[Patch(facecolor=LOOKS[outcome][0], hatch=LOOKS[outcome][1],
                                    edgecolor=GREY, label=outcome) for outcome in shown],
                     loc="lower right", bbox_to_anchor=(1, 1), ncols=4, borderaxespad=0.2)
    headline(figure, title)
    caption(figure, note)
    return figure


def bars_of(axes: Axes, table: pd.DataFrame, by: str) -> None:
    """The bars of one panel."""
    groups = list(dict.fromkeys(table[by]))
    start = pd.Series(0, index=groups)
    for outcome, (colour, hatch, letters) in LOOKS.items():
        part = table[table["outcome"] == outcome]
        count = part.groupby(by).size().reindex(groups, fill_value=0)
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
