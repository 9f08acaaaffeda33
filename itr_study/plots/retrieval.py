"""Retrieval results as a grid: the query left, what was found to its right, right or wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from itr_study.digits import number
from itr_study.plots.style import (
    GREY,
    INK,
    RIGHT,
    VALUES,
    WRONG,
    Picture,
    canvas,
    caption,
    headline,
    legend_below,
    styled,
)

# Pictures of the data themselves: examples with their texts, and confusable pairs.

WIDTH, HEIGHT = 3.2, 2.6  # inches of a column and of a picture in it
WIDEST = 9.6  # inches of all columns: what is wider is shrunk in a notebook, and its type with it
LETTERS_AN_INCH = 14.4  # of 8 pt in an inch


@styled
def example_grid(examples: Sequence[tuple[Image.Image, Sequence[str]]], title: str,
                 columns: int = 3, note: str = "") -> Picture:
    """Pictures with all their texts below, wrapped and never cut (as topk Figs. 1 and 3).

    Args:    examples: (picture, texts) pairs, at least one.
    Source:  Zhang et al., Deep Top-k Ranking, Figs. 1 and 3.
    """
    if not examples:
        raise ValueError("example_grid needs at least one (picture, texts) pair, got none")
    columns = min(columns, len(examples))
    width = min(WIDTH, WIDEST / columns)
    blocks = ["\n".join("\n".join(wrap(text, int(LETTERS_AN_INCH * width), initial_indent="• ",
                                       subsequent_indent="   ")) for text in texts)
              for _, texts in examples]
    rows = -(-len(examples) // columns)
    lines = [max(block.count("\n") + 1 for block in blocks[row * columns:(row + 1) * columns])
             for row in range(rows)]
    heights = [part for count in lines for part in (min(HEIGHT, width), 0.145 * count + 0.1)]
    figure, panels = canvas(columns, 2 * rows, size=(width * columns, sum(heights) + 0.7),
                            gridspec_kw={"height_ratios": heights})
    for axes in panels:
        axes.axis("off")
    for place, ((picture, _), block) in enumerate(zip(examples, blocks, strict=True)):
        above = 2 * (place // columns) * columns + place % columns
        panels[above].imshow(np.asarray(picture.convert("RGB")), interpolation="lanczos")
        panels[above].set_anchor("W")
        panels[above + columns].text(0, 1, block, fontsize=8, va="top", linespacing=1.15)
    headline(figure, title)
    caption(figure, note)
    return figure


Item = str | Image.Image  # a text or a picture
CELL, LINE = 1.62, 0.135  # inches: width of a cell, height of a line of text
LETTERS = 21  # of 8 pt inside a frame


@dataclass(frozen=True)
class Result:
    """One retrieved item."""

    item: Item
    score: float
    match: bool | None  # None where the right answer is not known
    relevance: float | None = None


@dataclass(frozen=True)
class Query:
    """A query with its results from rank 1 on, and where its best match stands."""

    item: Item
    results: Sequence[Result]
    match_rank: int | None  # 1-based rank of the best match, shown when it is not among the results
    title: str = field(default="")


@styled
def retrieval_grid(queries: Sequence[Query], title: str, note: str = "",
                   on_topic: float | None = None) -> Picture:
    """What was retrieved for each query, for pictures finding texts and texts finding pictures.

    A match has a solid frame and a check mark, anything else a dashed frame and a cross; colour
    repeats it. Texts are wrapped, never cut.

    Args:    queries: one row each; pictures or texts as queries and as results; on_topic: what is
             no match but at least so relevant is drawn as nearly right: grey, dotted, "≈".
    Raises:  ValueError where there is no query, or one without results.
    """
    if not queries or not all(query.results for query in queries):
        raise ValueError("retrieval_grid needs at least one query, each with results; "
                         f"got {[len(query.results) for query in queries]} results")
    columns = 1 + max(len(query.results) for query in queries)
    heights = [row_height(query) for query in queries]
    figure, axes_list = canvas(columns, len(queries), size=(CELL * columns, sum(heights) + 0.6),
                               gridspec_kw={"height_ratios": heights})
    figure.get_layout_engine().set(h_pad=0.08, w_pad=0.04)
    for row, query in enumerate(queries):
        cells = axes_list[row * columns:(row + 1) * columns]
        draw_query(cells[0], query)
        for rank, (axes, result) in enumerate(zip(cells[1:], query.results, strict=False), 1):
            draw_result(axes, result, rank, on_topic)
        for axes in cells[1 + len(query.results):]:
            axes.axis("off")
    headline(figure, title)
    marks = "✓ solid frame: match, ✗ dashed: not" if on_topic is None else (
        f"✓ solid: match, ≈ dotted: none, but relevance ≥ {on_topic:.2f}, ✗ dashed: less")
    known = any(result.match is not None for query in queries for result in query.results)
    caption(figure, " · ".join(filter(None, [note, marks * known])))
    return figure


@styled
def answer_grid(query: Query, title: str, note: str = "", columns: int = 5) -> Picture:
    """One query and all that was found for it, in as many rows as that takes; marks as in
    `retrieval_grid`.

    Raises:  ValueError where nothing was found.
    """
    if not query.results:
        raise ValueError("answer_grid needs a query with results, got none")
    columns = min(columns, 1 + len(query.results))
    cells = [query, *query.results]
    rows = [cells[start:start + columns] for start in range(0, len(cells), columns)]
    heights = [row_height(Query(row[0].item, row[1:], None)) for row in rows]
    figure, panels = canvas(columns, len(rows), size=(CELL * columns, sum(heights) + 0.6),
                            gridspec_kw={"height_ratios": heights})
    figure.get_layout_engine().set(h_pad=0.08, w_pad=0.04)
    draw_query(panels[0], query)
    for rank, (axes, result) in enumerate(zip(panels[1:], query.results, strict=False), 1):
        draw_result(axes, result, rank)
    for axes in panels[len(cells):]:
        axes.axis("off")
    headline(figure, title)
    caption(figure, note)
    return figure


def row_height(query: Query) -> float:
    """Inches that the tallest cell of a row needs."""
    items = [query.item, *(result.item for result in query.results)]
    lines = max((len(wrap(item, LETTERS)) for item in items if isinstance(item, str)), default=0)
    picture = 1.35 if any(not isinstance(item, str) for item in items) else 0.0
    return max(picture, LINE * lines + 0.2) + 0.72


def draw_item(axes: Axes, item: Item) -> None:
    """A picture undistorted, or a text wrapped to the cell."""
    axes.set(xticks=[], yticks=[])
    axes.grid(False)
    if isinstance(item, str):
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.text(0.04, 0.96, "\n".join(wrap(item, LETTERS)), fontsize=8, va="top", ha="left",
                  linespacing=1.1)
    else:
        axes.imshow(np.asarray(item.convert("RGB")), interpolation="lanczos")
        axes.set_anchor("N")


def frame(axes: Axes, colour: str, line: str | tuple, width: float) -> None:
    """A frame around a cell."""
    for spine in axes.spines.values():
        spine.set(visible=True, edgecolor=colour, linestyle=line, linewidth=width)


def draw_query(axes: Axes, query: Query) -> None:
    """The query, and the rank of its match where the results do not show it."""
    draw_item(axes, query.item)
    frame(axes, INK, "-", 0.8)
    axes.set_title(query.title or "query", fontsize=8, fontweight="bold")
    if query.match_rank and not any(result.match for result in query.results):
        axes.set_xlabel(f"match at rank {query.match_rank:,}", fontsize=8, color=WRONG)


OPEN = ("", INK, "-", 0.8)  # nobody knows whether it is a match
MATCH, NEAR, MISS = ("✓", RIGHT, "-", 2.0), ("≈", GREY, ":", 1.4), ("✗", WRONG, (0, (3, 2)), 1.2)


def draw_result(axes: Axes, result: Result, rank: int, on_topic: float | None = None) -> None:
    """One result with rank, mark, score and relevance."""
    draw_item(axes, result.item)
    near = on_topic is not None and result.relevance is not None and result.relevance >= on_topic
    mark, colour, line, width = (MATCH if result.match else NEAR if near else
                                 OPEN if result.match is None else MISS)
    frame(axes, colour, line, width)
    axes.set_title(f"{rank}  {mark}".rstrip(), fontsize=9, color=colour, fontweight="bold")
    relevance = "" if result.relevance is None else f"\n(relevance {result.relevance:.2f})"
    axes.set_xlabel(f"score {number(result.score, 2)}{relevance}", fontsize=8, color=GREY)


# One query's first results under two models, side by side: who moved where.

RANK_ROW = 0.21  # inches
GAP = 1.0  # rows between the first results and those beyond them


class Mover(NamedTuple):
    """A result: its text, cut short; whether it is a match; its relevance in [0, 1]; in each of
    the two lists its rank, its row from 0, and whether it is beyond the first."""

    text: str
    match: bool
    relevance: float
    ranks: tuple[int, int]
    rows: tuple[int, int]
    beyond: tuple[bool, bool]


def relevance_colours(relevance: np.ndarray | Sequence[float], low: float = 0.0) -> list[str]:
    """Hex colours of relevance, dark to bright, told apart by the colour-blind too.

    Args:    low: in [0, 1), the relevance that is darkest; 1 is brightest.

    Example:
        >>> relevance_colours([0.5, 1.0], low=0.5)
        ['#440154', '#fde725']
    """
    place = (np.asarray(relevance, float) - low) / (1 - low)
    return [to_hex(colour) for colour in matplotlib.colormaps[VALUES](np.clip(place, 0, 1))]


@styled
def who_moved(movers: Sequence[Mover], names: tuple[str, str], title: str, top: int,
              low: float = 0.0, graded: bool = True) -> Figure:
    """A bump chart: the first results of one model left, of the other right, a line for each.

    Args:    movers: of either list's first; names: of the two models; title: the headline; top:
             how many are the first; low: as in `relevance_colours`; graded: whether relevance is
             more than match or not, and has a scale of its own.
    """
    high = 1 + max(row + GAP * far for one in movers
                   for row, far in zip(one.rows, one.beyond, strict=True))
    figure, (axes,) = canvas(size=(9.6, 1.4 + RANK_ROW * high))
    colours = relevance_colours([one.relevance for one in movers], low)
    for one, colour in zip(movers, colours, strict=True):
        draw_mover(axes, one, colour)
    axes.set(xlim=(-1.35, 2.35), ylim=(high - 0.4, -1.6))
    axes.axis("off")
    for x, name, side in ((-0.1, names[0], "right"), (1.1, names[1], "left")):
        axes.text(x, -1.2, name, ha=side, fontweight="bold", fontsize=9)
    if any(any(one.beyond) for one in movers):
        axes.axhline(top - 0.5 + GAP / 2, color=GREY, linewidth=0.6, linestyle=(0, (4, 3)))
    if graded:
        bar = figure.colorbar(ScalarMappable(Normalize(low, 1), VALUES), ax=axes, shrink=0.5,
                              pad=0.01)
        bar.set_label("relevance")
    headline(figure, title)
    caption(figure, f"below the dashed line: beyond the first {top}, with the rank there; "
                    "… a text cut short")
    shapes = {"match": dict(marker="*", markersize=10), "no match": dict(marker="o")}
    legend_below(figure, [Line2D([], [], linestyle="", color=INK, **shape)
                          for shape in shapes.values()], list(shapes))
    return figure


def draw_mover(axes: Axes, one: Mover, colour: str) -> None:
    """The line of one result, its marks, and at each end its rank, and its text if it is there
    among the first; of what is so nowhere, at the left."""
    ends = [row + GAP * far for row, far in zip(one.rows, one.beyond, strict=True)]
    steps = np.linspace(0, 1, 40)
    path = ends[0] + (ends[1] - ends[0]) * steps**2 * (3 - 2 * steps)
    for width, shade in ((3.6, GREY), (2.4, colour)):  # yellow needs an edge on white paper
        axes.plot(steps, path, color=shade, linewidth=width, zorder=2 + one.match,
                  solid_capstyle="round")
    look: dict[str, Any] = dict(marker="*", markersize=12) if one.match else dict(
        marker="o", markersize=6)
    axes.plot([0, 1], ends, linestyle="", color=colour, markeredgecolor=INK, zorder=4, **look)
    for x, side, row, rank, far in zip((-0.1, 1.1), ("right", "left"), ends, one.ranks, one.beyond,
                                       strict=True):
        words, place = one.text, f"rank {rank:,}" if far else str(rank)
        if far and (x > 0 or not all(one.beyond)):  # its text stands at the other end
            words = ""
        shown = "  ".join(filter(None, [words, place] if side == "right" else [place, words]))
        axes.text(x, row, shown, ha=side, va="center", fontsize=8, color=GREY if far else INK)


# How far a reader, experts and computed scores agree about the same few pairs.

JUDGED_ROW = 0.26  # inches
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
    figure, (axes,) = canvas(size=(7.2, 1.5 + JUDGED_ROW * len(agreements)))
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
