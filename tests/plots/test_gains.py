"""Curves of what losses gain over a reference."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from itr_study.plots.claims import gain_curves

PLACES = {0.01: "precise", 1.0: "vague"}
TABLE = pd.DataFrame([
    {"panel": panel, "loss": loss, "x": x, "difference": height, "low": height - 1,
     "high": height + 1, "n": 5, "verdict": "higher"}
    for panel, lift in (("RSUM", 0), ("NDCG", 5)) for loss, slope in (("top5", 1), ("soft", -1))
    for x, height in ((0.01, lift - 4.0 * slope), (1.0, lift + 4.0 * slope))])
CROSSED = pd.DataFrame([{"panel": "RSUM", "loss": "top5", "at": 0.1, "low": 0.05, "high": 0.2}])


def lines(axes, marker):
    return [line for line in axes.lines if line.get_marker() == marker]


def hollow(axes):
    return [tuple(point) for line in axes.lines if line.get_markerfacecolor() == "white"
            for point in line.get_xydata()]


def test_what_has_collapsed_is_hollow():
    fallen = TABLE.assign(verdict=np.where(TABLE.x == 1, "collapsed", "higher"))
    figure = gain_curves(fallen, PLACES, "A title", "share")
    assert sorted(hollow(figure.axes[0])) == [(1, -4), (1, 4)]
    assert "hollow: scores have collapsed · 5 seeds" in figure.get_supxlabel()


def test_every_loss_has_a_line_with_its_intervals_in_every_panel():
    figure = gain_curves(TABLE, PLACES, "A title", "share", log=True)
    assert not hollow(figure.axes[0])
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["RSUM", "NDCG"]
    for axes, lift in zip(figure.axes, (0, 5), strict=True):
        (rising,) = lines(axes, "^")
        np.testing.assert_array_equal(rising.get_xydata(), [(0.01, lift - 4), (1, lift + 4)])
        strokes = [path for part in axes.collections for path in part.get_segments()]
        assert [list(map(tuple, stroke)) for stroke in strokes][:1] == [
            [(0.01, lift - 5), (0.01, lift - 3)]] and len(strokes) == 4
        assert axes.get_xscale() == "log" and any(
            list(line.get_ydata()) == [0, 0] for line in axes.lines)  # the reference
        assert [text.get_text() for text in axes.get_xticklabels()] == list(PLACES.values())
        low, high = axes.get_ylim()
        assert low < lift - 5 and high > lift + 5


def test_a_crossing_is_a_bar_below_all_lines_of_its_panel():
    figure = gain_curves(TABLE, PLACES, "A title", "share", crossings=CROSSED, log=True)
    first, second = figure.axes
    mark, = [line for line in lines(first, "^") if len(line.get_xdata()) == 1]
    assert mark.get_xdata()[0] == 0.1 and len(lines(second, "^")) == 1
    bar, = [line for line in first.lines if list(line.get_xdata()) == [0.05, 0.2]]  # the interval
    assert set(bar.get_ydata()) == set(mark.get_ydata())
    figure.canvas.draw()
    foot = mark.get_window_extent().y1
    lowest = first.transData.transform((0.01, -5))[1]
    assert foot < lowest


@pytest.mark.parametrize("missing", [["low", "high"]])
def test_a_single_seed_has_no_interval(missing):
    figure = gain_curves(TABLE.assign(**dict.fromkeys(missing, np.nan)), PLACES, "A title", "share")
    low, high = figure.axes[0].get_ylim()
    assert np.isfinite([low, high]).all() and low < -4 and high > 4


def test_neighbouring_losses_do_not_hide_each_other_and_type_is_legible():
    figure = gain_curves(TABLE, PLACES, "A title", "share")
    (axes, _) = figure.axes
    figure.canvas.draw()
    places = [line.get_transform().transform(line.get_xydata()[0])[0]
              for marker in "^D" for line in lines(axes, marker)]
    assert places[1] - places[0] > 1
    assert min(text.get_fontsize() for text in axes.findobj(Text)) >= 8
