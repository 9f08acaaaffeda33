"""Learning rates chosen on dev, intervals over images, images hard to tell apart."""

import doctest

import numpy as np
import pandas as pd
import pytest

from itr_study import evidence
from itr_study.evidence import (
    confusable_pairs,
    mistakes,
    over_images,
    ranks_of,
    rate_table,
    rates_said,
)
from itr_study.metrics import Ranks, retrieval_table

SEARCH = pd.DataFrame([("gru/sum/0.001", 0, 200.0), ("gru/sum/0.002", 0, 210.0),
                       ("gru/top5/0.001", 0, 230.0), ("gru/top5/0.002", 0, 230.0)],
                      columns=["arm", "seed", "dev_rsum"])


def test_the_best_rate_on_dev_is_compared_with_the_frozen_one():
    table = rate_table(SEARCH, {"gru": {"sum": 2e-3, "top5": 1e-3}})
    assert table["best"].tolist() == [False, True, True, False]  # of equals the smaller rate
    assert table["frozen"].tolist() == [False, True, True, False]
    assert rates_said(table).startswith("All 2 frozen learning rates are the best")


def test_a_frozen_rate_that_is_not_the_best_is_named():
    table = rate_table(SEARCH, {"gru": {"sum": 1e-3, "top5": 1e-3}})
    assert rates_said(table).splitlines() == [
        "1 of 2 frozen learning rates are the best of this search on dev; these are not:",
        "  gru/sum: 0.002 is best here"]


def test_a_run_that_diverged_is_never_the_best():
    rows = SEARCH.assign(dev_rsum=[np.nan, 210.0, np.nan, np.nan])
    table = rate_table(rows, {"gru": {"sum": 2e-3, "top5": 1e-3}})
    assert table["best"].tolist() == [False, True, False, False]
    assert rates_said(table).startswith("1 of 2 frozen")


def test_ranks_come_from_beside_the_row_and_missing_ones_are_named(tmp_path, store):
    row = {"run": "a" * 16, "dataset": "flickr8k", "arm": "k=5", "seed": 0}
    with pytest.raises(ValueError, match="no ranks of run aaaa"):
        ranks_of(row, tmp_path)
    i2t, t2i = np.array([1, 3]), np.array([1, 2, 8])
    (tmp_path / "flickr8k" / "ranks").mkdir(parents=True)
    np.savez(tmp_path / "flickr8k" / "ranks" / f"{row['run']}.npz", test_i2t=i2t, test_t2i=t2i)
    assert ranks_of(row, tmp_path).t2i.tolist() == [1, 2, 8]
    table = over_images(pd.DataFrame([row]), np.array([0, 0, 1]), figures=tmp_path, n=200)
    assert table["value"][0] == pytest.approx(retrieval_table(Ranks(i2t, t2i))["rsum"])
    assert table["low"][0] < table["value"][0] < table["high"][0]


def test_confusable_pairs_take_no_image_twice_and_average_both_directions():
    alike = np.array([[1, 1, 0.9, 0.8, 0.1], [0.7, 0.5, 1, 0.9, 0.2], [0.1, 0.1, 0.9, 1, 0.3],
                      [0, 0, 0, 0.4, 1]])
    owner = np.array([0, 0, 1, 2, 3])
    pairs = confusable_pairs(alike, owner, 2)
    # 1-2: (0.9 + 0.9) / 2 = 0.9 beats 0-1: (0.9 + (0.7 + 0.5) / 2) / 2 = 0.75
    assert [(i, j) for i, j, _ in pairs] == [(1, 2), (0, 3)]
    assert pairs[0][2] == pytest.approx(0.9) and pairs[1][2] == pytest.approx((0.1 + 0) / 2)
    assert len(confusable_pairs(alike, owner, 9)) == 2


def test_mistakes_leave_out_matches_and_count_both_directions():
    scores = np.array([[0.9, 0.8, 0.1], [0.5, 0.2, 0.7]])  # texts 0, 1 of image 0, text 2 of 1
    graded = np.array([[1.0, 1.0, 0.4], [0.6, 0.2, 1.0]])
    owner = np.array([0, 0, 1])
    found = mistakes(scores, graded, owner, 2)  # image 1 finds 2, 0; texts find both images
    assert found == pytest.approx({"i2t": 0.6, "t2i": (0.6 + 0.2 + 0.4) / 3})
    assert np.isnan(mistakes(scores, graded, owner, 1)["i2t"])


def test_examples():
    assert doctest.testmod(evidence).failed == 0
