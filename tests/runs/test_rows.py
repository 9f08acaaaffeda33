"""Rows of runs: made of a result, published, and served where nothing can be trained."""

import doctest
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import itr_study as itr
from itr_study.data import DATASETS
from itr_study.evaluation import evaluate, measures
from itr_study.lab.runs import published
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.published import Published, publish
from itr_study.losses import LOSSES
from tests.small_runs import SMALL, count_trainings, row_of


def published_row(config, **named) -> dict:
    """The row of a run that was trained and published with its ranks."""
    made = row_of(config, root="anywhere", **named)
    assert publish([made["run"]], ranks=True) == [made["run"]]
    return made


def test_a_published_row_serves_without_data_and_without_training(store, evidence, tmp_path,
                                                                  monkeypatch, real):
    trained = count_trainings(monkeypatch)
    first = published_row(real)
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "another machine"))
    assert row_of(real, root=None) == row_of(real, root="anywhere") == first
    assert len(trained) == 1 and first["status"] == "done" and first["test_rsum"] > 0
    with pytest.raises(ValueError, match="no data here"):
        row_of(real.with_(images="lite0:pooled:one"), root=None)


def test_a_row_that_is_not_published_is_made_of_the_store_and_writes_nothing(store, evidence, real):
    first = row_of(real, "anywhere")
    assert row_of(real, "anywhere") == first and not evidence.exists()
    assert itr.curve(first["run"])["epoch"].tolist() == [1, 2]
    assert len(itr.arrays(first["run"])["test_i2t"]) == 10
    with pytest.raises(ValueError, match="no runs of scenes are published .* itr-study runs"):
        itr.rows("scenes")
    for read in (itr.curve, itr.arrays):
        with pytest.raises(ValueError, match="neither published nor in the store of this machine"):
            read("0" * 16)


def test_a_row_holds_config_metrics_cost_and_versions(store, evidence, tmp_path, monkeypatch, real):
    values = published_row(real.with_(**{"objective.0.arguments.k": 2}))
    assert RunConfig.model_validate_json(values["config"]).objective[0].arguments == {"k": 2}
    assert values["objective.0.arguments.k"] == 2 and values["model_arguments.size"] == 8
    for split in ("dev", "test"):
        assert {f"{split}_{name}" for name in evaluate.columns("photos", split)} <= set(values)
    assert (values["epochs"], values["seed"], values["model"]) == (2, 0, "two_branch")
    assert values["minutes"] >= 0 and '"loss:topk":1' in values["versions"]
    curve, arrays = itr.curve(values["run"]), itr.arrays(values["run"])
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "another machine"))
    pd.testing.assert_frame_equal(itr.curve(values["run"]), curve, check_exact=True)
    assert list(curve["epoch"]) == [1, 2] and "dev_rsum" in curve
    ranks = itr.arrays(values["run"])
    assert all((ranks[name] == arrays[name]).all() for name in arrays.keys() | ranks.keys())
    assert values["test_t2i_r10"] == pytest.approx(100 * (ranks["test_t2i"] <= 10).mean())
    table = itr.rows("photos")
    assert table["run"].tolist() == [values["run"]] and table["test_rsum"].dtype == np.float64


def test_a_part_of_generated_data_is_not_published(store, evidence):
    made = row_of(SMALL)
    with pytest.raises(ValueError, match="is of a part of scenes .*only runs of its own size"):
        publish([made["run"]])
    assert made["status"] == "done" and not evidence.exists()


def test_generated_data_at_its_own_size_is_published(store, evidence, tmp_path, monkeypatch):
    def load(root=None, *, train=24, dev=10, test=10):
        return replace(DATASETS["scenes"].load(train=train, dev=dev, test=test), name="drawn")

    monkeypatch.setitem(DATASETS, "drawn", replace(DATASETS["scenes"], name="drawn", load=load))
    own_size = SMALL.with_(dataset="drawn", data_options={})
    trained = count_trainings(monkeypatch)
    first = published_row(own_size)
    assert not (evidence / "drawn" / "data.json").exists()  # this data is there on any machine
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "another machine"))
    assert row_of(own_size) == first and len(trained) == 1


def test_a_new_version_makes_the_row_stale(store, evidence, monkeypatch, real):
    trained = count_trainings(monkeypatch)
    old = published_row(real)
    monkeypatch.setattr(LOSSES["topk"], "version", 99)
    new = published_row(real)
    assert old["run"] != new["run"] and len(trained) == 2
    assert set(Published("photos").table.read()) == {old["run"], new["run"]}


def test_a_row_without_a_measure_is_incomplete(store, evidence, monkeypatch, real):
    before = published_row(real)
    measure = measures.Measure(lambda dataset, split: ("i2t_new",),
                               lambda scored: {"i2t_new": 50.0})
    monkeypatch.setitem(measures.MEASURES, "new", measure)
    assert Published("photos").complete(before["run"]) is None
    # the store's result has no such metric either: it is evaluated again
    assert row_of(real, "anywhere")["test_i2t_new"] == 50.0
    publish([before["run"]])  # and takes the place of the row that lacks it
    assert Published("photos").complete(before["run"])["test_i2t_new"] == 50.0


@pytest.mark.evidence
@pytest.mark.parametrize("dataset", ["flickr8k", "scenes"])
def test_no_published_row_has_the_weights_of_its_warm_up(dataset):
    """Those of the sum, say: they would speak for a loss that has not made them."""
    for kept in Published(dataset).table.read().values():
        settings = RunConfig.model_validate_json(kept["config"]).settings
        if kept["status"] == "done" and settings.warmup_epochs < kept["epochs"]:
            assert kept["best_epoch"] > settings.warmup_epochs, kept["run"]


@pytest.mark.evidence
@pytest.mark.parametrize("dataset", ["flickr8k", "scenes"])
def test_every_published_run_has_its_curve(dataset):
    table = itr.rows(dataset)
    for run, epochs in zip(table["run"], table["epochs"], strict=True):
        assert len(itr.curve(run)) == epochs


@pytest.mark.evidence
def test_examples():
    failed, tried = doctest.testmod(published)
    assert tried and not failed
