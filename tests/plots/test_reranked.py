"""Pictures of re-ranking show what they are given, where it belongs."""

import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from itr_study import plots
from itr_study.plots.style import RIGHT, WRONG
from tests.plots.reranked import reranking_pictures


def test_the_map_of_scales_has_the_second_scale_upwards_and_its_marks_where_they_belong():
    axes = reranking_pictures()["scales"].axes[0]
    values = axes.images[0].get_array()
    assert values[2, 0] == 24 and values[0, 2] == -24  # second 25 and first 1, and the other way
    assert axes.images[0].get_clim() == (-24, 24) and axes.images[0].origin == "lower"
    (mark,) = (line for line in axes.lines if line.get_marker() == "s")
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (1, 2)  # first 5, second 25
    assert reranking_pictures()["scales"].get_supxlabel() == "□ printed · n = 1"


def test_a_loss_of_r1_beyond_the_largest_gain_is_drawn_as_that():
    cells = pd.DataFrame([("i2t", 1.0, 1.0, 3.0), ("i2t", 1.0, 2.0, -40.0)],
                         columns=["direction", "first", "second", "gain"])
    figure = plots.scale_maps(pd.concat([cells, cells.assign(direction="t2i")]), "t", {})
    assert [axes.images[0].get_clim() for axes in figure.axes[:2]] == [(-3, 3)] * 2


def test_first_results_are_framed_by_whether_they_are_the_match():
    before, after = ([(patch.get_edgecolor(), patch.get_x()) for patch in axes.patches]
                     for axes in reranking_pictures()["flip"].axes)
    text = [-0.45, 0.55]  # where the frame of a text's cell begins
    assert before == [(to_rgba(WRONG), text[1]), (to_rgba(RIGHT), text[1])]
    assert after == [(to_rgba(RIGHT), text[0]), (to_rgba(WRONG), text[0])]


def test_occurrences_are_counted_per_direction_and_method():
    axes = reranking_pictures()["hubs"].axes[0]
    assert axes.patches[0].get_xy()[:, 1].max() == 2  # two texts are in one list
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["before", "after"]
    assert axes.lines[0].get_xdata()[0] == pytest.approx(11 / 4)  # the mean, equal for both
