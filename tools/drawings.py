"""Draw the pictures that no data changes: python -m tools.drawings."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch
from scipy.special import ndtri

from itr_study.digits import number
from itr_study.metrics.entropy import score_entropy
from itr_study.plots.figures import COMMON, save_figure
from itr_study.plots.published import DRAWN_BY
from itr_study.plots.reranking import draw_matrix, outline
from itr_study.plots.style import (
    GREY,
    INK,
    METHODS,
    RIGHT,
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
                  f"Top-{k}: match and negatives\n"
                  f"cost: margin {margin:g} + {ordinal(k)} largest negative − match, if above 0",
                  f"red solid frame: match · green dashed frame: {ordinal(k)} largest "
                  "non-match · darker is a larger score")


def ordinal(number: int) -> str:
    """Write 1st, 2nd, 3rd, 4th and so on."""
    tens = 10 < number % 100 < 14
    return f"{number}{'th' if tens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


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
    return finish(figure, "Two encoders, one matrix of scores, one loss\n"
                          "relevance enters only the loss")


BLUE, ORANGE, GREEN = (METHODS[name].colour for name in ("triplet_hardest", "triplet_sum", "topk"))
TEXTS = np.array([[0.36, 0.8], [0.3, 0.26], [0.82, 0.52]])  # of one image, on different things
OTHERS = np.array([[0.06, 0.97], [0.04, 0.5], [0.66, 0.99], [1.0, 0.86], [1.02, 0.2], [0.58, 0.04],
                   [0.05, 0.06]])
NEAR = 0.065  # how far a sub-embedding lies from the text it stands for
SHARPNESS = 0.04  # temperature: a text so much farther away, squared, is e times less likely
TARGET, PALE = 0.7, "#a6cbe3"  # the cosine of the target; the colour of texts of other images


@styled
def schematic_collapse() -> Picture:
    """Draw two ways in which sub-embeddings collapse, and the aim, with entropies.

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
                  "Two ways in which sub-embeddings collapse\nentropy shows only the second",
                  "circle: a sub-embedding; square: a text of the image; cross: another text; "
                  "line: to texts about as near as the nearest · entropy: mean of the three, "
                  f"{number(np.log(1 + len(TEXTS)), 2)} at most")


def drawn_entropy(heads: np.ndarray) -> float:
    """Compute the mean embedding entropy of places (K, 2) among the texts drawn."""
    texts = np.concatenate([TEXTS, OTHERS])
    distances = np.square(heads[:, None] - texts).sum(axis=-1)
    # a second row, which is not looked at, is the image that the other texts belong to
    scores = np.stack([-distances, np.zeros_like(distances)], axis=1)
    owner = (np.arange(len(texts)) >= len(TEXTS)).astype(int)
    return float(np.mean([score_entropy(of_head, owner, SHARPNESS).nats[0] for of_head in scores]))


@styled
def schematic_subembeddings(heads: int = 6) -> Picture:
    """Draw the model: K sub-embeddings of the image, one of the text, two losses.

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
            (4.0, 0.65, "last state, and\nattention over words", ORANGE, 1.3, 0.6),
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
    return finish(figure, f"{heads} sub-embeddings of an image, one embedding of a text\n"
                          "two losses should keep the sub-embeddings apart")


@styled
def schematic_weights(texts: int = 128, middle: Sequence[float] = (0.45, 0.5, 0.55, 0.6),
                      meaning: Sequence[float] = (0.05, 0.15, 0.2, 0.3)) -> Picture:
    """Draw how the variance of cosines weights the losses of two heads of one image.

    Cosines with texts of other images are normal, mean 0.05, standard deviation 0.1.

    Source: dvse, Fig. 4 and Eqs. 7, 8 and 11, redrawn with axes and numbers.

    Args:
        texts: of a batch.
        middle: cosines with the image's other texts of a head in the middle of them.
        meaning: those of a head for a single text.
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
                  "Weights of two heads by the variance of their cosines\n"
                  f"one meaning: {number(weight(spreads[1]), 2)}, in the middle: "
                  f"{number(weight(spreads[0]), 2)}",
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


def main() -> None:
    """Draw all pictures that are gone or whose table is not as published."""
    cells = pd.DataFrame([(i + 1, j + 1, value, j == MATCHES[i]) for i, row in enumerate(EXAMPLE)
                          for j, value in enumerate(row)],
                         columns=["image", "text", "score", "match"])
    blocks = pd.DataFrame({"block": ["image encoder", "text encoder", "frozen sentence encoder"],
                           "trained": [True, True, False]})
    drawings = {
        "00_start_here__branches": (
            schematic_branches(), blocks,
            "Two encoders give scores; relevance from a third enters only the loss."),
        "03_topk__loss_drawn": (
            schematic_topk(), cells, "With k = 2 a match pays only if it is not above the second "
            "largest negative by the margin."),
        "07_sub_embeddings__architecture": (
            schematic_subembeddings(),
            pd.DataFrame({"part": ["attention", "mask", "variance", "orthogonality"]}),
            "DVSE: K vectors of an image, one of a text; what each loss looks at."),
        "07_sub_embeddings__collapse": (
            schematic_collapse(), pd.DataFrame({"panel": ["a", "b", "c"]}),
            "Two ways to collapse, to one text (a) or to the middle (b), and the aim (c)."),
        "07_sub_embeddings__weights": (
            schematic_weights(), pd.DataFrame({"cosines": ["middle", "one meaning"]}),
            "The wider a head's cosines with other texts spread, the flatter its triplet loss.")}
    for name, (picture, table, summary) in drawings.items():
        print(save_figure(picture, table, name, COMMON, summary,
                          {"seeds": [], "made_from": DRAWN_BY}, published=True))


if __name__ == "__main__":
    main()
