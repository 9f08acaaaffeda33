"""Drawings of ideas: the top-k loss, the two branches, pairs against lists."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from itr_study.digits import number
from itr_study.plots.style import (
    GREY,
    INK,
    METHODS,
    RIGHT,
    WRONG,
    Picture,
    canvas,
    caption,
    headline,
    styled,
)

EXAMPLE = np.array([[0.55, 0.90, 0.72, 0.20, 0.35],
                    [0.30, 0.85, 0.15, 0.45, 0.60],
                    [0.62, 0.40, 0.33, 0.80, 0.70]])  # three images, five texts
MATCHES = (2, 1, 2)  # the text of each image: second, first and fourth in its list


@styled
def schematic_topk(scores: np.ndarray = EXAMPLE, matches: Sequence[int] = MATCHES, k: int = 2,
                   margin: float = 0.1) -> Picture:
    """The top-k loss on a small score matrix: as scored, then sorted, the k-th negative framed.

    Args:    scores: (I, T), darker is larger.  matches: the matching text of each image.
             k: negatives that may stand above the match.  margin: required gap.
    Source:  Zhang et al., Deep Top-k Ranking, Fig. 2, redrawn.
    Differs: the framed score is the k-th largest of the non-matching ones (second line of
             Eq. 8); where the match stands in the top k it is the printed (k+1)-th of all.
    """
    figure, panels = canvas(2)
    order = np.argsort(-scores, axis=1, kind="stable")
    draw_matrix(panels[0], scores, [f"text {j + 1}" for j in range(scores.shape[1])])
    draw_matrix(panels[1], np.take_along_axis(scores, order, 1),
                [f"rank {j + 1}" for j in range(scores.shape[1])])
    for row, match in enumerate(matches):
        outline(panels[0], row, match, WRONG, "-")
        match_rank = int(np.flatnonzero(order[row] == match)[0])
        others = [rank for rank in range(scores.shape[1]) if rank != match_rank]
        outline(panels[1], row, match_rank, WRONG, "-")
        outline(panels[1], row, others[k - 1], METHODS["topk"].colour, (0, (3, 1.5)))
        ranked = scores[row][order[row]]
        loss = max(0.0, ranked[others[k - 1]] - ranked[match_rank] + margin)
        panels[1].text(scores.shape[1] - 0.35, row, f"pays {loss:.2f}" if loss > 0 else "pays 0",
                       va="center", fontsize=8.5, color=WRONG if loss > 0 else RIGHT)
    panels[0].set_title("scores of three images")
    panels[1].set_title("sorted for each image")
    headline(figure, f"A match pays only when it is not above the {ordinal(k)} negative by the "
                    f"margin {margin:g} (k = {k})")
    caption(figure, f"red solid frame: match · green dashed frame: {ordinal(k)} largest "
                    "non-match · darker is a larger score")
    return figure


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th …"""
    tens = 10 < number % 100 < 14
    return f"{number}{'th' if tens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def draw_matrix(axes: Axes, scores: np.ndarray, columns: Sequence[str]) -> None:
    """Scores as grey cells with their values."""
    axes.imshow(scores, cmap="Greys", vmin=0, vmax=1.3, aspect="auto")
    for (row, column), value in np.ndenumerate(scores):
        axes.text(column, row, number(value, 2), ha="center", va="center", fontsize=8.5,
                  color="white" if value > 0.75 else INK)
    axes.set_xticks(range(scores.shape[1]), columns)
    axes.set_yticks(range(scores.shape[0]), [f"image {i + 1}" for i in range(scores.shape[0])])
    axes.grid(False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def outline(axes: Axes, row: int, column: int, colour: str, line: str | tuple) -> None:
    """A frame inside one cell."""
    axes.add_patch(Rectangle((column - 0.45, row - 0.44), 0.9, 0.88, fill=False,
                             edgecolor=colour, linestyle=line, linewidth=2))


def box(axes: Axes, x: float, y: float, text: str, colour: str = GREY, width: float = 1.5,
        height: float = 0.6) -> None:
    """A rounded box with a text, centred at (x, y)."""
    axes.add_patch(FancyBboxPatch((x - width / 2, y - height / 2), width, height,
                                  boxstyle="round,pad=0.03,rounding_size=0.08",
                                  facecolor="white", edgecolor=colour, linewidth=1.3))
    axes.text(x, y, text, ha="center", va="center", fontsize=8.5)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float],
          colour: str = GREY) -> None:
    """An arrow between two points."""
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=10,
                                   color=colour, linewidth=1.2, shrinkA=0, shrinkB=0))


