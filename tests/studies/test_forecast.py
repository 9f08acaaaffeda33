"""The plan counts each run once, and tells the time by rows like it."""

from dataclasses import replace

import pytest

from itr_study.data import DATASETS
from itr_study.evaluation import evaluate
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import execute
from itr_study.lab.runs.table import Table
from itr_study.lab.studies import plans as forecast
from itr_study.lab.studies.arms import ArmRun
from itr_study.lab.studies.plans import expected_minutes, plan_table, planned
from tests.small_notebooks import write_notebook
from tests.small_runs import SMALL, without_asked

PARAMETERS = {"dataset": "scenes", "profile": "smoke"}


@pytest.fixture
def paths(tmp_path, store, monkeypatch):
    """Two notebooks that share a run."""
    seeds = {"00_a": (0, 1), "01_b": (1, 2, 2), "02_c": ()}
    plans = {name: (lambda dataset, profile, chosen=chosen: [
        ArmRun("a", SMALL.with_(seed=s)) for s in chosen])
        for name, chosen in seeds.items() if chosen}
    monkeypatch.setattr(forecast, "PLANS", plans)
    return [write_notebook(tmp_path / f"{name}.ipynb") for name in seeds]


def test_runs_are_counted_once(paths):
    a, b, c = planned(paths, PARAMETERS)
    assert (a.present, a.missing, a.stale) == (0, 2, 0)
    assert (b.present, b.missing) == (2, 1) and (c.present, c.missing) == (0, 0)
    assert a.unknown == 2 and a.hours == 0  # nothing like them was ever run
    execute(identify(SMALL.with_(seed=1)))
    a, b, _ = planned(paths, PARAMETERS)
    assert (a.present, a.missing) == (1, 1) and len(a.runs) == 1
    assert "all" in plan_table([a, b]).splitlines()[-1]
    assert plan_table([a, b]).splitlines()[-1].split()[1:3] == ["3", "2"]
    assert plan_table([a, b]).startswith("Runs: present (here, or counted before), missing, or")


def test_every_parameter_is_planned_with_but_those_that_change_no_run(paths, monkeypatch):
    """`-p k_seeds=100` was planned as the profile's 5."""
    asked = []
    monkeypatch.setattr(forecast, "PLANS", {"00_a": lambda **given: asked.append(given) or []})
    planned(paths[:1], PARAMETERS)
    given = {"data_options": {"skip_bad": True}, "k_seeds": 100}
    planned(paths[:1], PARAMETERS | given | {"data": None, "figures": None, "workers": 1,
                                              "device": "cuda:1"})
    assert asked == [PARAMETERS, PARAMETERS | given | {"data": None}]


def test_a_plan_counts_what_the_parameters_ask_for_and_refuses_what_a_notebook_would(
        tmp_path, store):
    """Those of notebooks that train nothing, too."""
    def plan(name, **given):
        (of_notebook,) = planned([tmp_path / f"{name}.ipynb"], PARAMETERS | given)
        return of_notebook

    given = {"ks": [1], "dims": [200], "settings": ["vsepp+gru"]}
    few, many = (plan("03_topk", k_seeds=seeds, **given).missing for seeds in (1, 4))
    assert many == few + 3 * 3  # of k=1, the sum and the 5th alone
    for name, wrong in (("03_topk", {"ks": [0]}), ("04_relevance", {"pairs": 0}),
                        ("01_data_and_judgements", {"scenes": {"train": 0}})):
        with pytest.raises(ValueError, match=f"{[*wrong][0]}.* must be greater than 0, got 0"):
            plan(name, **wrong)


def publish_nothing_but(monkeypatch, **rows) -> list[str]:
    """Only these rows by data set and run id; the data sets that are looked up."""
    asked = []
    def read(table):
        asked.append(dataset := table.path.parent.name)
        return rows.get(dataset, {})

    monkeypatch.setattr(Table, "read", read)
    monkeypatch.setattr(Table, "row", lambda table, run: read(table).get(run))
    return asked


def row(minutes: float, **changes) -> dict:
    config = SMALL.with_(**changes)
    return {"model": config.model, "images": config.images, "tokens": config.tokens,
            "sentences": config.sentences, "minutes": minutes, "config": config.model_dump_json()}


