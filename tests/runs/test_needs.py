"""Rows without the measures that are `asked` serve where nobody asks for these; elsewhere their
weights are evaluated again."""

import csv
import shutil

import pytest

from itr_study.evaluation.evaluate import columns
from itr_study.evaluation.measures import MEASURES, SECONDS, measure_of
from itr_study.files.atomic import read_json, write_json
from itr_study.files.sealed import seal
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.published import Published, publish
from itr_study.lab.runs.rows import SPLITS, is_complete, make_row
from itr_study.lab.runs.run import execute
from itr_study.lab.runs.store import RunStore
from itr_study.lab.runs.sweeps import sweep
from tests.small_runs import SMALL, count_trainings, row_of, without_asked

RERANKED = ("reranked",)
BASE, ALL = ({f"{split}_{name}" for split in SPLITS
              for name in columns("scenes", split, needs=needs)} for needs in ((), MEASURES))


@pytest.fixture
def older(store, evidence, real):
    """Two runs without what is asked for: weights in the store, rows published; their rows."""
    configs = [real, real.with_(seed=1)]
    for config in configs:
        without_asked(execute(identify(config, "anywhere"), "anywhere"))
    rows = sweep(configs, workers=0, root="anywhere")
    publish(rows["run"])
    return rows.to_dict("records")


def read_csv(evidence):
    with open(evidence / "photos" / "runs.csv", newline="") as file:
        return {line["run"]: line for line in csv.DictReader(file)}


def test_an_older_row_serves_where_nothing_is_asked_for(older, evidence, real, monkeypatch):
    trained, before = count_trainings(monkeypatch), read_csv(evidence)
    for line in before.values():
        assert set(line) >= BASE and not {*SECONDS, *(ALL - BASE)} & set(line)
    for _ in ("with weights", "without"):
        rows = sweep([real], workers=0, root="anywhere")
        assert rows["run"].tolist() == [older[0]["run"]]
        shutil.rmtree(RunStore().folder, ignore_errors=True)
    assert not trained and read_csv(evidence) == before


def test_where_a_measure_is_asked_for_the_weights_are_evaluated_again(
        older, evidence, real, monkeypatch):
    """No epoch is trained, and what was measured is as it was, to the last bit."""
    trained, before = count_trainings(monkeypatch), older[0]
    (after,) = sweep([real], workers=0, root="anywhere", needs=[RERANKED]).to_dict("records")
    assert not trained and after["run"] == before["run"]
    assert {name: after[name] for name in before} == before  # config, minutes and all
    assert set(after) - set(before) == ALL - BASE | set(SECONDS)
    assert publish([after["run"]], ranks=True) == [after["run"]]
    lines, published = read_csv(evidence), Published("photos")
    assert published.complete(after["run"], RERANKED) == after
    other = lines[older[1]["run"]]  # whose cells stay, with empty ones beside
    assert other["test_fast_rsum"] == other["seconds_fast"] == ""
    assert published.complete(other["run"]) and not published.complete(other["run"], RERANKED)
    assert published.arrays(after["run"])["test_i2t_first"].shape == (10, 10)
    history = read_json(RunStore().path(after["run"]) / "result.json")["history"]
    assert len(history) == real.settings.epochs


def test_without_weights_it_is_trained_again(older, evidence, real, monkeypatch):
    trained = count_trainings(monkeypatch)
    shutil.rmtree(RunStore().folder)
    after = row_of(real, "anywhere", needs=RERANKED)
    assert len(trained) == 1
    assert {name: after[name] for name in BASE} == {name: older[0][name] for name in BASE}
    assert row_of(real, None)["run"] == after["run"] and row_of(real, None, needs=RERANKED) == after
    publish([after["run"]])
    assert row_of(real, None) == after


def test_a_run_that_is_asked_for_twice_has_all_that_it_needs(store, monkeypatch):
    trained = count_trainings(monkeypatch)
    other = SMALL.with_(seed=1)
    for config in (SMALL, other):
        without_asked(execute(identify(config)))
    assert "test_fast_rsum" not in sweep([SMALL], workers=0)
    frame = sweep([SMALL, other, SMALL], workers=0, needs=[(), (), RERANKED])
    assert frame["test_fast_rsum"].notna().tolist() == [True, False, True] and len(trained) == 2


def test_a_measure_that_there_is_not_is_refused(store):
    for ask in (lambda: execute(identify(SMALL), needs=("hubness",)),
                lambda: sweep([SMALL], workers=0, needs=[("hubness",)])):
        execute(identify(SMALL))
        with pytest.raises(ValueError, match="measure must be one of graded, .*; got 'hubness'"):
            ask()


def test_a_row_must_have_all_that_its_data_set_is_measured_by(store, evidence, real):
    made, table = row_of(real, "anywhere"), Published("photos")
    publish([made["run"]])
    assert table.complete(made["run"], MEASURES) == made
    lacking = {made["run"]: made | {"test_multi_rsum": None}}
    table.table.row = lacking.get
    assert table.complete(made["run"], ["first ten"]) and not table.complete(made["run"], RERANKED)
    lacking[made["run"]] = made | {"test_i2t_tau_exact": None}
    assert table.complete(made["run"]) is None


def test_a_result_must_have_all_that_is_asked_for(store):
    result = execute(identify(SMALL))
    values = read_json(result.folder / "result.json")
    del values["tables"]["test"]["fast_rsum"]
    write_json(result.folder / "result.json", values)
    seal(result.folder, but=("status.json",), **result.facts, edition=2)  # as older stores say
    found = make_row(identify(SMALL), RunStore().result(result.id))
    assert is_complete(found) and not is_complete(found, RERANKED)
    assert execute(identify(SMALL), needs=RERANKED).tables == result.tables


def test_a_run_that_diverged_lacks_nothing(store, monkeypatch):
    wild = SMALL.with_(**{"settings.learning_rate": 1e30, "settings.clip_norm": None,
                          "settings.optimizer": "sgd"})
    trained = count_trainings(monkeypatch)
    for needs in ((), RERANKED):
        assert execute(identify(wild), needs=needs).status == "diverged"
    assert len(trained) == 1


def test_columns_know_their_measure():
    assert [measure_of("flickr8k", name) for name in (
        "test_i2t_ndcg_cider", "dev_t2i_rel10_sentence", "test_fast_bank_rsum", "seconds_multi",
        "test_i2t_hubness")] == ["graded", "first ten", *["reranked"] * 3]
    assert measure_of("flickr8k", "dev_fast_rsum") == measure_of("scenes", "no_such") == ""
