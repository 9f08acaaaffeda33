"""Tables that a notebook saved are taken for the runs they were made of, and for no others."""

import pandas as pd

from itr_study.evaluation.pointing import CONTROLS
from itr_study.files.atomic import write_json
from itr_study.lab.runs.run import weights
from itr_study.lab.studies.arms import ArmRun
from itr_study.lab.studies.nb11_attention import COLUMNS, kept_places, to_look_at, with_kept
from itr_study.lab.studies.results import kept_table, models_here
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


def test_models_are_here_when_all_of_them_are(store):
    assert models_here([]) and not models_here(RUNS[:1])
    weights(SMALL)
    assert models_here(RUNS[:1]) and not models_here(RUNS[:2])


PLACES = pd.DataFrame(dict.fromkeys(COLUMNS, 1.0) | {
    "arm": ["SAF", "SAF", "DVSE", "DVSE"], "label": ["saf/sum", "saf/sum", "dvse", "dvse"],
    "seed": [0, 1, 0, 0], "kind": ["words", "words", "heads", "gradient"],
    "mass": [1.0, 2.0, 3.0, 4.0]})


def test_places_serve_for_the_runs_that_are_asked_for(tmp_path):
    def kept(runs=RUNS, rows=ROWS):
        return kept_places(tmp_path, "photos", rows, runs)

    def of(table):
        return list(zip(table["arm"], table["seed"], table.get("mass", []), strict=True))

    assert kept().empty
    save(tmp_path, "11_attention_maps__places", PLACES, ["a", "b", "c"])
    everything = [("saf/sum", 0, 1), ("saf/sum", 1, 2), ("dvse", 0, 3), ("dvse", 0, 4)]
    assert of(kept()) == everything and "label" not in kept()
    assert kept()[[*CONTROLS]].isna().all(axis=None)  # of before they were measured
    for missing, left in ((0, everything[1:]), (1, [everything[0], *everything[2:]]),
                          (2, everything[:2])):
        assert of(kept(RUNS[:missing] + RUNS[missing + 1:])) == left
    assert kept(rows=ROWS[:2]).empty  # of other runs
    save(tmp_path, "11_attention_maps__places", PLACES.assign(rest=[4.0, 5, 6, 7]), ["a", "b", "c"])
    assert kept()["rest"].tolist() == [4, 5, 6, 7]
    save(tmp_path, "11_attention_maps__places", PLACES.drop(columns="iou"), ["a", "b", "c"])
    assert kept().empty  # of before there was this measure


def test_what_is_not_kept_is_looked_at_and_seeds_that_are_here_too(store):
    """Of a seed all models or none: those of two machines are no pair."""
    kept = PLACES.assign(arm=PLACES["label"])
    assert to_look_at(RUNS, kept) == []
    assert to_look_at(RUNS, kept[1:]) == RUNS[:1] and to_look_at(RUNS, kept.head(0)) == RUNS
    weights(RUNS[1].config)
    assert to_look_at(RUNS, kept) == RUNS[1:2]
    three = [*RUNS[:2], ArmRun("dvse", SMALL.with_(**{"settings.epochs": 1}))]
    weights(RUNS[0].config)  # the other one of its seed is elsewhere
    assert to_look_at(three, kept) == three[1:2]
    assert to_look_at(three, kept[:2]) == three  # not kept: it is made, beside its seed's
    weights(three[2].config)
    assert to_look_at(three, kept) == three


def test_lines_made_now_stand_before_those_kept(store):
    kept = PLACES.assign(arm=PLACES["label"]).drop(columns="label")
    made = kept[1:2].assign(mass=9.0)
    found = with_kept(RUNS, made, kept)
    assert found["mass"].tolist() == [1, 9, 3, 4] and found.index.tolist() == [0, 1, 2, 3]
    assert with_kept(RUNS, pd.DataFrame(), kept)["mass"].tolist() == [1, 2, 3, 4]
    assert with_kept(RUNS, kept[::-1], kept.head(0))["mass"].tolist() == [1, 2, 4, 3]
