"""Where a model looks: a heat map for every word, all on one colour scale, and weights by rank."""

from collections.abc import Mapping, Sequence
from textwrap import shorten

import matplotlib
import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, PowerNorm
from PIL import Image

from itr_study.digits import number
from itr_study.metrics.attention import NEAR, pixel_map
from itr_study.plots.heads import FEW, HEAT, draw_heat
from itr_study.plots.style import Picture, canvas, caption, headline, look, styled

MOST_ROWS = 15  # maps beside the picture that can be read
COLUMNS = 6
LETTERS = 21  # of a word over its map
NOWHERE = "(lies nowhere)"


@styled
def word_maps(picture: Image.Image, rows: Sequence[str], weights: np.ndarray, boxes: np.ndarray,
              score: float, title: str, note: str = "") -> Picture:
    """What every word of a text, or every head, looks at: a map for each, on one colour scale.

    Below a map stands the largest weight of a region, and whether that one lies nowhere: its
    weight colours no pixel. Of more than 15 rows those are drawn that look most at one region, in
    their order.

    Args:    picture: the image; rows: N words; weights: (N, R) of regions, rows adding up to 1;
             boxes: (R, 4) left, top, right, bottom in fractions of the picture, NaN for a region
             that lies nowhere; score: of the pair, printed; None where the rows are of several
             models.
    Raises:  ValueError for no row, shapes that differ, weights that are no map.
    Source:  SCAN (Lee et al., ECCV 2018) and SGRAF (Diao et al., AAAI 2021) draw such maps.
    Differs: one scale for all words, from 0, so that shades of two words can be compared.
    """
    check_looks(rows, weights, boxes)
    shown = drawn_rows(weights)
    rasters = {row: pixel_map(weights[row], boxes) for row in shown}
    scale, lost = heat_scale(weights, boxes), ~np.isfinite(boxes).all(axis=1)
    columns = min(COLUMNS, len(shown) + 1)
    lines = -(-(len(shown) + 1) // columns)
    figure, panels = canvas(columns, lines, size=(1.5 * columns + 1.1, 1.78 * lines + 0.75))
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.03, rect=(0.008, 0, 0.982, 1))
    for axes in panels:
        axes.axis("off")
    panels[0].imshow(np.asarray(picture.convert("RGB")), extent=(0, 1, 1, 0))
    panels[0].set_title("the picture", fontsize=8)
    for axes, row in zip(panels[1:], shown, strict=False):
        axes.axis("on")
        draw_heat(axes, picture, rasters[row], boxes, scale)
        axes.set_title(shorten(rows[row], LETTERS, placeholder="…"), fontsize=8,
                       fontweight="bold")
        axes.set_xlabel(f"most {number(weights[row].max(), 2)}"
                        + f" {NOWHERE}" * bool(lost[weights[row].argmax()]), fontsize=8)
    bar = figure.colorbar(ScalarMappable(scale, HEAT), ax=panels, shrink=0.9, pad=0.01)
    bar.set_label("sum of weights" + ", square-root scale" * (len(boxes) > FEW))
    headline(figure, title if score is None else f"{title}; score of the pair {number(score, 2)}")
    left = f"{len(shown)} of {len(rows)}, those that look most at one region" * (
        len(shown) < len(rows))
    hidden = f"{NOWHERE}: a region without a place in the picture, so its weight has no colour"
    caption(figure, " · ".join(filter(None, [
        "most: the largest weight of a region; colour: sum of the weights of the regions that "
        "cover a pixel", hidden * bool(lost[weights[shown].argmax(axis=1)].any()), left, note])))
    return figure


def drawn_rows(weights: np.ndarray) -> list[int]:
    """Which rows of (N, R) are drawn, in order."""
    return sorted(np.argsort(-weights.max(axis=1), kind="stable")[:MOST_ROWS].tolist())


def heat_scale(weights: np.ndarray, boxes: np.ndarray) -> Normalize:
    """One scale for all rows (N, R), from 0 to the largest value of a pixel in any; of many regions
    by the square root, so that weights of a fine grid are visible at all."""
    most = max(float(pixel_map(row, boxes).max()) for row in weights)
    return PowerNorm(0.5 if len(boxes) > FEW else 1, 0, most or 1.0)


def check_looks(rows: Sequence[str], weights: np.ndarray, boxes: np.ndarray) -> None:
    """Raise ValueError where the parts of `word_maps` do not fit each other."""
    shape = np.shape(weights)
    if len(shape) != 2 or 0 in shape or len(rows) != shape[0] or np.shape(boxes) != (shape[1], 4):
        raise ValueError("rows must be N words, weights (N, R) and boxes (R, 4), N and R at least "
                         f"1; got {len(rows)} words, {shape} and {np.shape(boxes)}")
    wrong = ~((weights >= 0).all(axis=1) & (np.abs(weights.sum(axis=1) - 1) <= NEAR))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"weights must be at least 0 and add up to 1 in each row, NaN is an error;"
                         f" those of {rows[row]!r} give {weights[row].sum():.4g}")


@styled
def rank_weights(weights: Mapping[str, np.ndarray], title: str, note: str = "") -> Picture:
    """How much the largest value of a feature counts, the second largest, and so on: a line for
    each model, beside the mean, in which all count alike.

    Args:    weights: by the name of the model, (R,) by rank, adding up to 1; R may differ.
    Raises:  ValueError for none, and for weights that do not add up to 1.
    Source:  VSE∞ (Chen et al., CVPR 2021), Sec. 3.2: θ of the generalised pooling operator.
    """
    if not weights or any(abs(values.sum() - 1) > NEAR for values in weights.values()):
        raise ValueError("rank_weights needs the weights of one model or more, each adding up to 1;"
                         f" got {({name: float(v.sum()) for name, v in weights.items()})}")
    figure, (axes,) = canvas()
    for place, (name, values) in enumerate(weights.items()):
        how, ranks = look(name, place), np.arange(1, len(values) + 1)
        axes.plot(ranks, values, how.line, color=how.colour, marker=how.marker, label=name)
    longest = max(map(len, weights.values()))
    axes.axhline(1 / longest, color="black", linestyle=":", linewidth=1,
                 label=f"mean of {longest} regions")
    axes.set(xlabel="rank of a region's value in a feature", ylabel="weight")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend()
    headline(figure, title)
    caption(figure, note)
    return figure


def heat_colours(values: np.ndarray, scale: Normalize) -> list[str]:
    """Hex colours of numbers on the scale of a map."""
    return [matplotlib.colors.to_hex(colour) for colour in matplotlib.colormaps[HEAT](
        scale(np.asarray(values, float)))]
