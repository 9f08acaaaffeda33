"""Columns made of learning curves, against curves worked by hand."""

import numpy as np
import pandas as pd
import pytest

from itr_study.lab.studies import nb12_claims as module
from itr_study.lab.studies.nb12_claims import milestones
from itr_study.lab.studies.results import generalisation

STORY = pd.DataFrame({
    "arm": ["a"] * 4 + ["b"] * 2, "seed": [0] * 4 + [1] * 2, "epoch": [1, 2, 3, 4, 1, 2],
    "seconds": [9.0, 2.0, 3.0, 4.0, 1.0, 2.0], "dev_rsum": [10.0, 20.0, 30.0, 40.0, 50.0, 60.0],
    "triplet_hardest": [0.4, 0.25, 0.2, 0.1, np.nan, np.nan],
    "smooth_ndcg.ndcg": [0.90, 0.92, 0.94, 0.96, np.nan, np.nan],
    "smooth_ndcg.smooth_ndcg": [0.80, 0.88, 0.92, 0.95, np.nan, np.nan],
    "smooth_ndcg.error": [0.1, 0.04, 0.02, 0.01, np.nan, np.nan],
    "orthogonality.correlation": [np.nan, 0.4, 0.3, 0.12, np.nan, np.nan],  # not in a warm-up
    "orthogonality.mask_std": [np.nan, 0.5, 0.5, 0.45, np.nan, np.nan],
    "variance_weighted.sigma_std": [np.nan, 0.01, 0.02, 0.03, np.nan, np.nan]})
ROWS = pd.DataFrame({"arm": ["b", "a", "failed"], "seed": [1, 0, 0], "test_rsum": [1.0, 2.0, 3.0],
                     "train_rsum": [2.0, 2.0, 9.0],
                     "status": ["done", "done", "failed"]},
                    index=[7, 8, 9])


@pytest.fixture
def found(monkeypatch):
    monkeypatch.setattr(module, "curves", lambda rows: STORY)
    monkeypatch.setattr(module, "endings", lambda rows: pd.DataFrame(
        {"collapsed": ["", "collapsed: worked by hand", ""], "flattened": ""}, index=rows.index))
    return milestones(ROWS)


def test_each_row_gets_its_own_curve(found):
    assert list(found.index) == [7, 8, 9] and list(found.test_rsum) == [1.0, 2.0, 3.0]
    of = found.set_index("arm")
    assert of.loc["a", ["first_ndcg", "last_ndcg"]].tolist() == pytest.approx([90, 96])
    smooth = ["first_smooth_ndcg", "last_smooth_ndcg"]
    assert of.loc["a", smooth].tolist() == pytest.approx([80, 95])
    assert of.loc["a", ["first_error", "last_error"]].tolist() == pytest.approx([10, 1])
    heads = ["last_head_correlation", "last_mask_std", "last_sigma_std"]
    assert of.loc["a", heads].tolist() == pytest.approx([12, 45, 3])
    assert of.loc["b", heads].isna().all() and "last_mask_rate" not in of
    assert of.loc["a", ["half_rsum", "half_hinge"]].tolist() == pytest.approx([20, 25])
    assert of.loc["a", "epoch_seconds"] == 3.5 and of.loc["b", "epoch_seconds"] == 1.5
    assert of.loc["b", "half_rsum"] == 50


def test_how_far_apart_two_curves_run(found):
    # deviations -3 -1 1 3 and -8.75 -.75 3.25 6.25: 49 / sqrt(20 * 126.75) = 0.97320
    assert found.set_index("arm").loc["a", "ndcg_apart"] == pytest.approx(2.6797, abs=1e-3)
    assert np.isnan(found.set_index("arm").loc["b", "ndcg_apart"])


def test_a_run_without_a_curve_has_none(found):
    said = ["seed", "status", "test_rsum", "train_rsum", "generalisation", "collapsed",
            "flattened"]
    assert found.set_index("arm").loc["failed"].drop(said).isna().all()
    assert found["collapsed"].tolist() == ["", "collapsed: worked by hand", ""]
    assert found["stood"].iloc[:2].tolist() == [100, 0]


def test_generalisation_is_the_share_kept_in_logarithms(found):
    assert found["generalisation"].tolist() == pytest.approx([-69.31, 0.0, -109.86], abs=0.01)


def test_generalisation_is_not_read_off_fewer_training_images():
    rows = pd.DataFrame({"test_rsum": [200.0, 200, 200], "train_rsum": [400.0, 400, 400],
                         "settings.dev_images": [None, 200, 0]})
    kept = generalisation(rows)
    assert np.isnan(kept[1]) and kept[[0, 2]].tolist() == pytest.approx([-69.31] * 2, abs=0.01)
