"""The state of a run, as the store tells it."""

import pytest

from itr_study.files.atomic import read_json, write_json
from itr_study.runs.store import RunStore


def test_a_running_status_of_a_dead_process_means_interrupted(store):
    runs = RunStore()
    runs.set_status("a" * 16, "running")
    assert runs.status("a" * 16)["state"] == "running"
    path = runs.path("a" * 16) / "status.json"
    write_json(path, read_json(path) | {"pid": 2 ** 22 + 5})
    assert runs.status("a" * 16)["state"] == "interrupted"
    assert runs.status("b" * 16) is None
    path.write_text('{"state": "run')
    with pytest.warns(UserWarning, match="is not valid JSON.*set aside as status.json.corrupt"):
        assert runs.status("a" * 16) is None
