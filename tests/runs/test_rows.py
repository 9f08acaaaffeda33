import csv
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from itr_study.data import DATASETS
from itr_study.evaluation import evaluate, measures
from itr_study.losses import LOSSES
from itr_study.runs import rows
from itr_study.runs.config import RunConfig
from itr_study.runs.identity import Run, identify
from itr_study.runs.rows import Rows
from itr_study.runs.run import execute, row
from itr_study.runs.store import RunResult
from itr_study.runs.table import Table
from itr_study.training.state import History
from tests.small_runs import SMALL, count_trainings

FIGURES = Path(__file__).resolve().parents[2] / "figures"


def test_a_committed_row_serves_without_data_and_without_training(store, tmp_path, monkeypatch,
                                                                  real):
    trained = count_trainings(monkeypatch)
    first = row(real, root="anywhere", figures=tmp_path)
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "another machine"))
    assert row(real, root=None, figures=tmp_path) == first
    assert row(real, root="anywhere", figures=tmp_path) == first
    assert len(trained) == 1 and first["status"] == "done" and first["test_rsum"] > 0
    with pytest.raises(ValueError, match="no data here"):
        row(real.with_(images="lite0:pooled:one"), root=None, figures=tmp_path)


def test_a_row_holds_config_metrics_cost_and_versions(store, tmp_path, real):
    values = row(real.with_(**{"objective.0.arguments.k": 2}), "anywhere", tmp_path)
    assert RunConfig.model_validate_json(values["config"]).objective[0].arguments == {"k": 2}
    assert values["objective.0.arguments.k"] == 2 and values["model_arguments.size"] == 8
    for split in ("dev", "test"):
        assert {f"{split}_{name}" for name in evaluate.columns("photos", split)} <= set(values)
    assert (values["epochs"], values["seed"], values["model"]) == (2, 0, "two_branch")
    assert values["minutes"] >= 0 and '"loss:topk":1' in values["versions"]
    folder = tmp_path / "photos"
    curve = pd.read_csv(folder / "curves" / f"{values['run']}.csv")
    assert list(curve["epoch"]) == [1, 2] and "dev_rsum" in curve
    with np.load(folder / "ranks" / f"{values['run']}.npz", allow_pickle=False) as ranks:
        assert values["test_t2i_r10"] == pytest.approx(100 * (ranks["test_t2i"] <= 10).mean())
    assert Rows(folder).frame()["run"].tolist() == [values["run"]]


def test_a_part_of_generated_data_commits_nothing(store, tmp_path):
    assert SMALL.data_options and row(SMALL, figures=tmp_path)["status"] == "done"
    assert list(tmp_path.iterdir()) == [store]


def test_generated_data_at_its_own_size_commits_its_row(store, tmp_path, monkeypatch):
    def load(root=None, *, train=24, dev=10, test=10):
        return replace(DATASETS["scenes"].load(train=train, dev=dev, test=test), name="drawn")

    monkeypatch.setitem(DATASETS, "drawn", replace(DATASETS["scenes"], name="drawn", load=load))
    own_size = SMALL.with_(dataset="drawn", data_options={})
    trained = count_trainings(monkeypatch)
    first = row(own_size, figures=tmp_path)
    assert Rows(tmp_path / "drawn").frame()["run"].tolist() == [first["run"]]
    assert not (tmp_path / "drawn" / "data.json").exists()  # this data is there on any machine
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "another machine"))
    assert row(own_size, figures=tmp_path) == first and len(trained) == 1
    row(own_size.with_(data_options={"train": 20}), figures=tmp_path)
    assert len(Rows(tmp_path / "drawn").frame()) == 1


def test_a_new_version_makes_the_row_stale(store, tmp_path, monkeypatch, real):
    trained = count_trainings(monkeypatch)
    old = row(real, "anywhere", tmp_path)
    monkeypatch.setattr(LOSSES["topk"], "version", 99)
    new = row(real, "anywhere", tmp_path)
    assert old["run"] != new["run"] and len(trained) == 2
    assert set(Rows(tmp_path / "photos").read()) == {old["run"], new["run"]}


def test_a_row_without_a_measure_is_incomplete(store, tmp_path, monkeypatch, real):
    before = row(real, "anywhere", tmp_path)
    measure = measures.Measure(lambda dataset, split: ("i2t_new",),
                               lambda scored: {"i2t_new": 50.0})
    monkeypatch.setitem(measures.MEASURES, "new", measure)
    assert Rows(tmp_path / "photos").complete(before["run"]) is None
    # the store's result has no such metric either: it is evaluated again
    assert row(real, "anywhere", tmp_path)["test_i2t_new"] == 50.0


def fake(config, run_id, folder):
    result = RunResult(run_id, "done", "", folder, {}, {"dev": {"rsum": 1.5}},
                       History([{"epoch": 1, "loss": 0.5}], 1),
                       {"minutes": 1.0, "device": "cpu", "commit": "", "software": {}, "seen": []})
    return rows.make_row(Run(config, run_id, "d", "e", {}), result), result


