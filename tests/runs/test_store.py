"""The state of a run, as the store tells it."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from itr_study.files.atomic import read_json, write_json
from itr_study.files.sealed import seal
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import execute
from itr_study.lab.runs.store import RunStore
from tests.small_runs import SMALL, count_trainings


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


BAD_STATUS = ('{"state": "done", "reason": "", "pid": 1, "hosu": "vm", "time": ""}', "[]", "null",
              '{"state": "done", "reason": "", "pid": "x", "host": "vm", "time": ""}',
              '{"state": "gone", "reason": "", "pid": 1, "host": "vm", "time": ""}')


@pytest.mark.parametrize("text", BAD_STATUS)
def test_a_damaged_status_does_not_block_a_finished_run(store, text, monkeypatch):
    """It is JSON, but no status: set aside, and the run is read, not trained again."""
    trained = count_trainings(monkeypatch)
    result = execute(identify(SMALL))
    (result.folder / "status.json").write_text(text)
    with pytest.warns(UserWarning, match="status.json holds no status; set aside as status"):
        assert execute(identify(SMALL)).tables == result.tables
    assert len(trained) == 1 and RunStore().status(result.id)["state"] == "done"


def unseal(folder, name):
    """Leave a file out of the manifest, and remove it."""
    manifest = read_json(folder / "manifest.json")
    del manifest["files"][name]
    write_json(folder / "manifest.json", manifest)
    (folder / name).unlink()


def test_a_reader_waits_for_whoever_changes_a_folder(store):
    """What it sees meanwhile is half old and half new: no damage, and nothing to set aside."""
    result, holds, sees = execute(identify(SMALL)), Event(), Event()
    path = result.folder / "result.json"
    whole = path.read_bytes()

    def write():
        with RunStore().lock(result.id):
            path.write_text("{}")
            holds.set()
            sees.wait(10)
            path.write_bytes(whole)

    with ThreadPoolExecutor() as pool, warnings.catch_warnings(action="error"):
        writer = pool.submit(write)
        assert holds.wait(10)
        reader = pool.submit(RunStore().result, result.id)
        with pytest.raises(TimeoutError):
            reader.result(timeout=0.3)
        sees.set()
        writer.result()
        assert reader.result(timeout=10).tables == result.tables


def test_who_holds_the_lock_may_take_it_again(store):
    runs = RunStore()
    with runs.lock("a" * 16), RunStore().lock("a" * 16):
        pass
    with runs.lock("a" * 16):
        pass


def test_a_finished_run_is_read_where_no_lock_can_be_made(store, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")
    result, runs = execute(identify(SMALL)), RunStore()
    monkeypatch.setattr("filelock.FileLock.acquire", refused)
    with runs.lock(result.id):
        assert runs.result(result.id).tables == result.tables
    with pytest.raises(PermissionError), runs.lock("a" * 16):
        pass


FORGED = {
    "no files": lambda folder: write_json(folder / "manifest.json", {"files": {}}),
    "no result": lambda folder: unseal(folder, "result.json"),
    "no config": lambda folder: unseal(folder, "config.json"),
    "a folder": lambda folder: write_json(folder / "manifest.json", {"files": {
        ".": "", "config.json": "", "result.json": ""}}),
    "result without keys": lambda folder: (write_json(folder / "result.json", {}),
                                           seal(folder, but=("status.json",))),
    "result of a list": lambda folder: (write_json(folder / "result.json", []),
                                        seal(folder, but=("status.json",)))}


@pytest.mark.parametrize("forge", FORGED)
def test_a_manifest_that_does_not_hold_a_result_is_set_aside(store, forge):
    result = execute(identify(SMALL))
    FORGED[forge](result.folder)
    with pytest.warns(UserWarning, match="trained again; set aside as"):
        assert RunStore().result(result.id) is None
    assert execute(identify(SMALL)).tables == result.tables


def test_a_damaged_result_is_not_lost_to_an_unfinished_one(store):
    """A kill left what was being written, without its manifest."""
    result = execute(identify(SMALL))
    (result.folder / "result.json").write_text("{")
    (RunStore().folder / ".new" / result.id).mkdir(parents=True)
    with pytest.warns(UserWarning, match="damaged.*trained again; set aside as"):
        assert RunStore().result(result.id) is None
    aside = result.folder.with_name(f"{result.id}.corrupt")
    assert (aside / "weights.safetensors").exists()
