"""Tables that a notebook saved are taken for the runs they were made of, and for no others."""

import pandas as pd
import pytest

from itr_study.files.atomic import write_json
from itr_study.runs.run import weights
from itr_study.studies.arms import ArmRun
from itr_study.studies.kept import kept_table, models_here
from itr_study.studies.looks import COLUMNS, kept_places
from tests.small_runs import SMALL

ROWS = pd.DataFrame({"run": ["a", "b", "c"]})
RUNS = [ArmRun("saf/sum", SMALL), ArmRun("saf/sum", SMALL.with_(seed=1)), ArmRun("dvse", SMALL)]


def save(folder, name, table, runs):
    (folder / "photos").mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / "photos" / f"{name}.csv", index=False)
    write_json(folder / "photos" / f"{name}.json", {"run_ids": runs})


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


def test_where_somebody_watches_their_own_table_serves_too(tmp_path, monkeypatch):
    """After the project's, if that is of other runs."""
    theirs, own = tmp_path / "project", tmp_path / "own"
    monkeypatch.setattr("itr_study.studies.kept.shelves", lambda figures: [theirs, own])
    save(theirs, "09__x", pd.DataFrame({"x": [1]}), ["z"])
    save(own, "09__x", pd.DataFrame({"x": [2]}), ["a"])
    assert kept_table(None, "photos", "09__x", ROWS)["x"].tolist() == [2]
    save(theirs, "09__x", pd.DataFrame({"x": [1]}), ["b"])
    assert kept_table(None, "photos", "09__x", ROWS)["x"].tolist() == [1]


def test_models_are_here_when_all_of_them_are(store):
    assert models_here([]) and not models_here(RUNS[:1])
    weights(SMALL)
    assert models_here(RUNS[:1]) and not models_here(RUNS[:2])


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_places_serve_for_exactly_the_runs_that_are_asked_for(tmp_path, missing):
    labels = [run.label for run in RUNS]
    table = pd.DataFrame(dict.fromkeys(COLUMNS, 1.0) | {
        "arm": ["SAF", "SAF", "DVSE"], "label": labels, "seed": [0, 1, 0], "mass": [1.0, 2.0, 3.0]})
    save(tmp_path, "11_attention_maps__places", table, ["a", "b", "c"])
    kept = kept_places(tmp_path, "photos", ROWS, RUNS)
    assert kept["arm"].tolist() == labels and "label" not in kept
    assert kept["mass"].tolist() == [1.0, 2.0, 3.0]
    assert kept["rest"].isna().all()  # of before it was measured
    save(tmp_path, "11_attention_maps__places", table.assign(rest=[4.0, 5, 6]), ["a", "b", "c"])
    assert kept_places(tmp_path, "photos", ROWS, RUNS)["rest"].tolist() == [4, 5, 6]
    fewer = RUNS[:missing] + RUNS[missing + 1:]
    assert kept_places(tmp_path, "photos", ROWS, fewer) is None
    save(tmp_path, "11_attention_maps__places", table.drop(columns="iou"), ["a", "b", "c"])
    assert kept_places(tmp_path, "photos", ROWS, RUNS) is None  # of before there was this measure
    save(tmp_path, "11_attention_maps__places", table.drop(index=missing), ["a", "b", "c"])
    assert kept_places(tmp_path, "photos", ROWS, RUNS) is None
    assert kept_places(tmp_path, "photos", ROWS[:2], RUNS) is None
