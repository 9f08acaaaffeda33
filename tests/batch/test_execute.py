"""One notebook: nothing it started survives it, and a good one of before is kept."""

import json

import pytest

from itr_study.batch.execute import FINE, run_notebook
from itr_study.files.atomic import read_json
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


def test_output_is_a_notebook_papermill_did_not_touch_in_place(tmp_path, store):
    """A notebook being executed by another batch is left alone."""
    from filelock import FileLock

    path, output = write_notebook(tmp_path / "nb.ipynb", "1"), tmp_path / "out.ipynb"
    with FileLock(f"{output}.lock"):
        result = run_notebook(path, {}, output)
    assert result.status == "busy" and result.status not in FINE
    assert "another batch is executing it: wait" in result.message
    assert not output.exists() and json.loads(path.read_text())["cells"]
