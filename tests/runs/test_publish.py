"""Runs are published whole or not at all, by one after the other."""

import csv
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

import itr_study as itr
from itr_study.evaluation.evaluate import Evaluation
from itr_study.files import atomic, paths
from itr_study.lab.runs import identity
from itr_study.lab.runs.published import Published, arrays, curve, publish, publishable, rows
from itr_study.lab.runs.store import RunStore
from itr_study.lab.runs.table import Table
from itr_study.metrics import Ranks
from itr_study.training.state import History

FACTS = {"minutes": 1.0, "device": "cpu", "commit": "", "software": {}, "seen": [],
         "data": "d", "encoded": "e", "versions": {}}


def finished(config, run_id: str) -> str:
    """The id of a run that the store holds, which nobody trained."""
    ranks = Ranks(np.array([1, 2]), np.array([1, 3]))
    tables = dict.fromkeys(("train", "dev", "test"), Evaluation(
        {"rsum": 1.5, "i2t_r1": 50.0}, ranks, None, None))
    history = History([{"epoch": 1, "loss": 0.5}], 1)
    RunStore().finish(run_id, config.model_dump(mode="json"), history, FACTS, tables,
                      {"w": torch.zeros(1)})
    return run_id


def ids(count: int) -> list[str]:
    return [f"{n:016d}" for n in range(count)]


@pytest.fixture
def three(store, evidence, real):
    return [finished(real.with_(seed=n), run) for n, run in enumerate(ids(3))]


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_lines_are_sorted_columns_only_added_and_old_cells_kept(store, evidence, real):
    publish([finished(real, "b" * 16)])
    path = evidence / "photos" / "runs.csv"
    path.write_text(path.read_text().replace(",1.5,", ",1.50000,"))  # as another version wrote it
    publish([finished(real.with_(**{"settings.learning_rate": 0.25}), "1" * 16)])
    with open(path) as file:
        names, *cells = csv.reader(file)
    assert [line[0] for line in cells] == ["1" * 16, "b" * 16]
    assert names[-1] == "settings.learning_rate"
    assert cells[0][-1] == "0.25" and cells[1][-1] == "" and "1.50000" in cells[1]
    table = Table(path).read()
    assert table["1" * 16]["run"] == "1" * 16 and table["b" * 16]["dev_rsum"] == 1.5
    assert table["b" * 16]["settings.learning_rate"] is None
    assert Published("photos").complete("b" * 16) is None  # its measures are missing


def test_ranks_are_published_where_they_are_asked_for(three, tmp_path, monkeypatch):
    assert publish(three[:2]) == three[:2] and publish([three[2]], ranks=True) == [three[2]]
    monkeypatch.setenv("ITR_STUDY_HOME", str(tmp_path / "another machine"))
    assert arrays(three[2])["test_t2i"].tolist() == [1, 3]
    with pytest.raises(ValueError, match=f"no ranks of run {three[0]}: it is kept without them"
                       f"; train it again: itr-study train {three[0]}"):
        arrays(three[0])


def test_what_is_published_is_told_to_machines_without_the_data(three, evidence):
    assert not (evidence / "photos" / "data.json").exists()
    publish(three)
    (known,) = identity.remembered("photos").values()
    assert (known["data"], known["encoded"]) == ("d", "e")


def test_a_run_that_is_not_finished_here_stops_all(three, evidence):
    with pytest.raises(ValueError, match="run ffffffffffffffff is not finished on this machine"):
        publish([*three, "f" * 16])
    assert not evidence.exists() and publishable("photos") == three and publishable("scenes") == []


def test_many_that_publish_at_once_lose_nothing_and_readers_see_whole_runs(store, evidence, real):
    """Every one opens its own lock, so threads compete as processes do."""
    runs = [finished(real.with_(seed=n), run) for n, run in enumerate(ids(16))]
    ended, seen = threading.Event(), [0]

    def read():
        while not ended.is_set():
            table = Table(evidence / "photos" / "runs.csv").read()
            assert all(len(curve(run)) == 1 for run in table) and len(table) >= seen[-1]
            seen.append(len(table))

    with ThreadPoolExecutor(9) as pool:
        reader = pool.submit(read)
        try:
            published = list(pool.map(lambda run: publish([run]), runs))
        finally:
            ended.set()
        reader.result()
    assert published == [[run] for run in runs] and list(rows("photos")["run"]) == runs


