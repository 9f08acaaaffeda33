"""Sub-embeddings: how alike they are, where they look, what they stand for."""

import math
from collections.abc import Mapping, Sequence
from textwrap import fill, shorten

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.patches import Rectangle
from PIL import Image

from itr_study.digits import number
from itr_study.metrics.attention import NEAR, pixel_map
from itr_study.plots.names import name_of
from itr_study.plots.shapes import cell_text
from itr_study.plots.style import GREY, INK, VALUES, Picture, canvas, finish, look, mark, styled

ROW = 4  # panels beside each other whose numbers can still be read
PRINTED = 6  # heads: a correlation is written into its cell up to so many
MOST_HEADS = 8  # that fit beside each other with type that can be read
HEAT, PALEST = "Reds", 0.6  # colours of a map, darkened by the picture: black by this factor
FEW = 16  # regions of which the edges are drawn; those of a fine grid would hide the map
COVER = "colour: sum of the weights of the regions that cover a pixel"


@styled
def correlation_maps(matrices: Mapping[str, np.ndarray], title: str, note: str = "") -> Picture:
    """Draw how alike the sub-embeddings of an image are, a panel per model.

    Source: dvse, Fig. 6; here with one printed scale and the mean off each diagonal.

    Args: matrices: by title, (K, K) in [0, 1] of one image as `head_correlation` gives it.
    Raises: ValueError: no matrix, one that is not square, K = 1, values out of range.
    """
    if not matrices:
        raise ValueError("correlation_maps needs at least one matrix, got none")
    for name, matrix in matrices.items():
        shape = np.shape(matrix)
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
            raise ValueError(f"{name!r} must be (K, K) with K >= 2, got {shape}")
        if not ((matrix >= 0) & (matrix <= 1)).all():
            raise ValueError(f"{name!r} must lie in [0, 1], NaN is an error; got "
                             f"{np.min(matrix)} to {np.max(matrix)}")
    rows = -(-len(matrices) // ROW)
    columns = -(-len(matrices) // rows)
    lines = 3 + 0.2 * max(name.count("\n") for name in matrices)
    figure, panels = canvas(columns, rows, (max(4.6, 2.3 * columns + 0.4), 0.6 + lines * rows),
                            number=len(matrices))
    figure.get_layout_engine().set(h_pad=0.09)  # names of several lines keep off the headline
    for axes, (name, matrix) in zip(panels, matrices.items(), strict=True):
        heads = len(matrix)
        image = axes.imshow(matrix, cmap=VALUES, vmin=0, vmax=1, interpolation="nearest")
        for (row, column), value in np.ndenumerate(matrix) if heads <= PRINTED else ():
            axes.text(column, row, cell_text(round(value, 6)), ha="center", va="center",
                      fontsize=8, color="white" if value < 0.5 else INK)
        shown = np.arange(0, heads, -(-heads // 6))
        axes.set_xticks(shown, shown + 1)
        axes.set_yticks(shown, shown + 1)
        axes.grid(False)
        off = matrix[~np.eye(heads, dtype=bool)].mean()
        axes.set(title=name, xlabel=f"residual of head\nmean off the diagonal {number(off, 2)}")
        if axes.get_subplotspec().is_first_col():
            axes.set_ylabel("residual of head")
    figure.colorbar(image, ax=panels, shrink=0.75, pad=0.015, label="|cosine|")
    return finish(figure, title, note)


@styled
def attention_maps(picture: Image.Image, boxes: np.ndarray, maps: Mapping[str, np.ndarray],
                   title: str, note: str = "") -> Picture:
    """Draw where heads look: a column per head, a row per kind of map, on one scale.

    Below each map is its largest weight.

    Source: dvse, Fig. 10: a pixel has the sum of the regions that cover it.

    Args:
        boxes: (R, 4) left, top, right, bottom of its regions in fractions of the picture, NaN for
            a region without a place.
        maps: (K, R) weights of each head by the name of the row.
    Raises: ValueError: no map, shapes that differ, NaN, more than 8 heads.
    """
    shapes = {np.shape(weights) for weights in maps.values()}
    if len(shapes) != 1 or len(shape := shapes.pop()) != 2 or np.shape(boxes) != (shape[1], 4):
        raise ValueError("maps must all be (K, R) and boxes (R, 4); got "
                         f"{[np.shape(w) for w in maps.values()]} and {np.shape(boxes)}")
    heads = shape[0]
    if not 1 <= heads <= MOST_HEADS:
        raise ValueError(f"1 to {MOST_HEADS} heads fit beside each other, got {heads}; choose "
                         "some of them")
    if not all(np.isfinite(weights).all() for weights in maps.values()):
        raise ValueError("weights of maps must be finite numbers, NaN is an error")
    scale = heat_scale(np.concatenate([*maps.values()]), boxes)
    side = min(1.45, 8.7 / (heads + 1))
    figure, panels = canvas(heads + 1, len(maps), size=(side * (heads + 1) + 0.9,
                                                        (side + 0.17) * len(maps) + 0.7))
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.03, rect=(0.008, 0, 0.982, 1))
    draw_picture(panels[0], picture)
    for row, (name, weights) in enumerate(maps.items()):
        first, *cells = panels[row * (heads + 1):(row + 1) * (heads + 1)]
        first.axis("off")
        for head, axes in enumerate(cells):
            draw_heat(axes, picture, pixel_map(weights[head], boxes), boxes, scale)
            axes.set_xlabel(number(weights[head].max(), 2), fontsize=8)
            if row == 0:
                axes.set_title(f"head {head + 1}", fontsize=8)
        cells[0].set_ylabel(fill(name, 12), fontsize=8)
    figure.colorbar(ScalarMappable(scale, HEAT), ax=panels, shrink=0.8, pad=0.01, label="weight")
    return finish(figure, title, "number: largest weight of a region", COVER, note)


def draw_picture(axes: Axes, picture: Image.Image) -> None:
    """Draw the picture itself, in front of its maps."""
    axes.imshow(np.asarray(picture.convert("RGB")), extent=(0, 1, 1, 0))
    axes.set_title("the picture", fontsize=8)
    axes.axis("off")


def heat_over(picture: Image.Image, raster: np.ndarray, scale: Normalize) -> np.ndarray:
    """Colour a map, (size, size, 3) in [0, 1], darkened where the picture is dark."""
    light = np.asarray(picture.convert("L").resize(raster.shape[::-1]), dtype=float) / 255
    colours = matplotlib.colormaps[HEAT](scale(raster))[..., :3]
    return colours * (PALEST + (1 - PALEST) * light)[..., None]


def draw_heat(axes: Axes, picture: Image.Image, raster: np.ndarray, boxes: np.ndarray,
              scale: Normalize) -> None:
    """Draw a map over its picture, with thin lines around few regions."""
    axes.imshow(heat_over(picture, raster, scale), extent=(0, 1, 1, 0), interpolation="nearest")
    outlined = boxes[np.isfinite(boxes).all(axis=1)] if len(boxes) <= FEW else []
    for left, top, right, bottom in outlined:
        axes.add_patch(Rectangle((left, top), right - left, bottom - top, fill=False,
                                 edgecolor=GREY, linewidth=0.4))
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.grid(False)


# Of each measure: the axis of its panel, and the baselines without content by their columns.
PANELS = {
    "mass": ("weight inside the boxes, %",
             {"uniform": "uniform", "centre": "centre", "area": "area"}),
    "hit": ("middle of top region in a box, %", {"uniform_hit": "uniform", "centre_hit": "centre"}),
    "iou": ("overlap with the boxes, %",
            {"uniform_iou": "uniform", "centre_iou": "centre", "area": "area"})}
DOT = 4.5  # points: seeds lie close
LINES = {"uniform": ":", "centre": "--", "area": "-."}


@styled
def pointing_dots(table: pd.DataFrame, title: str, note: str = "") -> Picture:
    """Draw how well models look at what words name, against contentless baselines.

    Args: table: arm, seed, and in percent the columns of PANELS; of words also "rest", the weight
        of the rest of the sentence in the same boxes (NaN: not measured), drawn hollow.
    Raises: ValueError: an empty table, NaN elsewhere.
    """
    columns = [*PANELS, *{name for _, others in PANELS.values() for name in others}]
    if table.empty or table[columns].isna().any(axis=None):
        raise ValueError("pointing_dots needs numbers in every line, NaN is an error; got "
                         f"{len(table)} lines")
    arms = list(dict.fromkeys(table["arm"]))
    figure, panels = canvas(3, size=(9.6, 1.5 + 0.32 * len(arms)), sharey=True)
    means, heights = table.groupby("arm")[columns].mean().loc[arms], np.arange(len(arms))
    marks: dict[str, Artist] = {}
    for axes, (measure, (label, others)) in zip(panels, PANELS.items(), strict=True):
        for column, name in others.items():
            marks[name] = axes.vlines(means[column], heights - 0.5, heights + 0.5, color=GREY,
                                      linestyle=LINES[name], linewidth=1.2,
                                      label=f"control map: {name}")
        for height, arm in enumerate(arms):
            part, how, mean = table[table["arm"] == arm], look(arm, height), means[measure][arm]
            axes.plot([mean] * 2, [height - 0.3, height + 0.3], color=INK, linewidth=2)
            axes.plot(part[measure], [height] * len(part), how.marker, color=how.colour,
                      markersize=DOT, clip_on=False)  # the last may lie on the edge
            if measure == "mass" and "rest" in part and part["rest"].notna().all() and not (
                    np.allclose(part["rest"], part["mass"])):  # words have own maps
                axes.plot(part["rest"], [height] * len(part), how.marker, color=how.colour,
                          fillstyle="none", markersize=DOT, clip_on=False)
                marks["rest"] = mark("o", GREY, "hollow: the rest of the sentence", fill="none",
                                     markersize=DOT)
            axes.annotate(number(mean, 1), (1, height), fontsize=8, va="center",
                          xycoords=("axes fraction", "data"), xytext=(4, 0),
                          textcoords="offset points", annotation_clip=False)
        axes.set(xlabel=label, ylim=(len(arms) - 0.4, -0.6), xlim=(0, None))
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(arms)), [name_of(arm) for arm in arms])
    return finish(figure, title, "mark: a seed; bar and number: mean of the seeds", note,
                  marks=[*marks.values()], columns=3)


MOST_ROWS = 15  # maps beside the picture that can be read
COLUMNS = 6
LETTERS = 21  # of a word over its map
NOWHERE = "(no place)"


@styled
def word_maps(picture: Image.Image, rows: Sequence[str], weights: np.ndarray, boxes: np.ndarray,
              score: float, title: str, note: str = "") -> Picture:
    """Draw what every word of a text, or every head, looks at, on one colour scale.

    Below each map is the largest weight of a region, and whether that region has no place, so that
    its weight colours no pixel. Of more than 15 rows the most peaked are drawn, in their order.

    Source: SCAN (Lee et al., ECCV 2018) and SGRAF (Diao et al., AAAI 2021) draw such maps.

    Args:
        rows: N words.
        weights: (N, R) of regions; each row adds up to 1.
        boxes: (R, 4) left, top, right, bottom in fractions of the picture, NaN for a region
            without a place. If none has one, they are drawn row by row in their order.
        score: of the pair, printed; None if the rows are of several models.
    Raises: ValueError: no row, shapes that differ, weights that are no map.
    """
    check_looks(rows, weights, boxes)
    under, order = picture, ""
    if not np.isfinite(boxes).any():  # nothing is hidden then
        side = math.isqrt(len(boxes) - 1) + 1
        corners = np.stack(np.divmod(np.arange(len(boxes)), side)[::-1], axis=1) / side
        boxes, under = np.hstack((corners, corners + 1 / side)), Image.new("RGB", (30, 30), "white")
        order = "regions without boxes, drawn row by row in their order"
    shown = sorted(np.argsort(-weights.max(axis=1), kind="stable")[:MOST_ROWS].tolist())
    scale, lost = heat_scale(weights, boxes), ~np.isfinite(boxes).all(axis=1)
    columns = min(COLUMNS, len(shown) + 1)
    lines = -(-(len(shown) + 1) // columns)
    figure, panels = canvas(columns, lines, (1.5 * columns + 1.1, 1.78 * lines + 0.75),
                            number=len(shown) + 1)
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.03, rect=(0.008, 0, 0.982, 1))
    draw_picture(panels[0], picture)
    for axes, row in zip(panels[1:], shown, strict=True):
        draw_heat(axes, under, pixel_map(weights[row], boxes), boxes, scale)
        axes.set_title(shorten(rows[row], LETTERS, placeholder="…"), fontsize=8, fontweight="bold")
        axes.set_xlabel(f"most {number(weights[row].max(), 2)}"
                        + f" {NOWHERE}" * bool(lost[weights[row].argmax()]), fontsize=8)
    figure.colorbar(ScalarMappable(scale, HEAT), ax=panels, shrink=0.9, pad=0.01,
                    label="sum of weights" + ", square-root scale" * (len(boxes) > FEW))
    scored = "" if score is None else f"score of the pair {number(score, 2)}"
    left = f"{len(shown)} of {len(rows)}, those with the largest weights" * (len(shown) < len(rows))
    hidden = f"{NOWHERE}: a region that is not in the picture, so its weight has no colour"
    hidden *= bool(lost[weights[shown].argmax(axis=1)].any())
    return finish(figure, title, f"most: the largest weight of a region; {COVER}", hidden + order,
                  left, scored, note)


def heat_scale(weights: np.ndarray, boxes: np.ndarray) -> Normalize:
    """Make one scale for all rows (N, R), from 0 to the largest pixel.

    Of many regions it is the square root, or weights of a fine grid would not be seen.
    """
    most = max(float(pixel_map(row, boxes).max()) for row in weights)
    return PowerNorm(0.5 if len(boxes) > FEW else 1, 0, most or 1.0)


def check_looks(rows: Sequence[str], weights: np.ndarray, boxes: np.ndarray) -> None:
    """Raise ValueError if the parts of `word_maps` do not fit each other."""
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
    """Draw how much the largest value of a feature counts, the second, and so on.

    Source: VSE∞ (Chen et al., CVPR 2021), Sec. 3.2: θ of the generalised pooling operator.

    Args: weights: by the name of the model, (R,) by rank, adding up to 1; R may differ.
    Raises: ValueError: no weights, or weights that do not add up to 1.
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
    return finish(figure, title, note)


def heat_colours(values: np.ndarray, scale: Normalize) -> list[str]:
    """List the hex colours of numbers on the scale of a map."""
    return [matplotlib.colors.to_hex(colour) for colour in matplotlib.colormaps[HEAT](
        scale(np.asarray(values, float)))]
