"""Models whose scores are averaged, worked by hand: which, what is measured, what was saved."""

import json

import numpy as np
import pandas as pd
import pytest

from itr_study.evaluation.search import Searcher
from itr_study.lab.ledger.paired import Arms
from itr_study.lab.runs.data import dataset_of, encoded_data
from itr_study.lab.runs.run import build_model
from itr_study.lab.studies.arms import ArmRun
from itr_study.lab.studies.ensembles import (
    ensemble_rows,
    ensembles,
    kept_ensembles,
    pairs_of,
    with_costs,
)
from itr_study.lab.studies.study import Study
from itr_study.metrics import ranks
from itr_study.plots.published import NEEDED
from tests.small_runs import SMALL


def arm_runs(*labels, seeds=5):
    return [ArmRun(label, SMALL.with_(seed=seed), factors=dict(
        zip(("setting", "loss"), label.split("/"), strict=True)))
        for label in labels for seed in range(seeds)]


def test_which_runs_are_put_together():
    runs = arm_runs("saf/bcls", "sgr/bcls", "saf/hardest", "vse_infinity/hardest", "dan/sum")
    pairs = {key: [(run.label, run.config.seed) for run in members]
             for key, members in pairs_of(runs, 5, 5).items()}
    assert set(pairs) == {("sgraf/bcls", seed) for seed in range(5)} | {
        ("vse_infinity/hardest*", 0), ("vse_infinity/hardest*", 2)}
    assert pairs["sgraf/bcls", 3] == [("saf/bcls", 3), ("sgr/bcls", 3)]
    assert pairs["vse_infinity/hardest*", 2] == [("vse_infinity/hardest", 2),
                                                 ("vse_infinity/hardest", 3)]
    assert set(pairs_of(runs, 1)) == {("sgraf/bcls", 0)}
    assert set(pairs_of(runs, 0, 3)) == {("vse_infinity/hardest*", 0)}  # 2 has no other


@pytest.fixture(scope="module")
def searchers():
    data = encoded_data(SMALL)
    return {(label, seed): Searcher(build_model(
        SMALL.with_(seed=seed + 10 * (label == "sgr/bcls")), data.inputs).eval(),
        dataset_of(SMALL), data) for label in ("saf/bcls", "sgr/bcls") for seed in (0, 1)}


def rows_of(runs):
    return pd.DataFrame([{
        "arm": run.label, **run.factors, "seed": run.config.seed,
        "run": f"{run.label}{run.config.seed}",
        "dataset": "scenes", "model": run.label[:3].upper(), "status": "done", "data": "d",
        "seen": "" if run.label.startswith("saf") else "minilm", "config": "{}",
        "arithmetic": "a", "minutes": 2.0, "dev_rsum": 1.0, "test_rsum": 2.0} for run in runs])


def test_an_ensemble_is_a_row_that_is_measured_by_the_mean_of_both_scores(searchers):
    runs = arm_runs("saf/bcls", "sgr/bcls", seeds=2)
    rows = rows_of(runs)
    found = ensemble_rows(rows, pairs_of(runs, 2),
                          lambda run: searchers[run.label, run.config.seed],
                          dict.fromkeys(rows["run"], "") | {"sgr/bcls1": "all are equal"})
    assert list(found["arm"]) == ["sgraf/bcls"] * 2 and list(found["seed"]) == [0, 1]
    assert list(found["run"]) == ["saf/bcls0", "sgr/bcls1"]  # the collapsed one where there is one
    one = found.iloc[0]
    assert (one["model"], one["seen"], one["minutes"]) == ("SAF and SGR", "minilm", 4.0)
    assert "dev_rsum" not in found and one["members"] == "saf/bcls0 + sgr/bcls0"
    both = (searchers["saf/bcls", 0].scores + searchers["sgr/bcls", 0].scores) / 2
    first = ranks(both, searchers["saf/bcls", 0].split.image_of_text).t2i <= 1
    assert one["test_t2i_r1"] == pytest.approx(100 * np.mean(first))
    assert {"test_rsum", "test_i2t_tau_exact", "test_fast_rsum"} <= set(found)


