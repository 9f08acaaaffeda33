"""Pictures of sub-embeddings show the numbers they are given, on one scale, and refuse bad ones."""

import doctest
import importlib

import numpy as np
import pytest
from matplotlib.text import Text

from itr_study import plots
from itr_study.plots.heads import pixel_map
from tests.oracles.entropy import oracle
from tests.plots.frames import picture
from tests.plots.subembedded import BOXES, HALF, SHARP, head_pictures, maps
from tools.drawings import (
    NEAR,
    OTHERS,
    SHARPNESS,
    TEXTS,
    drawn_entropy,
    schematic_weights,
    weight,
)

module = importlib.import_module("itr_study.plots.heads")


def said(name: str) -> str:
    return " · ".join(text.get_text() for text in head_pictures()[name].findobj(Text))


def test_examples_in_docstrings():
    assert not doctest.testmod(module).failed


def test_matrices_stand_on_one_scale_with_their_means():
    panels = [axes for axes in head_pictures()["correlations"].axes if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in panels] == [f"({c}) variant" for c in "abcd"]
    assert {axes.images[0].get_clim() for axes in panels} == {(0, 1)}
    assert all((axes.images[0].get_array() == HALF).all() for axes in panels)
    assert said("correlations").count("mean off the diagonal 0.50") == 4
    assert not head_pictures()["ten heads"].axes[0].texts  # no number in a cell


def test_many_matrices_stand_in_rows_so_that_their_numbers_can_be_read():
    for count, columns in ((4, 4), (5, 3), (6, 3)):
        drawn = plots.correlation_maps(dict.fromkeys("abcdef"[:count], HALF), "t")
        panels = [axes for axes in drawn.axes if axes.get_title(loc="left")]
        assert [axes.get_title(loc="left") for axes in panels] == list("abcdef"[:count])
        assert {axes.get_subplotspec().get_gridspec().ncols for axes in panels} == {columns}
        assert len(drawn.axes) == count + 1  # and the scale; no empty panel
        assert drawn.get_figwidth() <= 9.6


def test_a_pixel_has_the_sum_of_the_regions_that_cover_it():
    """Against asking every pixel about every region; on a raster that no edge falls into."""
    weights = np.array([0.5, 0.2, 0.2, 0.1])
    found = pixel_map(weights, BOXES, 8)
    for (row, column), value in np.ndenumerate(found):
        x, y = (column + 0.5) / 8, (row + 0.5) / 8
        assert value == pytest.approx(sum(
            weight for weight, (left, top, right, bottom) in zip(weights, BOXES, strict=True)
            if left <= x < right and top <= y < bottom))
    assert found[0, -1] == pytest.approx(0.1)  # top right: the whole picture alone


def test_heads_have_columns_and_maps_rows_with_their_largest_weights():
    words = said("attention")
    for wanted in ("head 1", "head 2", "softmax\nattention", "rank map", "the picture", "weight",
                   "0.70", "0.90", "0.53"):  # 0.53: 16 / 30, the rank map of four regions
        assert wanted in words, wanted
    figure = head_pictures()["attention"]
    bar = figure.axes[-1]
    most = max(pixel_map(of_head, BOXES).max() for rows in maps().values() for of_head in rows)
    assert bar.get_ylim() == pytest.approx((0, most))
    shown = [axes.images[0].get_array() for axes in figure.axes[:-1] if axes.images]
    assert len(shown) == 5  # the picture, and two heads in two rows
    left, right = shown[1][112, 10], shown[1][112, -10]
    assert left[1] < right[1]  # of the first head the left half is redder: less green


def test_what_is_drawn_of_a_collapse_is_so():
    """(a) and (c) have low entropy, (b) more than twice as much; by the printed formula."""
    words = [axes.get_xlabel() for axes in head_pictures()["collapse"].axes]
    one, middle, aim = (float(text.split()[1]) for text in words)
    assert max(one, aim) < middle / 2 and one == pytest.approx(aim, abs=0.1)
    heads = TEXTS + np.array([0.0, NEAR])
    texts = np.concatenate([TEXTS, OTHERS])
    owner = [0] * len(TEXTS) + [1] * len(OTHERS)
    expected = [oracle([[-float(np.square(head - text).sum()) for text in texts]], owner,
                       SHARPNESS)[0][0] for head in heads]
    assert drawn_entropy(heads) == pytest.approx(np.mean(expected))


def test_weights_are_those_of_the_printed_formula():
    assert weight(0.25) == pytest.approx(0.64)  # 1 / 1.25^2
    same = schematic_weights(middle=(0.3,), meaning=(0.3,))
    first, second, _ = same.axes
    assert first.get_xlabel() == second.get_xlabel()
    first, second, costs = head_pictures()["weights"].axes
    numbers = [float(axes.get_xlabel().split()[-1]) for axes in (first, second)]
    assert numbers[0] < numbers[1]
    drawn = np.concatenate([np.repeat(bar.get_x() + 0.025, round(bar.get_height()))
                            for bar in first.patches])
    assert len(drawn) == 127  # all texts of the batch but the target
    assert weight(np.std(drawn, ddof=1)) == pytest.approx(numbers[0], abs=0.02)
    solid, *dashed = costs.lines
    assert solid.get_ydata().tolist() == [0, 0.6]
    for line, number in zip(dashed, numbers, strict=True):
        low, high = line.get_ydata()
        assert (high - low) / 0.6 == pytest.approx(number, abs=0.005)
        assert low == pytest.approx(-np.log(number) / 2, abs=0.005)  # log sigma


def test_bad_input_is_refused():
    for matrix in (np.eye(1), np.ones((2, 3)), np.ones(4)):
        with pytest.raises(ValueError, match=r"must be \(K, K\) with K >= 2"):
            plots.correlation_maps({"one": matrix}, "t")
    for matrix in (-np.eye(2), 2 * np.eye(2), np.full((2, 2), np.nan)):
        with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
            plots.correlation_maps({"one": matrix}, "t")
    with pytest.raises(ValueError, match="at least one matrix"):
        plots.correlation_maps({}, "t")
    for wrong in ({"rank map": SHARP[:, 1:]}, {}):
        with pytest.raises(ValueError, match=r"maps must all be \(K, R\)"):
            plots.attention_maps(picture(), BOXES, wrong, "t")
    with pytest.raises(ValueError, match="1 to 8 heads fit"):
        plots.attention_maps(picture(), BOXES, {"a": np.ones((9, 4))}, "t")
    with pytest.raises(ValueError, match="finite numbers"):
        plots.attention_maps(picture(), BOXES, {"rank map": SHARP * np.nan}, "t")
