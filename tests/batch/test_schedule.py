"""A batch tells the truth about every notebook, and nothing it started survives it."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from itr_study.files.atomic import read_json, write_json
from itr_study.lab.batch import schedule
from itr_study.lab.batch.declared import Notebook, read_notebook
from itr_study.lab.batch.execute import NotebookResult, run_notebook
from itr_study.lab.batch.schedule import executed_folder, expected_minutes, reproduce, table
from tests.posix import posix_only
from tests.small_notebooks import LEAVE_GRANDCHILD, PARAMETERS, family, write_notebook


def seconds_until_empty(home: Path, limit: float) -> float:
    start = time.monotonic()
    while family(home) and time.monotonic() - start < limit:
        time.sleep(0.1)
    return time.monotonic() - start


@pytest.mark.slow
@posix_only
@pytest.mark.notebooks
def test_every_kind_of_ending_has_its_status(tmp_path, store):
    """The batch goes on after each fault; the good ones around the bad ones are done."""
    cells = {
        "00_good": ["import os, sys", "print(k, sys.executable, os.environ['JUPYTER_DATA_DIR'])"],
        "01_raises": ["raise ValueError('too few negatives')"],
        "02_killed": ["import os, signal", "os.kill(os.getpid(), signal.SIGKILL)", "1"],
        "04_leaves": [LEAVE_GRANDCHILD],
        "05_exits": ["import sys", "sys.exit(0)", "print('never')"],
    }
    paths = [write_notebook(tmp_path / f"{n}.ipynb", *c) for n, c in cells.items()]
    lines = []
    results = reproduce(paths, {"k": 7}, "scenes", workers=2, say=lines.append)
    assert family(store) == []  # grandchildren in sessions of their own included
    assert [r.status for r in results] == ["done", "failed", "kernel-died", "done", "failed"]
    by_name = {r.notebook: r for r in results}
    assert "ValueError: too few negatives" in by_name["01_raises"].message
    assert "stopped by itself" in by_name["05_exits"].message
    for result in results:
        status = read_json(executed_folder("scenes") / f"{result.notebook}.status.json")
        assert status["status"] == result.status
        final = executed_folder("scenes") / f"{result.notebook}.ipynb"
        assert final.exists() == (result.status == "done")
    text = (executed_folder("scenes") / "00_good.ipynb").read_text()
    assert f"7 {sys.executable}" in text and str(tmp_path) not in os.environ.get("IPYTHONDIR", "")
    log = (executed_folder("scenes") / "00_good.log").read_text()
    assert "encryption" not in log.lower()  # the warning is answered, not hidden
    assert any(line.startswith("02_killed: kernel-died") for line in lines)


def test_wrong_parameters_are_refused_before_any_kernel(tmp_path, store):
    good = write_notebook(tmp_path / "00.ipynb", "1")
    other = write_notebook(tmp_path / "01.ipynb", "1", parameters="tau: float = 0.1  # scale")
    with pytest.raises(ValueError) as refused:
        reproduce([good, other], {"k": "7"}, "scenes")
    message = str(refused.value)
    assert "00: k must be a valid integer, got '7'" in message
    assert "01: parameter of 01 must be one of tau; got 'k'" in message
    assert not executed_folder("scenes").exists()
    with pytest.raises(ValueError, match="rate must be a finite number, got nan"):
        run_notebook(good, {"rate": float("nan")}, tmp_path / "out.ipynb")
    assert not (tmp_path / "out.log").exists()


def start_batch(tmp_path: Path, store: Path) -> subprocess.Popen:
    """A batch in a process of its own, once its notebook has written the file `begun`."""
    path = write_notebook(tmp_path / "slow.ipynb", "from pathlib import Path",
                          f"Path({str(tmp_path / 'begun')!r}).touch()", LEAVE_GRANDCHILD,
                          "time.sleep(300)")
    code = ("import sys; from pathlib import Path\n"
            "from itr_study.lab.batch import schedule\n"
            f"results = schedule.reproduce([Path({str(path)!r})], {{}}, 'scenes')\n"
            "print(schedule.table(results)); sys.exit(any(r.status != 'done' "
            "for r in results))")
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "ITR_STUDY_HOME": str(store)})
    deadline = time.monotonic() + 60
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)
    return process


@pytest.mark.slow
@posix_only
@pytest.mark.notebooks
def test_stopping_a_batch_stops_its_notebooks_and_says_so(tmp_path, store):
    process = start_batch(tmp_path, store)
    process.send_signal(signal.SIGTERM)
    told, _ = process.communicate(timeout=30)
    assert process.returncode == 1 and "interrupted" in told
    assert family(store) == []


@pytest.mark.slow
@posix_only
@pytest.mark.notebooks
def test_killing_a_batch_leaves_no_kernel(tmp_path, store):
    process = start_batch(tmp_path, store)
    process.kill()
    process.communicate(timeout=30)
    assert seconds_until_empty(store, 20) < 20


def until(condition, limit: float = 60.0) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.notebooks
def test_a_file_shows_each_start_and_end_at_once(tmp_path, store):
    """The command as `make figures > log` runs it: the second notebook waits until it was seen."""
    go, log = tmp_path / "go", tmp_path / "log"
    own = {"parameters": PARAMETERS + '\ndataset: str = "scenes"  # name of the data'}
    quick = write_notebook(tmp_path / "00_quick.ipynb", "1", minutes=2, **own)
    waits = ("import time; from pathlib import Path",
             f"while not Path({str(go)!r}).exists(): time.sleep(0.1)")
    slow = write_notebook(tmp_path / "01_slow.ipynb", *waits, minutes=4, **own)
    plain = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    with open(log, "wb") as file:
        batch = subprocess.Popen([sys.executable, "-m", "itr_study", "reproduce", str(quick),
                                  str(slow), "--workers", "1"], stdout=file, env=plain)
    try:
        until(lambda: "01_slow: started" in log.read_text() or batch.poll() is not None)
        assert batch.poll() is None
        first, second, third = log.read_text().splitlines()
        assert first == "00_quick: started; about 6 minutes remain"
        assert re.fullmatch(r"00_quick: done, 0\.\d min; about [23] minutes remain", second), second
        assert third.startswith("01_slow: started; about ")
        go.touch()
        assert batch.wait(60) == 0 and "\n01_slow: done, 0." in log.read_text()
    finally:
        batch.kill()


def test_a_notebook_is_expected_to_take_what_it_took_before(tmp_path):
    notebook = read_notebook(write_notebook(tmp_path / "03_topk.ipynb", "1", minutes=6.7))
    quick = {"profile": "quick", "dataset": "scenes"}
    assert expected_minutes(notebook, quick, tmp_path) == 6.7
    assert expected_minutes(notebook, quick | {"profile": "full"}, tmp_path) is None
    assert expected_minutes(notebook, quick | {"dataset": "flickr8k"}, tmp_path) is None
    for status, minutes in (("failed", 6.7), ("done", 12.5)):
        write_json(tmp_path / "03_topk.status.json",
                   {"status": status, "minutes": 12.5, "parameters": {"profile": "quick"}})
        assert expected_minutes(notebook, quick, tmp_path) == minutes
    assert expected_minutes(notebook, quick | {"profile": "full"}, tmp_path) is None
    for damaged in ("{", "[]", "null", '{"status": "done"}', '{"status": "done", "minutes": NaN,'
                    ' "parameters": {"profile": "quick"}}'):
        (tmp_path / "03_topk.status.json").write_text(damaged)
        assert expected_minutes(notebook, quick, tmp_path) == 6.7


@pytest.mark.slow
@pytest.mark.notebooks
def test_notebooks_wait_for_those_they_come_after(tmp_path, store):
    record = tmp_path / "order"
    note = "open({!r}, 'a').write({!r} + '\\n')"
    last = write_notebook(tmp_path / "00_claims.ipynb", note.format(str(record), "claims"),
                          after="all")
    second = write_notebook(tmp_path / "01_b.ipynb", note.format(str(record), "b"), after=["02_a"])
    first = write_notebook(tmp_path / "02_a.ipynb", note.format(str(record), "a"))
    results = reproduce([last, second, first], {}, "scenes", workers=3)
    assert [r.notebook for r in results] == ["00_claims", "01_b", "02_a"]
    assert record.read_text().split() == ["a", "b", "claims"]


@pytest.mark.parametrize(("cores", "given", "expected"), [
    (2, {}, 0), (4, {}, None), (2, {"workers": 3}, 3)])
def test_notebooks_that_fill_the_cores_train_their_runs_themselves(tmp_path, store, monkeypatch,
                                                                   cores, given, expected):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    passed = {}

    def run_notebook(path, parameters, *rest):
        passed[path.stem] = parameters
        return NotebookResult(path.stem, "done", 0.0)

    monkeypatch.setattr(schedule, "run_notebook", run_notebook)
    trains = write_notebook(tmp_path / "00.ipynb", "1",
                            parameters="workers: int = 2  # processes")
    reproduce([trains], given, "scenes", workers=2)
    reproduce([write_notebook(tmp_path / "01.ipynb", "1")], {}, "scenes", workers=2)
    assert passed == {"00": {} if expected is None else {"workers": expected}, "01": {}}
    reproduce([trains], {}, "flickr8k", workers=2)  # its runs are large: a process each
    assert passed["00"] == {}


def started(workers: int, stop_after: int = 99, **after) -> tuple[list[str], dict[str, str]]:
    """Names in the order of their start, and the status of each, where all succeed at once."""
    def run(notebook, stop):
        names.append(notebook.name)
        if len(names) == stop_after:
            stop.set()
        return NotebookResult(notebook.name, "done", 0.0)

    names: list[str] = []
    notebooks = [Notebook(Path(f"{name}.ipynb"), {}, after=given) for name, given in after.items()]
    results = schedule._schedule(notebooks, run, workers, threading.Event())
    return names, {name: result.status for name, result in results.items()}


def test_notebooks_start_in_reading_order():
    assert started(1, a=(), b=("a",), c=("c",), d="all", e="all")[0] == ["a", "b", "c", "d", "e"]
    names, statuses = started(2, a="all", b=("c",), c=("elsewhere",))
    assert names == ["c", "b", "a"] and set(statuses.values()) == {"done"}


def test_notebooks_not_started_when_a_batch_is_stopped_say_so():
    names, statuses = started(1, stop_after=2, a=(), b=(), c=(), d=("c",))
    assert names == ["a", "b"]
    assert statuses == {"a": "done", "b": "done", "c": "interrupted", "d": "interrupted"}


def test_notebooks_that_wait_for_each_other_are_refused_before_any_starts():
    with pytest.raises(ValueError, match="wait for each other: (b <- c <- b|c <- b <- c); mend"):
        started(1, a=(), b=("c",), c=("b",))
    with pytest.raises(ValueError, match="wait for each other"):
        started(1, a="all", b=("a",))


def test_the_table_counts_and_names_reasons():
    results = [NotebookResult("00_start", "done", 0.5), NotebookResult("03_topk", "failed", 2, "x")]
    assert table(results).splitlines()[-2:] == ["03_topk   failed           2.0  x",
                                                "1 done, 1 failed"]
