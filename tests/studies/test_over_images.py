"""Errors over images: from ranks, checked against the difference, else from a kept table."""

import numpy as np
import pandas as pd
import pytest

from itr_study.evaluation.table import recall_by_image, retrieval_table
from itr_study.lab.ledger.paired import NoRanks, Part
from itr_study.lab.runs.published import NotKept
from itr_study.lab.studies import results
from itr_study.lab.studies.results import ImageErrors
from itr_study.metrics import Ranks, ranks
from itr_study.metrics.intervals import crossed_error
from tests.metrics.sets import random_set

RUNS = [["a0", "a1", "a2"], ["b0", "b1", "b2"]]


def test_recalls_by_image_have_the_recalls_as_their_means():
    scores, owner = random_set(4, images=30)
    found = ranks(scores, owner)
    table, parts = retrieval_table(found), recall_by_image(found, owner)
    assert len(parts) == 7 and {values.shape for values in parts.values()} == {(30,)}
    for name, values in parts.items():
        assert values.mean() == pytest.approx(table[name]), name


@pytest.fixture
def split(monkeypatch):
    """Ranks of six runs on one split, read instead of the published ones."""
    owner = np.repeat(np.arange(20), 5)
    rng = np.random.default_rng(0)
    easy = np.arange(20) % 2 == 0  # images on which arm a finds all of its own
    known = {run: Ranks(*(np.where(easily & (run[0] == "a"), 1, rng.integers(1, 30, len(easily)))
                          for easily in (easy, easy[owner])))
             for runs in RUNS for run in runs}

    def ranks_of(row):
        if row["run"] not in known:
            raise NotKept(row["run"])
        return known[row["run"]]

    monkeypatch.setattr(results, "ranks_of", ranks_of)
    return owner, known


def difference(owner, known, metric="test_rsum", shift=0.0):
    name = metric.removeprefix("test_")
    one, other = (np.stack([recall_by_image(known[run], owner)[name] for run in runs])
                  for runs in RUNS)
    part = Part("a", "b", metric, (0, 1, 2), (one - other).mean(axis=1) + shift)
    return part, crossed_error(one - other)


@pytest.mark.parametrize("metric", ["test_rsum", "test_i2t_r1", "test_t2i_r10"])
def test_an_error_is_computed_from_ranks_and_kept(split, metric):
    part, expected = difference(*split, metric)
    errors = ImageErrors(split[0])
    assert errors(part, *RUNS) == pytest.approx(expected, rel=1e-4) and expected > 0
    (line,) = errors.table().to_dict("records")
    assert line == {"arm_a": "a", "arm_b": "b", "metric": metric, "pairs": 3,
                    "error": float(f"{expected:.5g}")}


def test_without_ranks_the_kept_table_answers_and_travels_on(split):
    part, _ = difference(*split)
    kept = pd.DataFrame([("a", "b", "test_rsum", 3, 0.5), ("a", "b", "test_rsum", 5, 0.9)],
                        columns=["arm_a", "arm_b", "metric", "pairs", "error"])
    errors, gone = ImageErrors(split[0], kept), [["x0"] * 3, ["x1"] * 3]
    assert errors(part, *gone) == 0.5
    assert errors.table()["error"].tolist() == [0.5]
    with pytest.raises(NoRanks):
        ImageErrors(split[0])(part, *gone)
    with pytest.raises(NoRanks):
        errors(part._replace(arm_a="c"), *gone)


def test_ranks_of_other_scores_and_other_measures_are_refused(split):
    part, _ = difference(*split, shift=1.0)  # as of a re-ranked arm, whose run is the same
    with pytest.raises(NoRanks, match="do not give their test_rsum"):
        ImageErrors(split[0])(part, *RUNS)
    for metric in ("half_rsum", "dev_rsum", "test_i2t_tau_cider", "ambiguous_rsum-clear_rsum"):
        with pytest.raises(NoRanks, match="is no recall"):
            ImageErrors(split[0])(part._replace(metric=metric), *RUNS)
    with pytest.raises(NoRanks, match="another test split"):
        ImageErrors(split[0][:50])(part, *RUNS)
