"""Curves, provenance, paired differences and sibling pairs, against what was counted by hand."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from itr_study.data.batches import EncodedSplit
from itr_study.identity import encoded_data
from itr_study.lessons import (
    counted_siblings,
    curves,
    differences,
    expected_siblings,
    made_with,
    verdict,
)
from itr_study.plans import Arm, train_arms
from itr_study.plots.figures import full_record
from itr_study.profiles import choose
from itr_study.settings import Settings
from tests.small_runs import SMALL


@pytest.fixture(scope="module")
def rows():
    arms = [Arm("a", SMALL), Arm("a", SMALL.with_(seed=1))]
    return train_arms(arms, workers=0)


def test_curves_have_a_line_per_epoch_and_know_their_arm(rows):
    found = curves(rows)
    assert list(zip(found.arm, found.seed, found.epoch, strict=True)) == [
        ("a", 0, 1), ("a", 0, 2), ("a", 1, 1), ("a", 1, 2)]
    last = found[found.seed == 1].iloc[int(rows.best_epoch[1]) - 1]
    assert last.dev_rsum == pytest.approx(rows.dev_rsum[1])


def test_curves_of_real_data_are_read_beside_the_rows(rows, tmp_path):
    real = rows.iloc[:1].assign(dataset="flickr8k")
    with pytest.raises(ValueError, match="no curve of run"):
        curves(real, tmp_path)
    folder = tmp_path / "flickr8k" / "curves"
    folder.mkdir(parents=True)
    (folder / f"{real.run[0]}.csv").write_text("epoch,loss\n1,0.5\n")
    assert curves(real, tmp_path).to_dict("records") == [
        {"epoch": 1, "loss": 0.5, "arm": "a", "seed": 0}]


def test_a_run_that_failed_has_no_curve(rows):
    assert set(curves(rows.assign(status=["done", "failed"])).seed) == {0}


def test_provenance_is_what_a_figure_asks_for(rows):
    knobs = choose("03_topk", "smoke", seeds=2)
    record = full_record("42_small__curve", "scenes", "It rises.", made_with(knobs, rows, k=3))
    assert record["seeds"] == [0, 1] and record["run_ids"] == sorted(rows.run)
    assert record["data"] == rows.data[0] and record["k"] == 3
    assert record["profile"] == "smoke" and record["knobs"] == {"seeds": 2}
    assert made_with(choose("03_topk", "quick")) == {"profile": "quick", "knobs": {}, "seeds": []}


def test_differences_are_paired_by_seed():
    values = pd.DataFrame({"arm": ["a"] * 3 + ["b"] * 3, "seed": [0, 1, 2, 2, 1, 0],
                           "dataset": "d", "model": "m", "x": [1.0, 2, 3, 10, 20, 30]})
    (row,) = differences(values, [("b", "a")], ["x"]).to_dict("records")
    assert row["difference"] == pytest.approx(np.mean([29, 18, 7])) and row["n"] == 3
    assert row["low"] < row["difference"] < row["high"]
    (one,) = differences(values[values.seed == 0], [("b", "a")], ["x"]).to_dict("records")
    assert one["difference"] == 29 and verdict(one["low"], one["high"]) == "undecided (one seed)"


def test_expected_siblings_is_the_mean_over_all_batches():
    owner = np.array([0, 0, 0, 1, 1, 2])
    batches = list(combinations(range(6), 4))
    found = np.mean([sum(owner[a] == owner[b] for a, b in combinations(batch, 2))
                     for batch in batches])
    assert expected_siblings([3, 2, 1], 4) == pytest.approx(found)


def test_counted_siblings_are_those_of_the_batches_of_a_run():
    split = EncodedSplit("train", np.repeat(np.arange(40), 5), np.zeros((40, 1, 1, 1)))
    counted = counted_siblings(split, Settings(batch_size=50))
    assert len(counted) == 4
    assert counted.mean() == pytest.approx(expected_siblings([5] * 40, 50), rel=0.2)
    whole = counted_siblings(split, Settings(batch_size=200))
    assert whole.tolist() == [400]  # 40 images of 10 pairs
    train = encoded_data(SMALL).splits["train"]
    assert counted_siblings(train, SMALL.settings).sum() > 0
