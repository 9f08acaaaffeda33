"""Which one should I use? Methods by two measures at once: what one gains, another may lose."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from itr_study.plots.marks import summarise
from itr_study.plots.naming import name_marks, obstacles, settle
from itr_study.plots.style import GREY, INK, Picture, canvas, caption, headline, styled

SIZE, WIDE = (6.4, 6.6), (9.6, 8.4)  # inches, of one judge and of two
# Of each kind in the order given: its colour, and its marker in the first and the second judge.
KIND_LOOKS = ((INK, "o", "v"), ("#d55e00", "s", "P"), ("#0072b2", "D", "X"))
FRONTS = ("-", (0, (4, 2)))  # a line for each judge


@styled
def trade_off(rows: pd.DataFrame, x: str, y: str, title: str, x_label: str, y_label: str,
              kinds: Sequence[str], fewest: int = 2, note: str = "") -> Picture:
    """A named mark for each method at its means by two measures, with the 95 % intervals of both;
    a line joins the means of a judge that no other mean exceeds by both (the Pareto front).

    Args:    rows: method, seed, the columns x and y, of which more is better, and of each method
             judge (the model that it was trained in; a front each), kind and hollow (whether
             another is settled to exceed it by both).
             kinds: all that there may be, in an order that gives each its colour and marker.
             fewest: seeds that every method of a judge must have, or there is no line.
    """
    crowded = rows["judge"].nunique() > 1
    figure, (axes,) = canvas(size=WIDE if crowded else SIZE)
    parts, edges = [], []
    for place, (judge, part) in enumerate(rows.groupby("judge", sort=False)):
        points = summarise(part, "method", x).merge(summarise(part, "method", y), on="method")
        points = points.merge(part.drop_duplicates("method")[["method", "kind", "hollow"]])
        edge = points[on_front(points["mean_x"], points["mean_y"])].sort_values("mean_x")
        whose = f" ({judge})" if crowded else ""
        if points["n_x"].min() >= fewest and len(edge) > 1:
            axes.plot(edge["mean_x"], edge["mean_y"], color="#999933", linewidth=1.1, zorder=1,
                      linestyle=FRONTS[place], label=f"front: no mean is higher by both{whose}")
            edges.append(edge)
        parts.append(points.assign(look=[(KIND_LOOKS[kinds.index(kind)][0],
                                          KIND_LOOKS[kinds.index(kind)][1 + place])
                                         for kind in points["kind"]],
                                   entry=f"{judge}, " * crowded + points["kind"]))
    points = pd.concat(parts, ignore_index=True)
    draw_points(axes, points)
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.margins(0.1)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3 if crowded else 2,
                borderaxespad=0.3)
    headline(figure, title)
    caption(figure, note)
    settle(figure)
    name_marks(axes, points["method"], points[["mean_x", "mean_y"]].to_numpy(),
               [colour for colour, _ in points["look"]],
               obstacles(axes, points.rename(columns={"mean_x": "x", "mean_y": "y"}), [
                   edge[["mean_x", "mean_y"]].to_numpy() for edge in edges]))
    return figure


def draw_points(axes: Axes, points: pd.DataFrame) -> None:
    """A mark with two intervals for each point, and what the looks mean, for the legend."""
    for entry, (colour, marker) in points.drop_duplicates("entry")[["entry", "look"]].to_numpy():
        axes.plot([], [], marker, color=colour, label=entry)
    for row in points.itertuples():
        colour, marker = row.look
        axes.plot([row.low_x, row.high_x], [row.mean_y] * 2, color=colour, linewidth=0.9)
        axes.plot([row.mean_x] * 2, [row.low_y, row.high_y], color=colour, linewidth=0.9)
        axes.plot(row.mean_x, row.mean_y, marker, color=colour,
                  markerfacecolor="white" if row.hollow else colour)
    if points["hollow"].any():
        axes.plot([], [], "o", color=GREY, markerfacecolor="white",
                  label="hollow: settled behind another by both")


def on_front(x: pd.Series, y: pd.Series) -> pd.Series:
    """Which points no other exceeds by both.

    Example:
        >>> on_front(pd.Series([1, 2, 3, 2]), pd.Series([3, 2, 1, 1])).tolist()
        [True, True, True, False]
    """
    return pd.Series([not ((x >= a) & (y >= b) & ((x > a) | (y > b))).any()
                      for a, b in zip(x, y, strict=True)], index=x.index)
