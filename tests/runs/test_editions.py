"""Rows of edition 1 serve where that is enough; where 2 is asked for, weights are evaluated again.
"""

import csv
import shutil

import pytest

from itr_study.evaluation.evaluate import columns
from itr_study.evaluation.measures import EDITION, came_with
from itr_study.evaluation.reranked import SECONDS
from itr_study.files.atomic import read_json, write_json
from itr_study.files.sealed import seal
from itr_study.runs.identity import identify
from itr_study.runs.publish import publish
from itr_study.runs.published import Published
from itr_study.runs.rows import SPLITS, edition_of
from itr_study.runs.run import execute, is_complete, row
from itr_study.runs.store import RunStore
from itr_study.runs.sweeps import sweep
from tests.small_runs import SMALL, as_of_edition_1, count_trainings

NAMES = {edition: {f"{split}_{name}" for split in SPLITS
                   for name in columns("scenes", split, edition)} for edition in (1, 2)}


@pytest.fixture
def first_edition(store, evidence, real):
    """Two runs as edition 1 left them: weights in the store, rows published; their rows."""
    configs = [real, real.with_(seed=1)]
    for config in configs:
        as_of_edition_1(execute(identify(config, "anywhere"), "anywhere"))
    rows = sweep(configs, workers=0, root="anywhere")
    publish(rows["run"])
    return rows.to_dict("records")


def read_csv(evidence):
    with open(evidence / "photos" / "runs.csv", newline="") as file:
        return {line["run"]: line for line in csv.DictReader(file)}


def test_a_row_of_edition_1_has_nothing_of_edition_2(first_edition, evidence):
    for line in read_csv(evidence).values():
        assert not {"edition", *SECONDS, *(NAMES[2] - NAMES[1])} & set(line)
        assert set(line) >= NAMES[1]
    assert [edition_of(row) for row in first_edition] == [1, 1]


def test_it_serves_where_edition_1_is_asked_for(first_edition, evidence, real, monkeypatch):
    trained, before = count_trainings(monkeypatch), read_csv(evidence)
    for _ in ("with weights", "without"):
        rows = sweep([real], workers=0, root="anywhere")
        assert rows["run"].tolist() == [first_edition[0]["run"]]
        shutil.rmtree(RunStore().folder, ignore_errors=True)
    assert not trained and read_csv(evidence) == before


def test_where_edition_2_is_asked_for_the_weights_are_evaluated_again(
        first_edition, evidence, real, monkeypatch):
    """No epoch is trained, and what edition 1 measured is as it was, to the last bit."""
    trained, before = count_trainings(monkeypatch), first_edition[0]
    (after,) = sweep([real], workers=0, root="anywhere", edition=2).to_dict("records")
    assert not trained and after["run"] == before["run"]
    assert {name: after[name] for name in before} == before  # config, minutes and all
    assert after["edition"] == 2 and set(after) - set(before) == (
        NAMES[2] - NAMES[1] | {"edition", *SECONDS})
    assert publish([after["run"]], ranks=True) == [after["run"]]
    lines, published = read_csv(evidence), Published("photos")
    assert published.complete(after["run"], 2) == after
    other = lines[first_edition[1]["run"]]  # whose cells stay, with empty ones beside
    assert other["edition"] == other["test_fast_rsum"] == other["seconds_fast"] == ""
    assert edition_of(published.row(other["run"])) == 1
    assert published.arrays(after["run"])["test_i2t_first"].shape == (10, 10)
    history = read_json(RunStore().path(after["run"]) / "result.json")["history"]
    assert len(history) == real.settings.epochs


def test_without_weights_it_is_trained_again(first_edition, evidence, real, monkeypatch):
    trained = count_trainings(monkeypatch)
    shutil.rmtree(RunStore().folder)
    after = row(real, "anywhere", edition=2)
    assert len(trained) == 1 and after["edition"] == 2
    assert {name: after[name] for name in NAMES[1]} == {
        name: first_edition[0][name] for name in NAMES[1]}
    assert row(real, None)["run"] == after["run"] and row(real, None, edition=2) == after
    publish([after["run"]])
    assert row(real, None) == after


def test_generated_runs_of_the_store_are_evaluated_again_too(store, monkeypatch):
    trained = count_trainings(monkeypatch)
    as_of_edition_1(execute(identify(SMALL)))
    assert "test_fast_rsum" not in sweep([SMALL], workers=0)
    assert "test_fast_rsum" in sweep([SMALL], workers=0, edition=2)
    assert len(trained) == 1 and RunStore().result(identify(SMALL).id).edition == 2


def test_a_run_asked_for_in_both_editions_is_had_in_the_later(first_edition, real):
    frame = sweep([real, real.with_(seed=1), real], workers=0, root="anywhere", edition=[2, 1, 1])
    assert [edition_of(row) for row in frame.to_dict("records")] == [2, 1, 2]


@pytest.mark.parametrize("edition", [0, 3, None, "2"])
def test_an_edition_that_there_is_not_is_refused(store, edition):
    """Asked for a later one, a run would be evaluated again for ever."""
    with pytest.raises(ValueError, match="edition must be one of 1, 2; got"):
        execute(identify(SMALL), edition=edition)
    with pytest.raises(ValueError, match="edition must be one of 1, 2; got"):
        sweep([SMALL], workers=0, edition=[edition])


def test_a_row_must_have_all_of_the_edition_that_it_was_made_in(store, evidence, real):
    """Even where less is asked for: what lost a column may have lost others."""
    made, table = row(real, "anywhere"), Published("photos")
    publish([made["run"]])
    assert edition_of(made) == EDITION and table.complete(made["run"]) == made
    lacking = {made["run"]: made | {"test_multi_rsum": None}}
    table.row = lacking.get
    assert table.complete(made["run"], 1) is None is table.complete(made["run"], 2)
    lacking[made["run"]] = made | {"edition": None}
    assert table.complete(made["run"], 1) and table.complete(made["run"], 2) is None


def test_a_result_must_have_all_of_its_edition(store):
    result = execute(identify(SMALL))
    values = read_json(result.folder / "result.json")
    del values["tables"]["test"]["fast_rsum"]
    write_json(result.folder / "result.json", values)
    seal(result.folder, but=("status.json",), **result.facts)
    assert not is_complete(RunStore().result(result.id), 1)
    assert execute(identify(SMALL)).tables == result.tables


def test_a_run_that_diverged_has_no_edition_to_lack(store, monkeypatch):
    wild = SMALL.with_(**{"settings.learning_rate": 1e30, "settings.clip_norm": None,
                          "settings.optimizer": "sgd"})
    trained = count_trainings(monkeypatch)
    for edition in (1, 2):
        assert execute(identify(wild), edition=edition).status == "diverged"
    assert len(trained) == 1


def test_columns_know_the_edition_they_came_with():
    assert [came_with("flickr8k", name) for name in (
        "test_i2t_ndcg_cider", "dev_t2i_rel10_sentence", "test_fast_bank_rsum", "seconds_multi",
        "test_i2t_hubness")] == [1, 2, 2, 2, 2]
    assert came_with("flickr8k", "dev_fast_rsum") is came_with("scenes", "no_such") is None
