"""Drawings of ideas: losses on a small matrix, models, sub-embeddings, smooth steps."""

from collections.abc import Sequence
from operator import itemgetter

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle
from scipy.special import ndtri

from itr_study.digits import number
from itr_study.metrics.entropy import score_entropy
from itr_study.plots.style import (
    GREY,
    INK,
    METHODS,
    RIGHT,
    SPARE,
    WRONG,
    Picture,
    canvas,
    finish,
    name_above,
    styled,
)

EXAMPLE = np.array([[0.55, 0.90, 0.72, 0.20, 0.35],
                    [0.30, 0.85, 0.15, 0.45, 0.60],
                    [0.62, 0.40, 0.33, 0.80, 0.70]])  # three images, five texts
MATCHES = (2, 1, 2)  # the text of each image: second, first and fourth in its list


@styled
def schematic_topk(scores: np.ndarray = EXAMPLE, matches: Sequence[int] = MATCHES, k: int = 2,
                   margin: float = 0.1) -> Picture:
    """Draw the top-k loss on a small score matrix, as scored and sorted.

    Source: Zhang et al., Deep Top-k Ranking, Fig. 2, redrawn; the framed score is the k-th largest
    of the non-matching ones (second line of Eq. 8).

    Args:
        scores: (I, T), darker is larger.
        matches: the matching text of each image.
        k: negatives that may be above the match.
        margin: required gap.
    """
    figure, panels = canvas(2)
    order = np.argsort(-scores, axis=1, kind="stable")
    draw_matrix(panels[0], scores, [f"text {j + 1}" for j in range(scores.shape[1])])
    draw_matrix(panels[1], np.take_along_axis(scores, order, 1),
                [f"rank {j + 1}" for j in range(scores.shape[1])])
    for row, match in enumerate(matches):
        outline(panels[0], row, match, WRONG, "-")
        rank = int(np.flatnonzero(order[row] == match)[0])
        negative = np.delete(np.arange(scores.shape[1]), rank)[k - 1]
        outline(panels[1], row, rank, WRONG, "-")
        outline(panels[1], row, negative, METHODS["topk"].colour, (0, (3, 1.5)))
        ranked = scores[row][order[row]]
        loss = max(0.0, ranked[negative] - ranked[rank] + margin)
        panels[1].text(scores.shape[1] - 0.35, row, f"pays {loss:.2f}" if loss > 0 else "pays 0",
                       va="center", fontsize=8.5, color=WRONG if loss > 0 else RIGHT)
    panels[0].set_title("scores of three images")
    panels[1].set_title("sorted for each image")
    return finish(figure,
                  f"A match pays only when it is not above the {ordinal(k)} negative by the "
                    f"margin {margin:g} (k = {k})",
                  f"red solid frame: match · green dashed frame: {ordinal(k)} largest "
                  "non-match · darker is a larger score")


def ordinal(number: int) -> str:
    """Write 1st, 2nd, 3rd, 4th …"""
    tens = 10 < number % 100 < 14
    return f"{number}{'th' if tens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def draw_matrix(axes: Axes, scores: np.ndarray, columns: Sequence[str]) -> None:
    """Draw scores as grey cells with their values."""
    axes.imshow(scores, cmap="Greys", vmin=0, vmax=1.3, aspect="auto")
    for (row, column), value in np.ndenumerate(scores):
        axes.text(column, row, number(value, 2), ha="center", va="center", fontsize=8.5,
                  color="white" if value > 0.75 else INK)
    axes.set_xticks(range(scores.shape[1]), columns)
    axes.set_yticks(range(scores.shape[0]), [f"image {i + 1}" for i in range(scores.shape[0])])
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def outline(axes: Axes, row: int, column: int, colour: str, line: str | tuple) -> None:
    """Frame one cell."""
    axes.add_patch(Rectangle((column - 0.45, row - 0.44), 0.9, 0.88, fill=False,
                             edgecolor=colour, linestyle=line, linewidth=2))


def box(axes: Axes, x: float, y: float, text: str, colour: str = GREY, width: float = 1.5,
        height: float = 0.6) -> None:
    """Draw a rounded box with a text, centred at (x, y)."""
    axes.add_patch(FancyBboxPatch((x - width / 2, y - height / 2), width, height,
                                  boxstyle="round,pad=0.03,rounding_size=0.08",
                                  facecolor="white", edgecolor=colour, linewidth=1.3))
    axes.text(x, y, text, ha="center", va="center", fontsize=8.5)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float],
          colour: str = GREY) -> None:
    """Draw an arrow between two points."""
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=10,
                                   color=colour, linewidth=1.2, shrinkA=0, shrinkB=0))