def test_a_pair_of_which_one_run_has_no_row_is_left_out(searchers, tmp_path):
    runs = arm_runs("saf/bcls", "sgr/bcls", seeds=2)
    found = ensemble_rows(rows_of(runs[:3]), pairs_of(runs, 2),
                          lambda run: searchers[run.label, run.config.seed])
    assert list(found["seed"]) == [0]
    none = ensemble_rows(rows_of(runs[:1]), pairs_of(runs, 2), lambda run: None)
    assert none.empty
    rows = rows_of(runs).assign(epochs=3, ended=True)  # of a type that a missing column changes
    for empty in (ensemble_rows(rows.head(1), pairs_of(runs, 2), lambda run: None),
                  kept_ensembles(tmp_path, "photos", rows)):
        assert pd.concat([rows, empty], ignore_index=True).dtypes.equals(rows.dtypes)


def test_ensembles_that_were_saved_are_taken_for_the_rows_they_were_made_of(tmp_path):
    path = tmp_path / "photos" / "09_stronger_models__ensembles.csv"
    path.parent.mkdir()
    rows = rows_of(arm_runs("saf/bcls", "sgr/bcls", seeds=1))
    assert kept_ensembles(tmp_path, "photos", rows).empty
    made = rows.assign(arm="sgraf/bcls", members="saf/bcls0 + sgr/bcls0")
    pd.concat([made, rows]).to_csv(path, index=False)  # single models beside them
    path.with_suffix(".json").write_text(json.dumps(
        dict.fromkeys(NEEDED, "") | {"run_ids": ["saf/bcls0", "sgr/bcls0"]}))
    kept = kept_ensembles(tmp_path, "photos", rows.assign(collapsed=["", "all scores are equal"]))
    assert list(kept.pop("collapsed")) == ["all scores are equal"] * 2  # a member of both
    stands = kept_ensembles(tmp_path, "photos", rows.assign(collapsed=""))
    assert list(stands["collapsed"]) == [""] * 2
    assert list(kept["arm"]) == ["sgraf/bcls"] * 2 and list(kept["seen"]) == ["", "minilm"]
    assert kept_ensembles(tmp_path, "photos", rows.head(1)).empty
    assert kept_ensembles(tmp_path, "photos", rows, "best_clean_found").empty


@pytest.fixture
def study(tmp_path, searchers, monkeypatch):
    """What `ensembles` asks of a Study; `trained` are the runs it wanted models of, `here` those
    that this machine has."""
    own = Study.__new__(Study)
    vars(own).update(figures=tmp_path, dataset_name="photos", root=None, collapsed={}, made=set(),
                     notebook="09_stronger_models", trained=[], here=set())
    own.train = lambda runs, weights: own.trained.extend(
        (run.label, run.config.seed) for run in runs)
    own.searcher = lambda run: searchers[run.label, run.config.seed]
    monkeypatch.setattr("itr_study.lab.studies.study.models_here", lambda runs, _root: {
        (run.label, run.config.seed) for run in runs} <= own.here)
    return own


def save(study, table, figure="ensembles"):
    path = study.figures / "photos" / f"09_stronger_models__{figure}.csv"
    path.parent.mkdir(exist_ok=True)
    table.to_csv(path, index=False)
    path.with_suffix(".json").write_text(json.dumps(dict.fromkeys(NEEDED, "") | {
        "run_ids": sorted({run for runs in table["members"] for run in runs.split(" + ")})}))


