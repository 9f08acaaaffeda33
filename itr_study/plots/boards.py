"""Which one should I use? Methods by two measures at once: what one gains, another may lose."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from itr_study.plots.marks import summarise
from itr_study.plots.style import GREY, INK, Picture, canvas, caption, headline, styled

SIZE, WIDE = (6.4, 6.6), (9.6, 8.4)  # inches, of one judge and of two
# Colour and marker of each kind of the first judge, then of the second.
KIND_LOOKS = ((INK, "o"), ("#0072b2", "D"), ("#d55e00", "s"), ("#7b3294", "^"), ("#117733", "P"),
              ("#882255", "X"))
FRONTS = ("-", (0, (4, 2)))  # a line for each judge
WAYS = [(np.cos(turn), np.sin(turn)) for turn in np.arange(0, 2 * np.pi, np.pi / 6)]
AWAY = (7, 15, 26, 40, 56)  # points from a mark to the nearest edge of its name


@styled
def trade_off(rows: pd.DataFrame, x: str, y: str, title: str, x_label: str, y_label: str,
              note: str = "") -> Picture:
    """A named mark for each method at its means by two measures, with the 95 % intervals of both;
    a line joins the means of a judge that no other mean exceeds by both (the Pareto front).

    Args:    rows: method, seed, the columns x and y, of which more is better, and of each method
             judge (the model that it was trained in; a front each), kind (a colour and marker
             each) and hollow (whether another is settled to exceed it by both).
    """
    crowded = rows["judge"].nunique() > 1
    figure, (axes,) = canvas(size=WIDE if crowded else SIZE)
    looks = dict(zip(rows["kind"].unique(), KIND_LOOKS, strict=False))
    parts, edges = [], []
    for (judge, part), line in zip(rows.groupby("judge", sort=False), FRONTS, strict=False):
        points = summarise(part, "method", x).merge(summarise(part, "method", y), on="method")
        points = points.merge(part.drop_duplicates("method")[["method", "kind", "hollow"]])
        edge = points[on_front(points["mean_x"], points["mean_y"])].sort_values("mean_x")
        whose = f" ({judge})" if crowded else ""
        axes.plot(edge["mean_x"], edge["mean_y"], color="#999933", linewidth=1.1, zorder=1,
                  linestyle=line, label=f"front: no mean is higher by both{whose}"
                  if len(edge) > 1 else None)
        parts.append(points)
        edges.append(edge)
    points = pd.concat(parts, ignore_index=True)
    draw_points(axes, points, looks)
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.margins(0.1)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.3)
    headline(figure, title)
    caption(figure, note)
    name_points(axes, points, edges, [looks[kind][0] for kind in points["kind"]])
    return figure


def draw_points(axes: Axes, points: pd.DataFrame, looks: Mapping[str, tuple[str, str]]) -> None:
    """A mark with two intervals for each point, and what the looks mean, for the legend."""
    for kind, (colour, marker) in looks.items():
        axes.plot([], [], marker, color=colour, label=kind)
    for row in points.itertuples():
        colour, marker = looks[row.kind]
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


def name_points(axes: Axes, points: pd.DataFrame, edges: Sequence[pd.DataFrame],
                colours: Sequence[str]) -> None:
    """Each name near its mark, where it covers no mark, interval, line or other name; joined to it
    by a thin line where that is farther away. Drawn once, since the layout decides what fits."""
    axes.figure.canvas.draw()
    taken, scale = obstacles(axes, points, edges), axes.figure.dpi / 72
    named: list[Bbox] = []
    room = axes.get_window_extent()
    for row, colour in zip(points.itertuples(), colours, strict=True):
        note = axes.annotate(row.method, (row.mean_x, row.mean_y), (0, 0), fontsize=9,
                             textcoords="offset points", color=colour, zorder=4,
                             arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5,
                                         "shrinkA": 0, "shrinkB": 4, "relpos": (0.5, 0.5)})
        note.set_in_layout(False)
        box = Text.get_window_extent(note)
        mark = axes.transData.transform((row.mean_x, row.mean_y))
        spots = [(away, way) for away in AWAY for way in WAYS]
        boxes = [spot_of(mark, box.width, box.height, away * scale, way) for away, way in spots]
        costs = [sum(overlap(spot, other) for other in [*taken, *named])
                 + sum(overlap(step, other) for step in leader(mark, spot) for other in named)
                 + (spot.width * spot.height - overlap(spot, room)) for spot in boxes]
        best = int(np.argmin(costs))
        note.set_position((np.array([boxes[best].x0, boxes[best].y0]) - mark) / scale)
        note.arrow_patch.set_visible(spots[best][0] > AWAY[1])
        named.append(boxes[best])
        taken += leader(mark, boxes[best])


def obstacles(axes: Axes, points: pd.DataFrame, edges: Sequence[pd.DataFrame]) -> list[Bbox]:
    """What names must not cover, in pixels: marks, intervals, and the lines."""
    def around(x: float, y: float, x_end: float, y_end: float, pad: float) -> Bbox:
        ends = axes.transData.transform([(x, y), (x_end, y_end)])
        return Bbox([ends.min(axis=0) - pad, ends.max(axis=0) + pad])

    pad, boxes = 4 * axes.figure.dpi / 72, []
    for row in points.itertuples():
        boxes.append(around(row.mean_x, row.mean_y, row.mean_x, row.mean_y, pad))
        if not np.isnan(row.low_x + row.low_y):
            boxes += [around(row.low_x, row.mean_y, row.high_x, row.mean_y, pad / 3),
                      around(row.mean_x, row.low_y, row.mean_x, row.high_y, pad / 3)]
    for edge in edges:
        steps = np.linspace(0, max(len(edge) - 1, 0), 20 * len(edge))
        line = [np.interp(steps, range(len(edge)), edge[mean]) for mean in ("mean_x", "mean_y")]
        boxes += [around(x, y, x, y, pad / 4) for x, y in zip(*line, strict=True)]
    return boxes


def spot_of(mark: np.ndarray, width: float, height: float, away: float,
            way: tuple[float, float]) -> Bbox:
    """The box of a name at a distance from a mark, in a direction."""
    centre = mark + np.array(way) * (away + np.array([width, height]) / 2)
    return Bbox.from_bounds(centre[0] - width / 2, centre[1] - height / 2, width, height)


def leader(mark: np.ndarray, name: Bbox, steps: int = 8) -> list[Bbox]:
    """The way from a mark to its name, as boxes that another name must not cover."""
    middle = np.array([name.x0 + name.x1, name.y0 + name.y1]) / 2
    way = [mark + (middle - mark) * part for part in np.linspace(0, 1, steps, endpoint=False)]
    return [Bbox([at - 4, at + 4]) for at in way if not name.contains(*at)]


def overlap(one: Bbox, other: Bbox) -> float:
    """The area that two boxes share."""
    shared = Bbox.intersection(one, other)
    return 0.0 if shared is None else shared.width * shared.height