@styled
def schematic_branches(relevance: bool = True) -> Picture:
    """Draw how every model here works: two encoders, one score matrix, one loss on it.

    Source: Fig. 2 of the topk and of the listwise paper, redrawn.

    Args:
        relevance: whether to draw the branch of graded relevance that listwise losses add.
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
    return finish(figure, "Two encoders, one matrix of scores, one loss: only the loss changes "
                          "from paper to paper")


@styled
def schematic_pairs_and_lists(relevance: Sequence[float] = (1.0, 0.8, 0.55, 0.3, 0.05),
                              k: int = 2) -> Picture:
    """Draw the pairs of one ranked list that three losses look at, two of them in wrong order.

    Source: listwise Fig. 1 and topk Sec. I, redrawn as one story, without margins; top-k is the
    first form of its paper (Eq. 8), while the mean that is trained looks at all k.

    Args:
        relevance: of the items to the query, falling; 1 is the only match.
        k: of top-k, which lets the match be below k - 1 others.
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
    wrong = {name.split(":")[0]: sum(upper > lower for upper, lower in pairs)
             for name, pairs in asked.items()}
    for axes, (ask, pairs) in zip(panels, asked.items(), strict=True):
        draw_list(axes, items, pairs)
        axes.set_title(ask, fontsize=9, x=0.04)
    panels[1].text(0.85, 0, "forgiven", va="center", fontsize=8.5, color=GREY)
    (one, found), *more = wrong.items()
    return finish(figure, f"Wrong pairs in one list: {one} finds {found}, " + ", ".join(
        f"{name} {count}" for name, count in more),
                  "from top to bottom: by score · darker green: more relevant (value inside) · "
                  "arcs: pairs that the loss looks at, solid red with an arrow where the lower "
                  "item should be above the upper one · top-k as drawn looks at the k-th best "
                  "negative (Eq. 8); what is trained is the mean of the k best")


def draw_list(axes: Axes, relevance: Sequence[float], pairs: Sequence[tuple[int, int]]) -> None:
    """Draw items from top to bottom, and an arc per pair (should be above, should be below)."""
    greens = matplotlib.colormaps["Greens"]
    axes.set(xlim=(-1.2, 2.6), ylim=(len(relevance) - 0.4, -0.6))
    axes.axis("off")
    for place, value in enumerate(relevance):
        axes.add_patch(Rectangle((-0.7, place - 0.34), 1.4, 0.68, facecolor=greens(0.75 * value),
                                 edgecolor=GREY, linestyle="-" if value == 1 else "--"))
        name = "match " if value == 1 else ""
        axes.text(0, place, f"{name}{value:.2f}", ha="center", va="center", fontsize=8.5,
                  color="white" if value > 0.7 else INK)
    for wrong, (upper, lower) in sorted(((a > b, sorted((a, b))) for a, b in pairs),
                                        key=itemgetter(0)):
        bend = f"arc3,rad={0.3 + 0.07 * (lower - upper)}"
        axes.add_patch(FancyArrowPatch((0.75, lower), (0.75, upper), connectionstyle=bend,
                                       arrowstyle="-|>" if wrong else "-", mutation_scale=11,
                                       color=WRONG if wrong else METHODS["topk"].colour,
                                       linewidth=2 if wrong else 0.9,
                                       linestyle="-" if wrong else (0, (4, 2))))


LINES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (6, 1, 1, 1)))
STEP_ORANGE = "#ee8866"
ACTIVE = 0.1  # of the peak slope: where the slope is more than that, a pair gets a gradient


def step_table(taus: Sequence[float], width: float = 0.2, points: int = 401) -> pd.DataFrame:
    """Tabulate the sigmoid and its slope: tau, x, sigmoid, slope, active.

    Args:
        taus: temperatures, > 0.
        width: largest difference of scores shown.
        points: odd number of them.

    Example: at x = 0 the sigmoid is one half, and its slope 1 / (4 tau)
        >>> step_table([0.01], points=3)[["x", "sigmoid", "slope"]].iloc[1].tolist()
        [0.0, 0.5, 25.0]
    """
    x = np.linspace(-width, width, points)
    frames = []
    for tau in taus:
        high = 0.5 * (1 + np.tanh(x / (2 * tau)))  # the sigmoid, without overflow
        slope = high * (1 - high) / tau
        frames.append(pd.DataFrame({"tau": tau, "x": x, "sigmoid": high, "slope": slope,
                                    "active": slope > ACTIVE / (4 * tau)}))
    return pd.concat(frames, ignore_index=True)


