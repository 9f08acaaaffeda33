"""Curves and ranks that runs left, and intervals over images."""

import numpy as np
import pandas as pd
import pytest

from itr_study.evaluation.table import retrieval_table
from itr_study.metrics import Ranks
from itr_study.studies.arms import ArmRun, train_arms
from itr_study.studies.results import curves, over_images, ranks_of
from tests.small_runs import SMALL


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


@pytest.fixture(scope="module")
def rows():
    arms = [ArmRun("a", SMALL), ArmRun("a", SMALL.with_(seed=1))]
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
