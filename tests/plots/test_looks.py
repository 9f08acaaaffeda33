"""Pictures of where models look show the numbers they are given, on one scale."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_hex
from matplotlib.text import Text
from PIL import Image

from itr_study.metrics.attention import pixel_map
from itr_study.plots.heads import (
    HEAT,
    MOST_ROWS,
    PANELS,
    heat_colours,
    heat_scale,
    pointing_dots,
    rank_weights,
    word_maps,
)

BOXES = np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1], [0, 0, 1, 1], [np.nan] * 4])
WEIGHTS = np.array([[0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25], [0, 0.2, 0.2, 0.6]])
PICTURE = Image.new("RGB", (30, 20), (200, 200, 200))


def said(figure) -> str:
    return " · ".join(text.get_text() for text in figure.findobj(Text))


def drawn(rows=("a", "red", "ball"), weights=WEIGHTS):
    return word_maps(PICTURE, rows, weights, BOXES, 0.734, "A title", "a note")


def test_all_words_stand_on_one_scale_with_their_largest_weight_and_the_score():
    figure = drawn()
    words = said(figure)
    for wanted in ("score of the pair 0.73", "the picture",
                   "red", "ball", "most 0.70", "most 0.25",
                   "most 0.60", "a note"):
        assert wanted in words, wanted
    below = [axes.get_xlabel() for axes in figure.axes[1:-1]]
    assert below[:3] == ["most 0.70", "most 0.25", "most 0.60 (no place)"]
    assert "its weight has no colour" in words
    assert "no place" not in said(drawn(weights=WEIGHTS[[0, 1, 0]]))
    bar = figure.axes[-1]
    most = max(pixel_map(row, BOXES).max() for row in WEIGHTS)
    assert bar.get_ylim() == pytest.approx((0, most)) and most == pytest.approx(0.8)
    assert bar.get_ylabel() == "sum of weights"
    maps = [axes for axes in figure.axes[:-1] if axes.images]
    assert len(maps) == 4 and [len(axes.patches) for axes in maps] == [0, 3, 3, 3]


def test_regions_without_boxes_are_drawn_row_by_row():
    figure = word_maps(PICTURE, ("a",), WEIGHTS[:1], np.full((4, 4), np.nan), 0.7, "A title")
    assert "regions without boxes, drawn row by row" in said(figure).replace("\n", " ")
    assert "no place" not in said(figure)
    corners = [patch.get_xy() for patch in figure.axes[1].patches]
    assert corners == [(0, 0), (0.5, 0), (0, 0.5), (0.5, 0.5)]


def test_the_colour_of_a_pixel_is_that_of_its_sum():
    figure = drawn()
    seen = figure.axes[1].images[0].get_array()
    scale = heat_scale(WEIGHTS, BOXES)
    grey = 0.6 + 0.4 * 200 / 255
    for column, value in ((5, 0.8), (-5, 0.2)):
        wanted = [int(c, 16) / 255 * grey for c in (
            heat_colours([value], scale)[0][i:i + 2] for i in (1, 3, 5))]
        assert seen[9, column].tolist() == pytest.approx(wanted, abs=0.01)
    assert heat_colours([0], scale) != heat_colours([0.8], scale) == [to_hex(colormaps[HEAT](1.0))]


def test_of_many_words_those_are_drawn_that_look_at_one_region():
    sure = np.tile([0.25] * 4, (20, 1))
    sure[3:3 + MOST_ROWS] = 0.7, 0.1, 0.1, 0.1
    words = said(drawn([f"word{n}" for n in range(20)], sure))
    assert f"{MOST_ROWS} of 20" in words and "word17" in words
    assert "word2 " not in words and "word18" not in words


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"rows must be N words.*got 2 words, \(3, 4\)"):
        drawn(("a", "ball"))
    with pytest.raises(ValueError, match="those of 'red' give 2"):
        drawn(weights=WEIGHTS * np.array([[1], [2], [1]]))
    with pytest.raises(ValueError, match="those of 'a' give nan"):
        drawn(weights=WEIGHTS * np.array([[np.nan], [1], [1]]))


def test_weights_by_rank_are_drawn_beside_the_mean():
    figure = rank_weights({"one": np.array([0.5, 0.3, 0.2]), "two": np.array([1.0])}, "Ranks")
    lines = figure.axes[0].lines
    assert lines[0].get_ydata().tolist() == [0.5, 0.3, 0.2]
    assert lines[0].get_xdata().tolist() == [1, 2, 3] and lines[2].get_ydata()[0] == 1 / 3
    assert "mean of 3 regions" in said(figure)
    with pytest.raises(ValueError, match="each adding up to 1"):
        rank_weights({"one": np.array([0.5, 0.3])}, "Ranks")


def test_models_stand_beside_maps_that_look_nowhere():
    table = pd.DataFrame({"arm": ["saf/sum", "saf/sum", "saf/hardest"], "seed": [0, 1, 0],
                          "mass": [40.0, 50, 70], "hit": [60.0, 70, 80], "iou": [10.0, 20, 30],
                          "uniform": [20.0, 22, 30], "centre": 15.0, "area": 10.0,
                          "uniform_hit": 25.0, "centre_hit": 12.0, "uniform_iou": 9.0,
                          "centre_iou": 8.0})
    figure = pointing_dots(table, "Places")
    for axes, (measure, (_, others)) in zip(figure.axes, PANELS.items(), strict=True):
        for name, baseline in zip(others, axes.collections, strict=True):
            of_saf, of_other = [table[name][:2].mean(), table[name][2]]
            np.testing.assert_allclose(baseline.get_segments(), [
                [[of_saf, -0.5], [of_saf, 0.5]], [[of_other, 0.5], [of_other, 1.5]]])
        lines = [line.get_xdata() for line in axes.lines]
        assert list(lines[0]) == [table[measure][:2].mean()] * 2
        assert lines[1].tolist() == table[measure][:2].tolist()
    assert "45.0" in said(figure) and "control map: area" in said(figure)
    with pytest.raises(ValueError, match="NaN is an error; got 3 lines"):
        pointing_dots(table.assign(hit=np.nan), "Places")
    assert "the rest of the sentence" not in said(figure)


def test_the_rest_of_the_sentence_is_hollow_where_a_map_knows_its_word():
    columns = {name for measure, (_, others) in PANELS.items() for name in (measure, *others)}
    table = pd.DataFrame({"arm": ["words", "words", "heads", "older"], "seed": [0, 1, 0, 0]}
                         | dict.fromkeys(columns, 40.0) | {"rest": [10.0, 20.0, 40.0, np.nan]})
    figure = pointing_dots(table, "Places")
    hollow = [[line for line in axes.lines if line.get_fillstyle() == "none"]
              for axes in figure.axes[:3]]
    assert [len(lines) for lines in hollow] == [1, 0, 0]
    assert hollow[0][0].get_xdata().tolist() == [10, 20]
    assert hollow[0][0].get_ydata().tolist() == [0, 0]  # the words' row
    assert "the rest of the sentence" in said(figure)