def test_lines_are_sorted_columns_only_added_and_old_cells_kept(store, tmp_path):
    table = Rows(tmp_path / "photos")
    table.add(*fake(SMALL, "b" * 16, folder=tmp_path))
    text = (tmp_path / "photos" / "runs.csv").read_text()
    text = text.replace(",1.5,", ",1.50000,")  # written otherwise by another version
    (tmp_path / "photos" / "runs.csv").write_text(text)
    table.add(*fake(SMALL.with_(**{"settings.learning_rate": 0.25}), "1" * 16, folder=tmp_path))
    with open(tmp_path / "photos" / "runs.csv") as file:
        names, *lines = csv.reader(file)
    assert [line[0] for line in lines] == ["1" * 16, "b" * 16]
    assert names[-1] == "settings.learning_rate"
    assert lines[0][-1] == "0.25" and lines[1][-1] == "" and "1.50000" in lines[1]
    lines = table.read()
    assert lines["1" * 16]["run"] == "1" * 16 and lines["b" * 16]["dev_rsum"] == 1.5
    assert lines["b" * 16]["settings.learning_rate"] is None
    assert table.complete("b" * 16) is None  # its measures are missing


def test_many_that_append_at_once_lose_nothing(store, tmp_path):
    """Every append opens its own lock, so threads compete as processes do."""
    def append(run_id):
        Rows(tmp_path).add(*fake(SMALL, run_id, folder=tmp_path))

    run_ids = [f"{n:016d}" for n in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, run_ids))
    assert list(Rows(tmp_path).read()) == run_ids


def lines(path):
    return path.read_text().splitlines()


def set_of_three(tmp_path):
    """A table with curves and ranks of three runs, and the lines of its file."""
    table = Rows(tmp_path)
    for run_id in ("a" * 16, "b" * 16, "c" * 16):
        table.add(*fake(SMALL, run_id, folder=tmp_path))
        (tmp_path / "ranks").mkdir(exist_ok=True)
        (tmp_path / "ranks" / f"{run_id}.npz").write_bytes(b"ranks")
    return table, lines(table.table.path)


def test_a_row_that_is_set_aside_keeps_its_cells_and_loses_curve_and_ranks(store, tmp_path):
    table, (head, a, b, c) = set_of_three(tmp_path)
    table.set_aside(["b" * 16])
    assert lines(table.table.path) == [head, a, c] and lines(table.aside.path) == [head, b]
    assert sorted(table.read()) == ["a" * 16, "c" * 16]
    assert sorted(table.all()) == ["a" * 16, "b" * 16, "c" * 16]
    for folder in ("curves", "ranks"):
        left = {path.stem for path in (tmp_path / folder).iterdir()}
        assert left == {"a" * 16, "c" * 16}
    table.set_aside(["a" * 16])  # a second time: those before stay
    assert lines(table.aside.path) == [head, a, b] and lines(table.table.path) == [head, c]


def test_a_row_set_aside_still_serves_its_run(store, tmp_path, monkeypatch, real):
    trained = count_trainings(monkeypatch)
    first, table = row(real, "anywhere", tmp_path), Rows(tmp_path / "photos")
    table.set_aside([first["run"]])
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "another machine"))
    assert table.read() == {} and row(real, None, tmp_path) == first and len(trained) == 1


def test_a_row_that_is_added_again_is_no_longer_aside(store, tmp_path):
    table, before = set_of_three(tmp_path)
    table.set_aside(["b" * 16, "c" * 16])
    table.add(*fake(SMALL, "b" * 16, folder=tmp_path))
    assert lines(table.table.path) == before[:3] and lines(table.aside.path) == before[::3]


@pytest.mark.parametrize("killed_at", [1, 2, 3])
def test_a_kill_while_rows_are_set_aside_loses_none(store, tmp_path, monkeypatch, killed_at):
    """After the first file, after both, after the first deletion; the next call ends the work."""
    table, (head, a, b, c) = set_of_three(tmp_path)
    steps = []

    def step(real):
        def call(*arguments, **named):
            if len(steps) == killed_at:
                raise KeyboardInterrupt
            steps.append(real)
            return real(*arguments, **named)
        return call

    with monkeypatch.context() as patch:
        patch.setattr(Table, "write", step(Table.write))
        patch.setattr(Path, "unlink", step(Path.unlink))
        with pytest.raises(KeyboardInterrupt):
            table.set_aside(["b" * 16])
    assert sorted(table.all()) == ["a" * 16, "b" * 16, "c" * 16]
    table.set_aside(["b" * 16] if "b" * 16 in table.read() else [])
    assert lines(table.table.path) == [head, a, c] and lines(table.aside.path) == [head, b]
    assert not list(tmp_path.glob(f"*/{'b' * 16}.*"))


def test_execute_and_row_agree(store, tmp_path):
    result = execute(identify(SMALL))
    assert row(SMALL, figures=tmp_path)["test_rsum"] == result.tables["test"]["rsum"]


@pytest.mark.evidence
@pytest.mark.parametrize("folder", sorted(path.parent for path in FIGURES.glob("*/runs.csv")),
                         ids=lambda folder: folder.name)
def test_no_committed_row_has_the_weights_of_its_warm_up(folder):
    """Those of the sum, say: they would speak for a loss that has not made them."""
    for kept in Rows(folder).all().values():
        settings = RunConfig.model_validate_json(kept["config"]).settings
        if kept["status"] == "done" and settings.warmup_epochs < kept["epochs"]:
            assert kept["best_epoch"] > settings.warmup_epochs, kept["run"]