def test_time_is_told_by_the_rows_most_alike():
    kept = {"a": row(1.0), "b": row(3.0, seed=1), "c": row(2.0, seed=2),
            "d": row(50.0, **{"settings.epochs": 9}), "e": row(70.0) | {"model": "other"}}
    assert expected_minutes(SMALL, kept) == 2.0  # the median of three, epochs and model alike
    assert expected_minutes(SMALL.with_(**{"settings.epochs": 5}), kept) == (2.0 + 3.0) / 2
    assert expected_minutes(SMALL, {"e": kept["e"]}) is None


def test_runs_without_a_measure_are_present_where_it_is_not_asked_for(
        tmp_path, store, monkeypatch):
    """Elsewhere they are stale; with weights in the store that costs no hours."""
    asked = {"00_a": (), "01_b": ("reranked",), "02_c": ()}
    monkeypatch.setattr(forecast, "PLANS", {
        name: lambda dataset, profile, needs=needs: [ArmRun("a", SMALL, needs)]
        for name, needs in asked.items()})
    paths = [write_notebook(tmp_path / f"{name}.ipynb") for name in asked]
    without_asked(execute(identify(SMALL)))
    a, b, c = planned(paths, PARAMETERS)
    assert (b.present, b.missing, b.stale, b.hours, b.unknown) == (0, 0, 1, 0, 0)
    assert (a.present, c.present) == (1, 1)
    execute(identify(SMALL), needs=("reranked",))
    assert [plan.present for plan in planned(paths, PARAMETERS)] == [1, 1, 1]


def test_a_published_row_without_a_measure_is_stale_where_it_is_asked_for(
        tmp_path, store, monkeypatch):
    real = replace(DATASETS["scenes"], generated=False)
    monkeypatch.setitem(DATASETS, "scenes", real)
    run_id = identify(SMALL).id
    columns = {f"{split}_{name}": 1.0 for split in ("train", "dev", "test")
               for name in evaluate.columns("scenes", split, needs=())}
    kept = {run_id: row(6.0) | columns | {"run": run_id, "status": "done", "dataset": "scenes"}}
    publish_nothing_but(monkeypatch, scenes=kept)
    for needs, expected in (((), (1, 0, 0.0)), (("reranked",), (0, 1, 0.1))):
        monkeypatch.setattr(forecast, "PLANS", {
            "00_a": lambda dataset, profile, needs=needs: [ArmRun("a", SMALL, needs)]})
        (plan,) = planned([write_notebook(tmp_path / "00_a.ipynb")], PARAMETERS)
        assert (plan.present, plan.stale, plan.hours) == expected


def test_rows_are_looked_up_in_the_folder_of_the_data_of_a_run(tmp_path, store, monkeypatch):
    """Notebook 12 asks for runs on scenes, whatever data set it looks at."""
    own_size = SMALL.with_(data_options={})
    run_id = identify(own_size).id
    columns = {f"{split}_{name}": 1.0 for split in ("train", "dev", "test")
               for name in evaluate.columns("scenes", split, needs=())}
    row_of = row(6.0) | columns | {"run": run_id, "status": "done", "dataset": "scenes",
                                   "config": own_size.model_dump_json()}
    asked = publish_nothing_but(monkeypatch, scenes={run_id: row_of})
    monkeypatch.setattr(forecast, "PLANS", {"12_a": lambda dataset, profile: [
        ArmRun("a", own_size), ArmRun("a", own_size.with_(seed=1))]})
    (plan,) = planned([write_notebook(tmp_path / "12_a.ipynb")],
                      PARAMETERS | {"dataset": "flickr8k"})
    assert (plan.present, plan.missing, plan.unknown) == (1, 1, 0)
    assert plan.hours == pytest.approx(0.1) and set(asked) == {"flickr8k", "scenes"}


def test_a_row_of_an_older_part_is_stale(paths, monkeypatch, tmp_path):
    """The config is kept under an id that it no longer has."""
    old = row(6.0, seed=0) | {"run": "0" * 16, "status": "done"}
    real = replace(DATASETS["scenes"], generated=False)
    monkeypatch.setitem(DATASETS, "scenes", real)
    publish_nothing_but(monkeypatch, scenes={"0" * 16: old})
    a, *_ = planned(paths, PARAMETERS)
    assert (a.stale, a.missing) == (1, 1)
    assert a.hours == pytest.approx(2 * 6.0 / 60)
