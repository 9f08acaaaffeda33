"""The ledger at a glance: how many claims of each section have which verdict."""

import pandas as pd
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
         "undecided": ("#bbbbbb", "", "black"), "not tested": ("white", "", GREY)}


@styled
def verdict_bars(table: pd.DataFrame, title: str, by: str = "section", note: str = "") -> Picture:
    """A bar of claims per group, cut by verdict, with the counts inside.

    Args:    table: one claim per row: `by`, and outcome as the ledger gives it.
             by: column of group names, a bar each, from top to bottom in order of appearance.
    Raises:  ValueError for an outcome that the ledger does not know.
    """
    for outcome in table["outcome"].unique():
        check_choice("outcome", outcome, LOOKS)
    groups = list(dict.fromkeys(table[by]))
    figure, (axes,) = canvas(size=(DOUBLE[0], 1.2 + 0.4 * len(groups)))
    start = pd.Series(0, index=groups)
    for outcome, (colour, hatch, letters) in LOOKS.items():
        part = table[table["outcome"] == outcome]
        count = part.groupby(by).size().reindex(groups, fill_value=0)
        bars = axes.barh(groups, count, left=start, color=colour, hatch=hatch, edgecolor=GREY,
                         height=0.7, label=f"{outcome} ({len(part)})")
        axes.bar_label(bars, [str(n) if n else "" for n in count], label_type="center",
                       fontsize=9, color=letters, fontweight="bold")
        start = start + count
    axes.invert_yaxis()
    axes.set(xlabel="claims")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(False, axis="y")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4, borderaxespad=0.2)
    headline(figure, title)
    caption(figure, note)
    return figure
