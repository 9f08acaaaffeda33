"""Queries and what models find: grids, lists that change, gradients, agreement, the map."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from PIL import Image

from itr_study.checks import MATCH
from itr_study.digits import number
from itr_study.plots.style import (
    GREY,
    INK,
    RIGHT,
    VALUES,
    WRONG,
    Picture,
    canvas,
    finish,
    mark,
    styled,
)

WIDTH, HEIGHT = 3.2, 2.6  # inches of a column and of a picture in it
WIDEST = 9.6  # inches of all columns: what is wider is shrunk in a notebook, and its type with it
LETTERS_AN_INCH = 14.4  # of 8 pt in an inch


@styled
def example_grid(examples: Sequence[tuple[Image.Image, Sequence[str]]], title: str,
                 columns: int = 3, note: str = "") -> Picture:
    """Draw pictures with all their texts below, wrapped and never cut.

    Source: Zhang et al., Deep Top-k Ranking, Figs. 1 and 3.

    Args: examples: (picture, texts) pairs, at least one.
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
    return finish(figure, title, note)


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
    """A query, its results from rank 1 on, and the rank of its best match."""

    item: Item
    results: Sequence[Result]
    match_rank: int | None  # 1-based rank of the best match, shown when it is not among the results
    title: str = ""


@styled
def retrieval_grid(queries: Sequence[Query], title: str, note: str = "",
                   on_topic: float | None = None) -> Picture:
    """Draw what was retrieved for each query, pictures or texts.

    A match has a solid frame and a check mark, anything else a dashed frame and a cross; colour
    repeats it. Texts are wrapped, never cut.

    Args:
        queries: one row each.
        on_topic: relevance from which a wrong result is drawn as nearly right (grey, dotted, "≈").
    Raises: ValueError: no query, or one without results.
    """
    if not queries or not all(query.results for query in queries):
        raise ValueError("retrieval_grid needs at least one query, each with results; "
                         f"got {[len(query.results) for query in queries]} results")
    figure = draw_cells([[query, *query.results] for query in queries], on_topic)
    marks = "✓ solid frame: match, ✗ dashed: not" if on_topic is None else (
        f"✓ solid: match, ≈ dotted: none, but relevance ≥ {on_topic:.2f}, ✗ dashed: less")
    known = any(result.match is not None for query in queries for result in query.results)
    return finish(figure, title, note, marks * known)


@styled
def answer_grid(query: Query, title: str, note: str = "", columns: int = 5) -> Picture:
    """Draw one query and all its results (one or more) in rows, as `retrieval_grid`."""
    if not query.results:
        raise ValueError("answer_grid needs a query with results, got none")
    cells = [query, *query.results]
    figure = draw_cells([cells[at:at + columns] for at in range(0, len(cells), columns)])
    return finish(figure, title, note)


def draw_cells(rows: Sequence[Sequence[Query | Result]], on_topic: float | None = None) -> Picture:
    """Draw rows of cells, each query before its results."""
    columns, heights = max(map(len, rows)), [row_height(row) for row in rows]
    figure, panels = canvas(columns, len(rows), size=(CELL * columns, sum(heights) + 0.6),
                            gridspec_kw={"height_ratios": heights})
    figure.get_layout_engine().set(h_pad=0.08, w_pad=0.04)
    cells = [cell for row in rows for cell in [*row, *[None] * (columns - len(row))]]
    for axes, cell in zip(panels, cells, strict=True):
        if cell is None:
            axes.axis("off")
        elif isinstance(cell, Query):
            rank = 0
            draw_query(axes, cell)
        else:
            rank += 1
            draw_result(axes, cell, rank, on_topic)
    return figure


def row_height(row: Sequence[Query | Result]) -> float:
    """Compute the inches that the tallest cell of a row needs."""
    items = [cell.item for cell in row]
    lines = max((len(wrap(item, LETTERS)) for item in items if isinstance(item, str)), default=0)
    picture = 1.35 if any(not isinstance(item, str) for item in items) else 0.0
    return max(picture, LINE * lines + 0.2) + 0.72


def draw_item(axes: Axes, item: Item) -> None:
    """Draw a picture undistorted, or a text wrapped to the cell."""
    axes.set(xticks=[], yticks=[])
    axes.grid(False)
    if isinstance(item, str):
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.text(0.04, 0.96, "\n".join(wrap(item, LETTERS)), fontsize=8, va="top", ha="left",
                  linespacing=1.1)
    else:
        axes.imshow(np.asarray(item.convert("RGB")), interpolation="lanczos")
        axes.set_anchor("N")


def draw_query(axes: Axes, query: Query) -> None:
    """Draw the query, and the rank of its match if the results do not show it."""
    draw_item(axes, query.item)
    axes.spines[:].set(visible=True, edgecolor=INK, linestyle="-", linewidth=0.8)
    axes.set_title(query.title or "query", fontsize=8, fontweight="bold")
    if query.match_rank and not any(result.match for result in query.results):
        axes.set_xlabel(f"match at rank {query.match_rank:,}", fontsize=8, color=WRONG)