def active_width(tau: float) -> float:
    """Compute half the width of the activation area, where differences get a gradient.

    Example:
        >>> round(active_width(0.01), 4)
        0.0364
    """
    high = (1 + np.sqrt(1 - ACTIVE)) / 2  # high (1 - high) = ACTIVE / 4
    return float(tau * np.log(high / (1 - high)))


@styled
def smooth_steps(taus: Sequence[float], title: str = "", width: float = 0.2,
                 note: str = "") -> Picture:
    """Draw the step, its derivative, the sigmoid and its slope with the activation area.

    Source: listwise Fig. 4.

    Args:
        taus: 1 to 4 temperatures.
        title, note: headline and caption.
        width: largest difference of scores shown.
    """
    table = step_table(taus, width)
    figure, axes = canvas(2, 2, size=(9.6, 5.4), sharex=True)
    step, delta, sigmoid, slope = axes
    step.plot([-width, 0], [0, 0], color=GREY)
    step.plot([0, width], [1, 1], color=GREY)
    step.plot([0], [0], "o", color=GREY, markerfacecolor="white")
    step.plot([0], [1], "o", color=GREY)
    delta.axhline(0, color=GREY)
    delta.annotate("", (0, 1), (0, 0), arrowprops={"arrowstyle": "-|>", "color": GREY})
    for (tau, part), colour, line in zip(table.groupby("tau", sort=False), SPARE, LINES,
                                         strict=False):
        sigmoid.plot(part["x"], part["sigmoid"], color=colour, linestyle=line, label=f"τ = {tau:g}")
        slope.plot(part["x"], part["slope"], color=colour, linestyle=line)
        slope.fill_between(part["x"], part["slope"], where=part["active"], color=STEP_ORANGE,
                           alpha=0.35, linewidth=0)
    for panel, name, label in zip(axes, "abcd", (
            "step H(x): is the other above?", "its derivative δ(x): no gradient but at 0",
            "sigmoid σ(x; τ)", "slope dσ/dx; shaded: activation area"), strict=True):
        panel.set_title(f"({name}) {label}")
    for panel in (sigmoid, slope):
        panel.set_xlabel("x, difference of two scores")
    for panel in (step, delta, sigmoid):
        panel.set(ylim=(-0.1, 1.15), ylabel="value")
    delta.set(yticks=[], ylabel="")  # its height has no meaning
    slope.set(ylabel="slope", ylim=(0, None))
    sigmoid.legend(loc="upper left")
    return finish(figure,
                  title or f"At τ = {taus[0]:g} the steepest slope is {1 / (4 * taus[0]):.3g}",
                  note or f"activation area: slope above {ACTIVE:.0%} of its peak 1 / (4 τ)")


BLUE, ORANGE, GREEN = (METHODS[name].colour for name in ("triplet_hardest", "triplet_sum", "topk"))
TEXTS = np.array([[0.36, 0.8], [0.3, 0.26], [0.82, 0.52]])  # of one image, on different things
OTHERS = np.array([[0.06, 0.97], [0.04, 0.5], [0.66, 0.99], [1.0, 0.86], [1.02, 0.2], [0.58, 0.04],
                   [0.05, 0.06]])
NEAR = 0.065  # how far a sub-embedding lies from the text it stands for
SHARPNESS = 0.04  # temperature: a text so much farther away, squared, is e times less likely
TARGET, PALE = 0.7, "#a6cbe3"  # the cosine of the target; the colour of texts of other images


