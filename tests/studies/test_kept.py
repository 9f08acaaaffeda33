"""Tables that a notebook saved are taken for the runs they were made of, and for no others."""

from types import MappingProxyType

import pandas as pd
import pytest

from itr_study.files.atomic import write_json
from itr_study.lab.runs.published import Published
from itr_study.lab.runs.run import weights
from itr_study.lab.studies.arms import ArmRun
from itr_study.lab.studies.results import is_published, kept_table, models_here
from itr_study.lab.studies.study import Study
from itr_study.plots.published import NEEDED
from tests.small_runs import SMALL

ROWS = pd.DataFrame({"run": ["a", "b", "c"]})
RUNS = [ArmRun("saf/sum", SMALL), ArmRun("saf/sum", SMALL.with_(seed=1)), ArmRun("dvse", SMALL)]


def save(folder, name, table, runs):
    (folder / "photos").mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / "photos" / f"{name}.csv", index=False)
    write_json(folder / "photos" / f"{name}.json", dict.fromkeys(NEEDED, "") | {"run_ids": runs})


def test_a_table_serves_beside_the_rows_it_was_made_of(tmp_path):
    table = pd.DataFrame({"x": [1.5, 2.0], "seen": ["", "NA"]})
    assert kept_table(tmp_path, "photos", "09__x", ROWS) is None
    save(tmp_path, "09__x", table, ["a", "c"])
    kept = kept_table(tmp_path, "photos", "09__x", ROWS)
    assert kept["x"].tolist() == [1.5, 2.0] and kept["seen"].tolist()[1] == "NA"  # a word
    assert kept_table(tmp_path, "photos", "09__x", ROWS[ROWS.run != "c"]) is None
    assert kept_table(tmp_path, "scenes", "09__x", ROWS) is None
    save(tmp_path, "09__x", table, [])
    assert kept_table(tmp_path, "photos", "09__x", ROWS) is None  # of no runs: of none of these
    (tmp_path / "photos" / "09__x.json").unlink()
    assert kept_table(tmp_path, "photos", "09__x", ROWS) is None  # a kill while it was saved


def test_of_own_and_published_tables_that_of_most_runs_serves(tmp_path, monkeypatch):
    monkeypatch.setattr("itr_study.files.paths.project_root", lambda: tmp_path)
    published, own = tmp_path / "figures", tmp_path / "my" / "figures"
    for runs, own_runs, expected in (
            (["z"], ["a"], 2), (["b"], ["a"], 2), (["a", "b"], ["a"], 1), (["z"], ["y"], None)):
        save(published, "09__x", pd.DataFrame({"x": [1]}), runs)
        save(own, "09__x", pd.DataFrame({"x": [2]}), own_runs)
        kept = kept_table(None, "photos", "09__x", ROWS)
        assert (kept if kept is None else kept["x"].tolist()) == (expected and [expected])


def test_models_are_here_and_rows_published_when_all_of_them_are(store, monkeypatch):
    assert models_here([]) and not models_here(RUNS[:1])
    weights(SMALL)
    assert models_here(RUNS[:1]) and not models_here(RUNS[:2])
    assert is_published([]) and not is_published(RUNS[:1])
    monkeypatch.setattr(Published, "complete", lambda own, run_id: {"run": run_id})
    assert is_published(RUNS)


LINES = pd.DataFrame({"arm": ["saf/sum", "saf/sum", "dvse", "dvse"], "seed": [0, 1, 0, 0],
                      "kind": ["words", "words", "heads", "gradient"],
                      "mass": [1.0, 2.0, 3.0, 4.0]})
TRAINED = pd.DataFrame({"arm": ["saf/sum", "saf/sum", "dvse"], "seed": [0, 1, 0],
                        "run": ["a", "b", "c"]})


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study of photographs; `here` are the runs whose models this machine has, none published."""
    own = Study.__new__(Study)
    vars(own).update(figures=tmp_path, dataset_name="photos", root=None, made=set(), trained=[],
                     notebook="11_attention_maps", here=[], published=[])
    own.train = lambda runs, weights: own.trained.extend(runs)
    monkeypatch.setattr("itr_study.lab.studies.study.models_here", lambda runs, _root: all(
        run in own.here for run in runs))
    monkeypatch.setattr("itr_study.lab.studies.study.is_published", lambda runs, _root: all(
        run in own.published for run in runs))
    return own


def lines(study, runs=RUNS, rows=TRAINED, needs=(), values=MappingProxyType({})):
    """Of the runs that are made the mass is 9; return (arm, seed, mass) of all lines."""
    study.trained, study.made = [], set()
    table = study.of_models("places", rows, runs, lambda making: LINES[
        [any((run.label, run.config.seed) == key for run in making)
         for key in zip(LINES["arm"], LINES["seed"], strict=True)]].assign(mass=9.0), needs, values)
    assert table.index.tolist() == list(range(len(table)))
    assert study.made == ({"places"} if study.trained else set())
    return list(zip(table["arm"], table["seed"], table["mass"], strict=True))


KEPT = [("saf/sum", 0, 1), ("saf/sum", 1, 2), ("dvse", 0, 3), ("dvse", 0, 4)]
MADE = [(*line[:2], 9) for line in KEPT]


def test_lines_that_a_figure_keeps_need_no_model(study):
    assert lines(study) == MADE and study.trained == RUNS
    save(study.figures, "11_attention_maps__places", LINES[::-1], ["a", "b", "c"])
    assert lines(study) == [*KEPT[:2], KEPT[3], KEPT[2]] and not study.trained
    assert lines(study, RUNS[1:]) == [KEPT[1], KEPT[3], KEPT[2]]  # fewer are asked for
    assert lines(study, needs=["kind"])[:2] == KEPT[:2] and lines(study, needs=["iou"]) == MADE
    assert lines(study, values={"kind": ["words", "heads"]}) == KEPT[:3]  # no others
    assert lines(study, values={"kind": ["words", "wins"]}) == MADE  # one was not measured
    assert lines(study, rows=TRAINED[:2]) == MADE[:2]  # kept of other runs, and one has no row
    save(study.figures, "11_attention_maps__places", LINES[:2], ["a", "b"])
    assert lines(study) == [*KEPT[:2], *MADE[2:]] and study.trained == RUNS[2:]


def test_of_a_seed_all_lines_are_kept_or_all_are_made(study):
    """Models of two machines are no pair."""
    save(study.figures, "11_attention_maps__places", LINES, ["a", "b", "c"])
    study.here = RUNS[1:2]
    assert lines(study) == [KEPT[0], MADE[1], *KEPT[2:]] and study.trained == RUNS[1:2]
    study.here = RUNS[:2]  # the other one of seed 0 is elsewhere
    assert lines(study) == [KEPT[0], MADE[1], *KEPT[2:]]
    study.here = RUNS
    assert lines(study) == MADE
    study.published = RUNS  # their rows are, too, and a model trained here again is another one
    assert lines(study) == KEPT and not study.trained
    save(study.figures, "11_attention_maps__places", LINES[:2], ["a", "b"])  # beside a new
    assert lines(study) == [MADE[0], KEPT[1], *MADE[2:]]
    save(study.figures, "11_attention_maps__places", LINES, ["a", "b", "c"])
    study.published = RUNS[:2]  # of seed 0 one row is of this machine
    assert lines(study) == [MADE[0], KEPT[1], *MADE[2:]]
    study.published = []
    study.here = []
    save(study.figures, "11_attention_maps__places", LINES[:2], ["a", "b"])
    assert lines(study, [RUNS[0], RUNS[2]]) == [KEPT[0], *MADE[2:]]