def test_what_was_saved_is_made_again_only_where_its_models_are(study):
    """Of two seeds one was saved, on another machine: the other alone is trained."""
    runs = arm_runs("saf/bcls", "sgr/bcls", seeds=2)
    rows, pairs = rows_of(runs), pairs_of(runs, 2)
    made = ensembles(study, pairs, rows)
    assert study.trained == [(run.label, run.config.seed) for two in pairs.values() for run in two]
    assert list(made["seed"]) == [0, 1] and made["test_rsum"].notna().all()
    assert made[["setting", "loss"]].values.tolist() == 2 * [["sgraf", "bcls"]]
    save(study, made.assign(test_rsum=[7.0, 8.0]).tail(1))
    study.trained = []
    found = ensembles(study, pairs, rows)
    assert study.trained == [("saf/bcls", 0), ("sgr/bcls", 0)]
    assert list(found["seed"]) == [0, 1] and set(found["setting"]) == {"sgraf"}
    assert list(found["test_rsum"]) == [made["test_rsum"][0], 8.0]
    save(study, found)
    study.trained = []
    assert list(ensembles(study, pairs, rows)["test_rsum"]) == [made["test_rsum"][0], 8.0]
    assert not study.trained
    study.here = {("saf/bcls", 1), ("sgr/bcls", 1), ("saf/bcls", 0)}  # half of a pair is none
    assert list(ensembles(study, pairs, rows)["test_rsum"]) == list(made["test_rsum"])
    assert study.trained == [("saf/bcls", 1), ("sgr/bcls", 1)]


def test_what_was_saved_of_other_runs_is_made_again(study):
    runs = arm_runs("saf/bcls", "sgr/bcls", seeds=2)
    rows, pairs = rows_of(runs), pairs_of(runs, 2)
    made = ensembles(study, pairs, rows)
    save(study, made.assign(members=list(made["members"])[::-1], test_rsum=7.0))
    study.trained = []
    assert list(ensembles(study, pairs, rows)["test_rsum"]) == list(made["test_rsum"])
    assert len(study.trained) == 4


def test_without_a_pair_there_is_no_ensemble_and_nothing_is_trained(study):
    rows = rows_of(arm_runs("saf/bcls", "sgr/bcls", seeds=2))
    assert ensembles(study, {}, rows).empty and not study.trained
    pairs = pairs_of(arm_runs("saf/bcls", "sgr/bcls", seeds=2), 2)
    one = ensembles(study, pairs, rows[rows.seed == 1])  # no row of seed 0
    assert list(one["seed"]) == [1] and study.trained == [("saf/bcls", 1), ("sgr/bcls", 1)]
    save(study, one.assign(test_rsum=7.0))
    assert list(ensembles(study, pairs, rows[rows.seed == 1])["test_rsum"]) == [7.0]
    assert ensembles(study, {}, rows).dtypes.equals(rows.dtypes)


def test_two_models_cost_what_both_cost():
    costs = pd.DataFrame({"arm": ["saf", "sgr", "vse_infinity"], "parameters": [1.0, 2.0, 4.0],
                          "score_seconds": [0.5, 0.25, 0.1], "memory_mb": [10.0, 30.0, 5.0]})
    rows = pd.DataFrame({"setting": ["sgraf", "vse_infinity*", "saf", "sgr", "vse_infinity", "dan"],
                         "run": ["a", "c", "a", "b", "c", "d"],
                         "members": ["a + b", "c + c", None, None, None, None]})
    found = with_costs(rows, costs)
    assert found["parameters"].tolist()[:3] == [3.0, 8.0, 1.0]
    assert found["score_seconds"].tolist()[:3] == [0.75, 0.2, 0.5]
    assert found["memory_mb"].tolist()[:3] == [30.0, 5.0, 10.0]
    names = ["parameters", "score_seconds", "memory_mb"]
    assert found.loc[5, names].isna().all()
    assert with_costs(rows, costs.head(1)).loc[0, names].isna().all()  # half of a pair is no cost


def test_an_ensemble_may_be_paired_with_its_members_and_no_member_with_the_other():
    rows = rows_of(arm_runs("saf/bcls", "sgr/bcls", "dan/sum", "sgraf/bcls"))
    rows["test_rsum"] = rows["arm"].map({"saf/bcls": 1.0, "sgr/bcls": 2.0, "sgraf/bcls": 5.0})
    assert Arms(rows).part("sgraf/bcls", "saf/bcls", "test_rsum").mean == 4
    assert Arms(rows).part("sgraf/bcls", "sgr/bcls", "test_rsum").mean == 3
    rows["test_rsum"] = 1.0
    for other in ("sgr/bcls", "dan/sum"):
        with pytest.raises(ValueError, match="only runs of one model can be paired"):
            Arms(rows).part("saf/bcls", other, "test_rsum")
