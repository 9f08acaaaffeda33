"""The way of runs into collapse."""

import numpy as np
import pandas as pd
import pytest

from itr_study.plots import collapse_paths

ROWS = pd.DataFrame(
    [("hardest", seed, epoch, spread, loss, 100.0 * epoch, fell)
     for seed, fell in ((0, False), (1, True))
     for epoch, spread, loss in ((1, 0.2, 0.5), (2, 0.1 if seed else 0.3, 0.41))],
    columns=["arm", "seed", "epoch", "score_std", "loss", "dev_rsum", "collapsed"])


def test_the_zone_of_equal_scores_is_a_share_of_their_loss():
    left, right = collapse_paths(ROWS, "Collapse", equal=0.4, near=0.05).axes[:2]
    (zone,) = left.patches
    low, high = zone.get_extents().transformed(left.transData.inverted()).intervaly
    assert (low, high) == (pytest.approx(0.38), pytest.approx(0.42))
    assert not right.patches and left.get_xscale() == right.get_xscale() == "log"


def test_only_collapsed_runs_end_in_a_filled_mark():
    for axes, ends in zip(collapse_paths(ROWS, "", 0.4, 0.05).axes[:2], (0.41, 200.0), strict=True):
        last = [line for line in axes.lines if line.get_markersize() == 7]
        assert [line.get_xdata()[0] for line in last] == [0.3, 0.1]
        assert {line.get_ydata()[0] for line in last} == {ends}
        assert [line.get_markerfacecolor() == "white" for line in last] == [True, False]


def test_a_loss_that_is_another_one_is_left_out():
    rows = ROWS.assign(loss=ROWS["loss"].where(ROWS["epoch"] == 2, np.nan))
    left, right = collapse_paths(rows, "", 0.4, 0.05).axes[:2]
    starts = [[line.get_xdata()[0] for line in axes.lines if line.get_markersize() == 2.5]
              for axes in (left, right)]
    assert starts == [[0.3, 0.1], [0.2, 0.2]]
