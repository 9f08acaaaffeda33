"""Whether maps fall on what words name: a row for each model, beside maps that look nowhere."""

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.lines import Line2D

from itr_study.digits import number
from itr_study.plots.names import name_of
from itr_study.plots.style import (
    GREY,
    INK,
    Picture,
    canvas,
    caption,
    headline,
    legend_below,
    look,
    styled,
)

# Of each measure: what stands below its panel, and the maps that look nowhere by their columns.
PANELS = {
    "mass": ("weight inside the boxes, %",
             {"uniform": "uniform", "centre": "centre", "area": "area"}),
    "hit": ("middle of top region in a box, %", {"uniform_hit": "uniform", "centre_hit": "centre"}),
    "iou": ("overlap with the boxes, %",
            {"uniform_iou": "uniform", "centre_iou": "centre", "area": "area"})}
DOT = 4.5  # points: seeds lie close
LINES = {"uniform": ":", "centre": "--", "area": "-."}


@styled
def pointing_dots(table: pd.DataFrame, title: str, note: str = "") -> Picture:
    """How well each model looks at what words name: a dot a seed, the mean as a number, and what
    maps give that look nowhere as lines: at each model's own, since models read other regions.

    Args:    table: arm, seed, and in percent the columns of PANELS; its mean counts over seeds. Of
             words also "rest", the weight of the rest of the sentence in the same boxes, NaN where
             nobody measured it; it is drawn where a map knows its word, hollow.
    Raises:  ValueError for an empty table, NaN elsewhere.
    """
    columns = [*PANELS, *{name for _, others in PANELS.values() for name in others}]
    if table.empty or table[columns].isna().any(axis=None):
        raise ValueError("pointing_dots needs numbers in every line, NaN is an error; got "
                         f"{len(table)} lines")
    arms = list(dict.fromkeys(table["arm"]))
    figure, panels = canvas(3, size=(9.6, 1.5 + 0.32 * len(arms)), sharey=True)
    means, heights = table.groupby("arm")[columns].mean().loc[arms], np.arange(len(arms))
    marks: dict[str, Artist] = {}
    for axes, (measure, (label, others)) in zip(panels, PANELS.items(), strict=True):
        for column, name in others.items():
            marks[f"map that looks nowhere: {name}"] = axes.vlines(
                means[column], heights - 0.5, heights + 0.5, color=GREY, linestyle=LINES[name],
                linewidth=1.2)
        for height, arm in enumerate(arms):
            values, how = table.loc[table["arm"] == arm, measure], look(arm, height)
            mean = means.loc[arm, measure]
            axes.plot([mean] * 2, [height - 0.3, height + 0.3], color=INK, linewidth=2)
            axes.plot(values, [height] * len(values), how.marker, color=how.colour,
                      markersize=DOT, clip_on=False)  # the last may lie on the edge
            if measure == "mass" and (rest := rest_of(table[table["arm"] == arm])) is not None:
                axes.plot(rest, [height] * len(rest), how.marker, color=how.colour,
                          fillstyle="none", markersize=DOT, clip_on=False)
                marks["hollow: the rest of the sentence"] = Line2D(
                    [], [], color=GREY, marker="o", linestyle="", fillstyle="none",
                    markersize=DOT)
            axes.annotate(number(mean, 1), (1, height), fontsize=8, va="center",
                          xycoords=("axes fraction", "data"), xytext=(4, 0),
                          textcoords="offset points", annotation_clip=False)
        axes.set(xlabel=label, ylim=(len(arms) - 0.4, -0.6), xlim=(0, None))
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(arms)), [name_of(arm) for arm in arms])
    headline(figure, title)
    caption(figure, " · ".join(filter(None, ["mark: a seed; bar and number: mean of the seeds",
                                             note])))
    legend_below(figure, list(marks.values()), list(marks), columns=3)
    return figure


def rest_of(rows: pd.DataFrame) -> pd.Series | None:
    """What the other words have in the boxes, where that was measured and the map of a word is not
    that of all."""
    if "rest" not in rows or rows["rest"].isna().any() or np.allclose(rows["rest"], rows["mass"]):
        return None
    return rows["rest"]