OPEN = ("", INK, "-", 0.8)  # nobody knows whether it is a match
HIT, NEAR, MISS = ("✓", RIGHT, "-", 2.0), ("≈", GREY, ":", 1.4), ("✗", WRONG, (0, (3, 2)), 1.2)


def draw_result(axes: Axes, result: Result, rank: int, on_topic: float | None) -> None:
    """Draw one result with rank, mark, score and relevance."""
    draw_item(axes, result.item)
    near = on_topic is not None and result.relevance is not None and result.relevance >= on_topic
    mark, colour, line, width = (HIT if result.match else NEAR if near else
                                 OPEN if result.match is None else MISS)
    axes.spines[:].set(visible=True, edgecolor=colour, linestyle=line, linewidth=width)
    axes.set_title(f"{rank}  {mark}".rstrip(), fontsize=9, color=colour, fontweight="bold")
    relevance = "" if result.relevance is None else f"\n(relevance {result.relevance:.2f})"
    axes.set_xlabel(f"score {number(result.score, 2)}{relevance}", fontsize=8, color=GREY)


RANK_ROW = 0.21  # inches
GAP = 1.0  # rows between the first results and those beyond them


class Mover(NamedTuple):
    """Hold one result and its place in each of two lists."""

    text: str  # cut short
    match: bool
    relevance: float  # in [0, 1]
    ranks: tuple[int, int]
    rows: tuple[int, int]  # from 0
    beyond: tuple[bool, bool]  # the first ones


def relevance_colours(relevance: np.ndarray | Sequence[float], low: float = 0.0) -> list[str]:
    """List the hex colours of relevance, from `low`, darkest, to 1, brightest.

    Example:
        >>> relevance_colours([0.5, 1.0], low=0.5)
        ['#440154', '#fde725']
    """
    place = (np.asarray(relevance, float) - low) / (1 - low)
    return [to_hex(colour) for colour in matplotlib.colormaps[VALUES](np.clip(place, 0, 1))]


@styled
def who_moved(movers: Sequence[Mover], names: tuple[str, str], title: str, top: int,
              low: float = 0.0, graded: bool = True) -> Figure:
    """Draw a bump chart: the first results of one model left, of the other right.

    Args:
        movers: results that are among the first in either list.
        top: how many are the first.
        low: as in `relevance_colours`.
        graded: whether relevance is more than match or not, and gets a colour bar.
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
        figure.colorbar(ScalarMappable(Normalize(low, 1), VALUES), ax=axes, shrink=0.5, pad=0.01,
                        label="relevance")
    return finish(figure, title, f"below the dashed line: beyond the first {top}, with the rank "
                                 "there; … a text cut short", marks=match_marks())


def draw_mover(axes: Axes, one: Mover, colour: str) -> None:
    """Draw the line of one result, with rank and text at its ends."""
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
    """Draw how far a reader, experts and computed scores agree, the highest on top.

    Args:
        agreements: in any order, or none.
        judges: who rated before, in the legend.
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
    shown = {"you": "you", "rater": judges, "computed": "computed scores"}
    marks = [Line2D([], [], linestyle="", label=shown[kind], **look)
             for kind, look in LOOKS.items() if any(one.kind == kind for one in ordered)]
    return finish(figure, title, note, marks=marks)


def match_marks() -> list[Line2D]:
    """Make the marks of a legend for what matches and what does not."""
    return [mark("*", INK, "match", markersize=10), mark("o", INK, "no match")]


ARROW, SHORTEST = 0.25, 0.02  # of scores: the longest arrow of a panel, and what is too short