@styled
def schematic_collapse() -> Picture:
    """Draw two ways in which sub-embeddings collapse, and the aim, with the embedding entropy.

    Source: dvse, Fig. 2, redrawn; the third panel and the numbers are ours: the entropy (Eq. 2) of
    the drawn places, with squared distances, not cosines.
    """
    turn = np.array([[0.0, 1.0], [-0.87, -0.5], [0.87, -0.5]]) * NEAR
    centre = TEXTS.mean(axis=0)
    places = {"(a) one to one: all find the same text": TEXTS[2] + turn,
              "(b) one to many: each in the middle": centre + turn,
              "(c) the aim: a text each": TEXTS + NEAR * np.sign(centre - TEXTS) / 2 ** 0.5}
    figure, panels = canvas(3, size=(9.6, 3.5))
    for axes, (name, heads) in zip(panels, places.items(), strict=True):
        for head, place in enumerate(heads):
            distance = np.square(TEXTS - place).sum(axis=1)
            for text in TEXTS[distance < 5 * distance.min()]:
                axes.plot(*zip(place, text, strict=True), color=ORANGE, linewidth=0.7, zorder=1)
            axes.add_patch(Circle(place, 0.04, facecolor="white", edgecolor=ORANGE, linewidth=1.6,
                                  zorder=3))
            axes.text(*place, f"{head + 1}", ha="center", va="center", fontsize=8, zorder=4)
        axes.plot(*TEXTS.T, "s", color=BLUE, markersize=9, zorder=2)
        axes.plot(*OTHERS.T, "x", color=GREY, markersize=6, markeredgewidth=1.4)
        axes.set(xlim=(0, 1.08), ylim=(0, 1.08), xticks=[], yticks=[], aspect="equal")
        axes.spines[:].set_visible(False)
        axes.set_title(name, fontsize=9)
        axes.set_xlabel(f"entropy {number(drawn_entropy(heads), 2)} nats")
    return finish(figure,
                  "A set of sub-embeddings collapses in two ways, and entropy sees the second "
                  "alone",
                  "circle: a sub-embedding; square: a text of the image; cross: another text; "
                  "line: to texts about as near as the nearest · entropy: mean of the three, "
                  f"{number(np.log(1 + len(TEXTS)), 2)} at most")


def drawn_entropy(heads: np.ndarray) -> float:
    """Compute the mean embedding entropy of places (K, 2) among the texts that are drawn."""
    texts = np.concatenate([TEXTS, OTHERS])
    distances = np.square(heads[:, None] - texts).sum(axis=-1)
    # a second row, which is not looked at, is the image that the other texts belong to
    scores = np.stack([-distances, np.zeros_like(distances)], axis=1)
    owner = (np.arange(len(texts)) >= len(TEXTS)).astype(int)
    return float(np.mean([score_entropy(of_head, owner, SHARPNESS).nats[0] for of_head in scores]))


@styled
def schematic_subembeddings(heads: int = 6) -> Picture:
    """Draw the model: K sub-embeddings of the image, one embedding of the text, two losses.

    Source: dvse, Fig. 3, redrawn; the mask multiplies the sub-embeddings themselves, which the
    paper leaves open.

    Args:
        heads: K.
    """
    figure, (axes,) = canvas(size=(9.6, 4.0))
    axes.set(xlim=(0, 9.6), ylim=(0.1, 4.15))
    axes.axis("off")
    for x, y, words, colour, wide, high in (
            (0.85, 3.0, "image", BLUE, 0.9, 0.6), (2.35, 3.0, "regions\n(R, D)", BLUE, 1.15, 0.6),
            (4.0, 3.75, "whole: their\nmean (D)", BLUE, 1.3, 0.6),
            (4.0, 2.85, f"{heads} attention\nheads over R", BLUE, 1.3, 0.6),
            (4.0, 1.95, "mask: frozen w2,\nsigmoid, round", GREY, 1.45, 0.6),
            (5.75, 2.85, f"residuals\n({heads}, D) × mask", BLUE, 1.45, 0.6),
            (7.45, 3.2, "add, layer norm,\nlength 1", BLUE, 1.45, 0.6),
            (0.85, 0.65, "text", ORANGE, 0.9, 0.6),
            (2.35, 0.65, "words\n(W, D)", ORANGE, 1.15, 0.6),
            (4.0, 0.65, "last state, and\nself-attention", ORANGE, 1.3, 0.6),
            (5.75, 0.65, "add, layer norm,\nlength 1", ORANGE, 1.45, 0.6),
            (8.7, 1.95, f"scores\n({heads}, I, T)", INK, 1.2, 0.7)):
        box(axes, x, y, words, colour, wide, high)
    for start, end, colour in (
            ((1.35, 3.0), (1.72, 3.0), BLUE), ((2.98, 3.1), (3.3, 3.7), BLUE),
            ((2.98, 3.0), (3.3, 2.87), BLUE), ((2.98, 2.85), (3.22, 2.1), GREY),
            ((4.7, 2.85), (4.97, 2.85), BLUE), ((4.78, 2.0), (5.3, 2.5), GREY),
            ((4.7, 3.75), (6.67, 3.35), BLUE), ((6.53, 2.95), (6.67, 3.05), BLUE),
            ((7.75, 2.85), (8.4, 2.37), BLUE), ((1.35, 0.65), (1.72, 0.65), ORANGE),
            ((2.98, 0.65), (3.3, 0.65), ORANGE), ((4.7, 0.65), (4.97, 0.65), ORANGE),
            ((6.53, 0.7), (8.2, 1.55), ORANGE)):
        arrow(axes, start, end, colour)
    for x, y, words, below in (
            (5.95, 1.75, "orthogonality loss: keep\nthem apart (Eq. 4)", 2.5),
            (8.7, 0.55, "variance-weighted\ntriplet loss (Eq. 11)", 1.55)):
        axes.text(x, y, words, ha="center", va="center", fontsize=8.5, color=GREEN,
                  fontweight="bold")
        arrow(axes, (x, below), (x, y + 0.25), GREEN)
    axes.text(8.7, 3.95, "maximum over heads;\nre-ranking (FR)\nafter training", ha="center",
              va="center", fontsize=8.5, color=GREY)
    arrow(axes, (8.95, 2.37), (8.95, 3.58), GREY)
    return finish(figure, f"An image gets {heads} sub-embeddings, a text one embedding; two losses "
                          "are to keep the set from collapsing")