STEPS = ("pack", "manifest", "data", "rows")


@pytest.mark.parametrize("at", range(4), ids=STEPS)
@pytest.mark.parametrize("half", [False, True], ids=["before", "half written"])
def test_a_publisher_that_is_killed_leaves_all_or_nothing(three, evidence, monkeypatch, at, half):
    """Before each file, and while it is written; the next call ends the work."""
    publish(three[:1])
    before = {path: path.read_bytes() for path in evidence.rglob("*") if path.is_file()}
    steps = []

    def write(path, data):
        if len(steps) == at:
            if half:
                path.with_name(f".{path.name}.12345678.tmp").write_bytes(data[:9])
            raise KeyboardInterrupt
        steps.append(path.name)
        atomic_write(path, data)

    atomic_write = atomic.write_atomic
    (evidence / "photos" / "data.json").unlink()  # so that it is written again
    with monkeypatch.context() as patch:
        for where in ("lab.runs.published", "files.atomic", "lab.runs.table"):
            patch.setattr(f"itr_study.{where}.write_atomic", write)
        with pytest.raises(KeyboardInterrupt):
            publish(three[1:])
    assert list(rows("photos")["run"]) == three[:1] and len(curve(three[0])) == 1
    assert all(path.read_bytes() == data for path, data in before.items()
               if path.name not in ("manifest.json", "data.json"))
    assert publish(three[1:]) == three[1:]
    assert list(rows("photos")["run"]) == three and len(curve(three[2])) == 1
    assert len(list((evidence / "photos" / "packs").iterdir())) == 2
    assert not list(evidence.rglob(".*.tmp"))


@pytest.mark.parametrize("name", ["manifest.json", "runs.csv"])
def test_the_first_publisher_of_a_data_set_may_be_killed(three, evidence, monkeypatch, name):
    """Before what it writes there; the rows are not taken for lost."""
    def write(path, data):
        if path.name == name and b"0" in data:
            raise KeyboardInterrupt
        atomic_write(path, data)

    atomic_write = atomic.write_atomic
    with monkeypatch.context() as patch:
        patch.setattr(atomic, "write_atomic", write)
        patch.setattr("itr_study.lab.runs.table.write_atomic", write)
        with pytest.raises(KeyboardInterrupt):
            publish(three)
    assert not (evidence / "photos" / "packs").exists() or Published("photos").table.read() == {}
    assert publish(three) == three and list(rows("photos")["run"]) == three


def test_what_is_published_is_not_written_again(three, evidence, monkeypatch):
    monkeypatch.setattr("itr_study.lab.runs.rows.columns", lambda *_: ["rsum"])
    publish(three)
    before = {path: path.stat().st_mtime_ns for path in evidence.rglob("*")}
    assert publish(three) == []
    assert {path: path.stat().st_mtime_ns for path in evidence.rglob("*")} == before
    assert publish(three[:1], ranks=True) == three[:1]  # its ranks are new, its row stays
    assert publish(three[:1], ranks=True) == [] and arrays(three[0])["test_i2t"].tolist() == [1, 2]


def test_numbers_of_another_machine_do_not_take_the_place_of_published_ones(three, real,
                                                                            monkeypatch):
    monkeypatch.setattr("itr_study.lab.runs.rows.columns", lambda *_: ["rsum"])
    publish(three)
    shutil.rmtree(RunStore().folder)
    finished(real, three[0])
    path = Published("photos").table.path
    path.write_text(path.read_text().replace(",50.0", ",40.0"))
    with pytest.raises(ValueError, match="is published with test i2t_r1 40.00, here it is 50.00"):
        publish(three[:1])


def test_a_checkout_that_cannot_be_written_is_told_and_still_read(three, evidence, monkeypatch):
    publish(three[:1])

    def refused(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(paths, "try_writing", refused)
    with pytest.raises(OSError, match="photos cannot be written: Permission denied. Nothing is "
                       "published; the runs stay in the store. .* ITR_STUDY_EVIDENCE"):
        publish(three)
    assert list(itr.rows("photos")["run"]) == three[:1] and len(curve(three[1])) == 1