@styled
def schematic_branches(relevance: bool = True) -> Picture:
    """How every model here works: two encoders, one score matrix, one loss on it.

    Args:    relevance: with the branch of graded relevance that listwise losses add.
    Source:  Fig. 2 of the topk and of the listwise paper, redrawn.
    """
    figure, (axes,) = canvas(size=(9.6, 3.0))
    axes.set(xlim=(0, 9.6), ylim=(-0.35, 2.8))
    axes.axis("off")
    blue, orange = METHODS["triplet_hardest"].colour, METHODS["triplet_sum"].colour
    for y, item, encoder, colour in ((2.3, "images", "image encoder", blue),
                                     (1.2, "texts", "text encoder", orange)):
        box(axes, 0.8, y, item, colour, 1.1)
        box(axes, 2.7, y, encoder, colour)
        box(axes, 4.6, y, "unit vectors", colour, 1.3)
        arrow(axes, (1.38, y), (1.92, y), colour)
        arrow(axes, (3.48, y), (3.92, y), colour)
        arrow(axes, (5.28, y), (5.78, 1.75 + 0.2 * np.sign(y - 1.75)), colour)
    box(axes, 6.6, 1.75, "scores (I, T)", INK, 1.55, 0.7)
    box(axes, 8.6, 1.75, "loss", INK, 1.0, 0.7)
    arrow(axes, (7.4, 1.75), (8.07, 1.75), INK)
    if relevance:
        green = METHODS["topk"].colour
        box(axes, 2.7, 0.05, "frozen sentence\nencoder", green)
        box(axes, 5.6, 0.05, "relevance of every text to every image", green, 3.2)
        arrow(axes, (0.8, 0.87), (1.92, 0.05), green)
        arrow(axes, (3.48, 0.05), (3.97, 0.05), green)
        arrow(axes, (7.23, 0.05), (8.6, 1.37), green)
    headline(figure, "Two encoders, one matrix of scores, one loss: only the loss changes from "
                    "paper to paper")
    return figure


@styled
def schematic_pairs_and_lists(relevance: Sequence[float] = (1.0, 0.8, 0.55, 0.3, 0.05),
                              k: int = 2) -> Picture:
    """What three losses have against one ranked list, of which two pairs stand the wrong way.

    Args:    relevance: of the items to the query, falling; 1 is the match, of which there is one.
             k: of top-k, which lets the match stand below k - 1 others.
    Source:  listwise Fig. 1 and topk Sec. I, redrawn as one story.
    Differs: without margins; a pair that must be told apart by one may cost in the right order too.
             Top-k is the first form of its paper (Eq. 8); the mean that is trained looks at all k.
    """
    first, second, third, fourth, *rest = relevance
    items = [second, first, fourth, third, *rest]  # by score: two neighbours twice in wrong order
    others = [place for place in range(len(items)) if place != 1]
    asked = {"pairwise: the match above all others": [(1, other) for other in others],
             f"top-k (k = {k}): above all but {k - 1}": [(1, other) for other in others[k - 1:]],
             "listwise: every pair in the right order": [
                 (upper, lower) for upper in range(len(items)) for lower in range(len(items))
                 if items[upper] > items[lower]]}
    figure, panels = canvas(3, size=(9.6, 3.1))
    wrong = {name.split(":")[0]: sum(map(is_wrong, pairs)) for name, pairs in asked.items()}
    for axes, (ask, pairs) in zip(panels, asked.items(), strict=True):
        draw_list(axes, items, pairs)
        axes.set_title(ask, fontsize=9, x=0.04)
    panels[1].text(0.85, 0, "forgiven", va="center", fontsize=8.5, color=GREY)
    (one, found), *more = wrong.items()
    headline(figure, f"Wrong pairs in one list: {one} finds {found}, " + ", ".join(
        f"{name} {count}" for name, count in more))
    caption(figure, "from top to bottom: by score · darker green: more relevant (value inside) · "
                    "arcs: pairs that the loss looks at, solid red with an arrow where the lower "
                    "item should be above the upper one · top-k as drawn looks at the k-th best "
                    "negative (Eq. 8); what is trained is the mean of the k best")
    return figure


def is_wrong(pair: tuple[int, int]) -> bool:
    """Whether the item that should be above stands below: (its place, that of the other)."""
    return pair[0] > pair[1]


def draw_list(axes: Axes, relevance: Sequence[float], pairs: Sequence[tuple[int, int]]) -> None:
    """Items from top to bottom, and an arc for each pair (should be above, should be below)."""
    import matplotlib

    greens = matplotlib.colormaps["Greens"]
    axes.set(xlim=(-1.2, 2.6), ylim=(len(relevance) - 0.4, -0.6))
    axes.axis("off")
    for place, value in enumerate(relevance):
        axes.add_patch(Rectangle((-0.7, place - 0.34), 1.4, 0.68, facecolor=greens(0.75 * value),
                                 edgecolor=GREY, linestyle="-" if value == 1 else "--"))
        name = "match " if value == 1 else ""
        axes.text(0, place, f"{name}{value:.2f}", ha="center", va="center", fontsize=8.5,
                  color="white" if value > 0.7 else INK)
    for pair in sorted(pairs, key=is_wrong):
        upper, lower = sorted(pair)
        bend, wrong = f"arc3,rad={0.3 + 0.07 * (lower - upper)}", is_wrong(pair)
        axes.add_patch(FancyArrowPatch((0.75, lower), (0.75, upper), connectionstyle=bend,
                                       arrowstyle="-|>" if wrong else "-", mutation_scale=11,
                                       color=WRONG if wrong else METHODS["topk"].colour,
                                       linewidth=2 if wrong else 0.9,
                                       linestyle="-" if wrong else (0, (4, 2))))