@styled
def push_pull(texts: Sequence[str], scores: np.ndarray, relevance: np.ndarray,
              up: Mapping[str, np.ndarray], felt: Mapping[str, np.ndarray],
              title: str) -> Figure:
    """Draw a query's list on a line of scores, the gradients of losses as arrows.

    Args:
        texts, scores: n of each.
        relevance: (n,) in [0, 1], 1 for a match.
        up: loss -> (n,) minus its gradient.
        felt: loss -> (n,) bool, which texts it moves.
    """
    rows = -(-len(up) // 2)
    figure, panels = canvas(2, rows, (9.6, 0.6 + rows * (0.24 * len(texts) + 0.7)), len(up),
                            sharex=True, sharey=True)
    for axes, (loss, arrows) in zip(panels, up.items(), strict=True):
        draw_list(axes, scores, relevance, arrows, felt[loss])
        axes.set_title(loss)
    panels[0].set_yticks(range(len(texts)), [f"{text} ({value:.2f})"
                                             for text, value in zip(texts, relevance, strict=True)])
    panels[0].invert_yaxis()
    for axes in panels[2 * rows - 2:]:
        axes.set_xlabel("score")
    marks = [*match_marks(), Line2D([], [], color=RIGHT, label="pulled up"),
             Line2D([], [], color=WRONG, label="pushed down")]
    return finish(figure, title, "in brackets: relevance; arrows: minus the gradient, the longest "
                  "of each panel drawn alike; hollow: left alone", marks=marks)


def draw_list(axes: Axes, scores: np.ndarray, relevance: np.ndarray, up: np.ndarray,
              felt: np.ndarray) -> None:
    """Draw the texts of one list as rows, each arrow as long as its gradient is large."""
    largest = np.abs(up).max() or 1.0
    for row, (score, value, push, moved) in enumerate(zip(scores, relevance, up, felt,
                                                          strict=True)):
        colour = RIGHT if push > 0 else WRONG
        axes.axhline(row, color=GREY, linewidth=0.4, alpha=0.4, zorder=0)
        if moved and ARROW * abs(push) / largest > SHORTEST:
            axes.annotate("", (score + ARROW * push / largest, row), (score, row),
                          arrowprops=dict(arrowstyle="->", color=colour, linewidth=1.8,
                                          shrinkA=0, shrinkB=0), zorder=4)  # a mark hides it
        match = value >= MATCH
        axes.plot([score], [row], "*" if match else "o", markersize=11 if match else 6,
                  markeredgecolor=INK, markerfacecolor=INK if moved else "white", zorder=3)
    axes.set_xlim(min(-0.1, scores.min() - ARROW), max(1.0, scores.max() + ARROW))


STEPS = 64  # colours of a scale
# On light and on dark paper: what is as light, or as dark, as the paper is lost on it.
AMOUNTS = {"light": (0.0, 0.75), "dark": (0.4, 1.0)}  # ends of the map VALUES
SIGNS = {"light": ("#0b5fa5", "#8c8c8c", "#c8400e"), "dark": ("#6fb7ff", "#8a8a8a", "#ff8a5c")}
KINDS = {"light": ("#0b5fa5", "#c8400e"), "dark": ("#6fb7ff", "#ff8a5c")}  # images, texts


class Shade(NamedTuple):
    """What the colours of some points mean."""

    label: str
    levels: np.ndarray  # (n,) places on the scale in [0, 1]; if signed 0.5 is zero
    hollow: np.ndarray  # (n,) bool
    ticks: Sequence[tuple[float, str]] = ()  # places, texts; without any there are two kinds
    signed: bool = False
    meaning: tuple[str, str] = ("", "")  # of filled and of hollow marks, if some are hollow


def colours_of(shade: Shade, paper: str = "light") -> list[str]:
    """List the colours of a scale from low to high as hex, on "light" or "dark" paper."""
    if not shade.ticks:
        return list(KINDS[paper])
    return [to_hex(colour) for colour in scale_map(shade, paper)(np.linspace(0, 1, STEPS))]


def scale_map(shade: Shade, paper: str) -> Colormap:
    """Make the colour map of a scale: amounts, or signs around a grey middle."""
    if shade.signed:
        return LinearSegmentedColormap.from_list("signs", SIGNS[paper])
    return ListedColormap(matplotlib.colormaps[VALUES](np.linspace(*AMOUNTS[paper], 256)))


@styled
def embedding_map(places: np.ndarray, images: int, shade: Shade, title: str,
                  labels: tuple[str, str], window: tuple[Sequence[float], float],
                  rectangle: tuple[Sequence[float], Sequence[float]] | None = None,
                  note: str = "") -> Picture:
    """Draw images as squares and texts as dots, both axes on one scale.

    Args:
        places: (I + T, 2) of the images, then of the texts.
        images: I.
        window: the middle of what is shown, and half its side.
        rectangle: its ends across and upwards.
    """
    figure, (axes,) = canvas(size=(7.2, 6.4))
    colours = np.array(colours_of(shade))
    steps = np.round(shade.levels * (len(colours) - 1)).astype(int)
    order = np.arange(len(places)) < images
    for kind, marker, size in ((~order, "o", 10), (order, "s", 14)):  # few images over many texts
        for hollow, alpha in ((False, 0.8), (True, 0.9)):  # over the filled ones
            part = kind & (shade.hollow == hollow)
            axes.scatter(*places[part].T, s=size, marker=marker, edgecolors=colours[steps[part]],
                         facecolors="none" if hollow else colours[steps[part]], linewidths=0.7,
                         alpha=alpha)
    if rectangle is not None:
        (left, right), (low, high) = rectangle
        axes.add_patch(Rectangle((left, low), right - left, high - low, fill=False, color=INK,
                                 linewidth=1.4, linestyle=(0, (4, 2)), zorder=4))
    middle, half = window
    axes.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half),
             xlabel=labels[0], ylabel=labels[1], aspect="equal")
    if shade.ticks:
        bar = figure.colorbar(ScalarMappable(cmap=scale_map(shade, "light")), ax=axes, shrink=0.8,
                              label=shade.label)
        bar.set_ticks([at for at, _ in shade.ticks], labels=[text for _, text in shade.ticks])
    kinds = [INK, INK] if shade.ticks else colours_of(shade)
    marks = [mark("s", kinds[0], "image"), mark("o", kinds[1], "text")]
    if shade.hollow.any():
        marks += [mark("D", INK, shade.meaning[0]), mark("D", INK, shade.meaning[1], fill="none")]
    return finish(figure, title, note, marks=marks)
