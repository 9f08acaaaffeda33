"""Retrieval results as a grid: the query left, what was found to its right, right or wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from textwrap import wrap

import numpy as np
from matplotlib.axes import Axes
from PIL import Image

from itr_study.digits import number
from itr_study.plots.style import (
    GREY,
    INK,
    RIGHT,
    WRONG,
    Picture,
    canvas,
    caption,
    headline,
    styled,
)

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
