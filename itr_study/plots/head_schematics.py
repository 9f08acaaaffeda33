"""Sub-embeddings as drawings: how a set collapses, how the model is built, what the weights do."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle
from scipy.special import ndtri

from itr_study.digits import number
from itr_study.metrics.entropy import score_entropy
from itr_study.plots.schematics import arrow, box
from itr_study.plots.style import (
    GREY,
    INK,
    METHODS,
    Picture,
    canvas,
    caption,
    headline,
    styled,
)

BLUE, ORANGE, GREEN = (METHODS[name].colour for name in ("triplet_hardest", "triplet_sum", "topk"))
TEXTS = np.array([[0.36, 0.8], [0.3, 0.26], [0.82, 0.52]])  # of one image, on different things
OTHERS = np.array([[0.06, 0.97], [0.04, 0.5], [0.66, 0.99], [1.0, 0.86], [1.02, 0.2], [0.58, 0.04],
                   [0.05, 0.06]])
NEAR = 0.065  # how far a sub-embedding lies from the text it stands for
SHARPNESS = 0.04  # temperature: a text so much farther away, squared, is e times less likely
TARGET, PALE = 0.7, "#a6cbe3"  # the cosine of the target; the colour of texts of other images


@styled
def schematic_collapse() -> Picture:
    """Three places for the sub-embeddings of an image with three texts: two ways to collapse, and
    what they are for; below each the embedding entropy (Eq. 2) of what is drawn.

    Source:  dvse, Fig. 2, redrawn; the third panel and the numbers are ours.
    Differs: the entropy is that of drawn places, with squared distances in the place of cosines.
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
    headline(figure, "A set of sub-embeddings collapses in two ways, and entropy sees the second "
                     "alone")
    caption(figure, "circle: a sub-embedding; square: a text of the image; cross: another text; "
                    "line: to texts about as near as the nearest · entropy: mean of the three, "
                    f"{number(np.log(1 + len(TEXTS)), 2)} at most")
    return figure


def drawn_entropy(heads: np.ndarray) -> float:
    """Mean embedding entropy of places (K, 2) among the texts that are drawn."""
    texts = np.concatenate([TEXTS, OTHERS])
    distances = np.square(heads[:, None] - texts).sum(axis=-1)
    # a second row, which is not looked at, is the image that the other texts belong to
    scores = np.stack([-distances, np.zeros_like(distances)], axis=1)
    owner = (np.arange(len(texts)) >= len(TEXTS)).astype(int)
    return float(np.mean([score_entropy(of_head, owner, SHARPNESS).nats[0] for of_head in scores]))


@styled
def schematic_subembeddings(heads: int = 6) -> Picture:
    """The model: K sub-embeddings of the image, one embedding of the text, and where losses act.

    Args:    heads: K, as it is written into the boxes.
    Source:  dvse, Fig. 3, redrawn.
    Differs: the mask multiplies the sub-embeddings themselves, which the paper leaves open.
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
    headline(figure, f"An image gets {heads} sub-embeddings, a text one embedding; two losses are "
                     "to keep the set from collapsing")
    return figure


@styled
def schematic_weights(texts: int = 128, middle: Sequence[float] = (0.45, 0.5, 0.55, 0.6),
                      meaning: Sequence[float] = (0.05, 0.15, 0.2, 0.3)) -> Picture:
    """What the variance of a head's cosines makes of its loss, for two heads of one image: one in
    the middle of all its texts, and one that stands for a single of them.

    Args:    texts: of a batch; middle, meaning: cosines of the two heads with the image's other
             texts, which are not the target. Those with texts of other images are normal, mean
             0.05, standard deviation 0.1, and the same for both heads.
    Source:  dvse, Fig. 4 and Eqs. 7, 8 and 11, redrawn with numbers.
    Differs: the paper draws neither axes nor numbers; the weights are computed as printed.
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
        axes.annotate("target", (TARGET, 1), xycoords=("data", "axes fraction"), xytext=(0, 1),
                      textcoords="offset points", ha="center", va="bottom", fontsize=8,
                      color=ORANGE)
        axes.set(xlabel=f"cosine with the texts of a batch\nStd {number(spreads[-1], 3)}, weight "
                        f"{number(weight(spreads[-1]), 2)}", ylim=(0, 38))
        axes.set_title(name, fontsize=9, pad=14)
        axes.legend(loc="upper left", borderaxespad=0)
    panels[0].set_ylabel("texts")
    panels[1].sharey(panels[0])
    draw_costs(panels[2], spreads)
    alone = np.std(rest, ddof=1)  # of a batch without them, each head has this
    headline(figure, f"The variance weights a head for one meaning {number(weight(spreads[1]), 2)} "
                     f"and one in the middle {number(weight(spreads[0]), 2)}")
    caption(figure, f"weight: 1 / σ², σ = Std + 1, over {texts - 1} texts that are not the target; "
                    "cosines are made up · without the image's other texts both heads have "
                    f"{number(weight(alone), 2)}")
    return figure


def weight(spread: float) -> float:
    """1 / sigma^2 of Eq. 8, of the standard deviation of the cosines."""
    return 1 / (1 + spread) ** 2


def draw_costs(axes: Axes, spreads: Sequence[float]) -> None:
    """What a triplet costs by how much it violates its margin: equal weights solid, others dashed.
    """
    hinge = np.array([0.0, 0.6])
    axes.plot(hinge, hinge, "-", color=INK, label="equal weights")
    for name, spread, line, colour in zip("ab", spreads, (":", "--"), (GREY, BLUE), strict=True):
        axes.plot(hinge, weight(spread) * hinge + np.log1p(spread), linestyle=line, color=colour,
                  label=f"({name}), with log σ")
    axes.set(xlabel="violation of the margin", ylabel="loss", xlim=(0, 0.6), ylim=(0, 0.75))
    axes.set_title("(c) what a triplet costs", fontsize=9, pad=14)
    axes.legend(loc="upper left", borderaxespad=0.2)
