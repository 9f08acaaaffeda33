"""One notebook: nothing it started survives it, and a good one of before is kept."""

import json

import pytest

from itr_study.files.atomic import read_json
from itr_study.lab.batch import execute
from itr_study.lab.batch.execute import Steps, run_notebook
from tests.posix import posix_only
from tests.small_notebooks import LEAVE_GRANDCHILD, family, write_notebook


@pytest.mark.slow
@posix_only
@pytest.mark.notebooks
def test_a_notebook_that_hangs_is_ended_with_its_grandchildren(tmp_path, store):
    path = write_notebook(tmp_path / "hangs.ipynb", LEAVE_GRANDCHILD, "time.sleep(300)")
    result = run_notebook(path, {}, tmp_path / "out.ipynb", timeout=10)
    assert (result.status, family(store)) == ("timeout", [])
    assert "raise --timeout" in result.message and not (tmp_path / "out.ipynb").exists()
    assert read_json(tmp_path / "out.status.json")["status"] == "timeout"


@pytest.mark.slow
@pytest.mark.notebooks
def test_a_failed_run_keeps_the_good_notebook_of_before(tmp_path, store):
    output = tmp_path / "out{k}" / "nb.ipynb"  # papermill formats braces in paths; we do not
    path = write_notebook(tmp_path / "nb.ipynb", "assert k == 5")
    assert run_notebook(path, {}, output).status == "done"
    before = output.read_bytes()
    again = run_notebook(path, {"k": 6}, output)
    assert again.status == "failed" and output.read_bytes() == before
    assert again.output == output.with_suffix(".partial.ipynb") and again.output.exists()


def test_a_step_is_said_when_it_is_new_and_every_five_minutes(tmp_path, monkeypatch):
    said, now = [], 1000.0
    monkeypatch.setattr(execute.time, "monotonic", lambda: now)
    log = tmp_path / "nb.log"
    with open(log, "w") as told, open(log) as read:
        steps = Steps(read, said.append)

        def write(text):
            told.write(text)
            told.flush()
            steps.look()

        write("10:00:01 Executing Cell 3---\n10:00:31 encoding flickr8k with minilm: 3 of 9, 30 s")
        assert said == []  # the line is not whole
        write(", about 60 s left\n10:00:40 RSUM: 3 of 9 runs\n")
        write("10:01:02 encoding flickr8k with minilm: 7 of 9, 61 s, about 17 s left\n")
        assert said == ["encoding flickr8k with minilm: 3 of 9, 30 s, about 60 s left"]
        write("10:02:02 training: 4 of 80 epochs, 31 s, 1 of 9 runs, loss 0.2\n")
        now += 301
        write("10:07:09 training: 40 of 80 epochs, 332 s, 1 of 9 runs, loss 0.1\n")
    assert [line[:11] for line in said[1:]] == ["training: 4", "training: 4"]


@pytest.mark.notebooks
def test_what_takes_long_in_a_notebook_is_said(tmp_path, store):
    path = write_notebook(tmp_path / "nb.ipynb", "import itr_study.progress as p",
                          "p.SECONDS_BETWEEN_LINES = 0",
                          "for _ in p.progress([1, 2], 'encoding scenes with minilm'): pass",
                          "import time; time.sleep(1)")
    said = []
    assert run_notebook(path, {}, tmp_path / "out.ipynb", say=said.append).status == "done"
    assert said == ["encoding scenes with minilm: 1 of 2, 0 s, about 0 s left"]


def test_output_is_a_notebook_papermill_did_not_touch_in_place(tmp_path, store):
    """A notebook being executed by another batch is left alone."""
    from filelock import FileLock

    path, output = write_notebook(tmp_path / "nb.ipynb", "1"), tmp_path / "out.ipynb"
    with FileLock(f"{output}.lock"):
        result = run_notebook(path, {}, output)
    assert result.status == "busy"
    assert "another batch is executing it: wait" in result.message
    assert not output.exists() and json.loads(path.read_text())["cells"]