@styled
def schematic_weights(texts: int = 128, middle: Sequence[float] = (0.45, 0.5, 0.55, 0.6),
                      meaning: Sequence[float] = (0.05, 0.15, 0.2, 0.3)) -> Picture:
    """Draw how the variance of a head's cosines weights its loss, for two heads of one image.

    Cosines with texts of other images are normal, mean 0.05, standard deviation 0.1.

    Source: dvse, Fig. 4 and Eqs. 7, 8 and 11, redrawn with axes and numbers.

    Args:
        texts: of a batch.
        middle, meaning: cosines with the image's other texts of a head in the middle of them and
            of one that stands for a single text.
    """
    heads = {"(a) a head in the middle": np.array(middle),
             "(b) a head for one meaning": np.array(meaning)}
    figure, panels = canvas(3, size=(9.6, 3.2))
    spreads, edges = [], np.arange(-0.3, 0.81, 0.05)
    for axes, (name, own) in zip(panels, heads.items(), strict=False):
        count = texts - 1 - len(own)
        rest = 0.05 + 0.1 * ndtri((np.arange(count) + 0.5) / count)
        spreads.append(np.std(np.concatenate([rest, own]), ddof=1))
        axes.hist([rest, own], edges, stacked=True, color=[PALE, BLUE],
                  label=["of other images", "of this image"])
        axes.axvline(TARGET, color=ORANGE, linestyle="-")
        name_above(axes, TARGET, "target", ORANGE)
        axes.set(xlabel=f"cosine with the texts of a batch\nStd {number(spreads[-1], 3)}, weight "
                        f"{number(weight(spreads[-1]), 2)}", ylim=(0, 38))
        axes.set_title(name, fontsize=9, pad=14)
        axes.legend(loc="upper left", borderaxespad=0)
    panels[0].set_ylabel("texts")
    panels[1].sharey(panels[0])
    draw_costs(panels[2], spreads)
    alone = np.std(rest, ddof=1)  # of a batch without them, each head has this
    return finish(figure,
                  f"The variance weights a head for one meaning {number(weight(spreads[1]), 2)} "
                  f"and one in the middle {number(weight(spreads[0]), 2)}",
                  f"weight: 1 / σ², σ = Std + 1, over {texts - 1} texts that are not the target; "
                  "cosines are made up · without the image's other texts both heads have "
                  f"{number(weight(alone), 2)}")


def weight(spread: float) -> float:
    """Compute 1 / sigma^2 of Eq. 8 from the standard deviation of the cosines."""
    return 1 / (1 + spread) ** 2


def draw_costs(axes: Axes, spreads: Sequence[float]) -> None:
    """Draw what a triplet costs by how much it violates its margin."""
    hinge = np.array([0.0, 0.6])
    axes.plot(hinge, hinge, "-", color=INK, label="equal weights")
    for name, spread, line, colour in zip("ab", spreads, (":", "--"), (GREY, BLUE), strict=True):
        axes.plot(hinge, weight(spread) * hinge + np.log1p(spread), linestyle=line, color=colour,
                  label=f"({name}), with log σ")
    axes.set(xlabel="violation of the margin", ylabel="loss", xlim=(0, 0.6), ylim=(0, 0.75))
    axes.set_title("(c) what a triplet costs", fontsize=9, pad=14)
    axes.legend(loc="upper left", borderaxespad=0.2)
