"""Kill -9 and a full disk at every point of a save: nothing finished is lost, numbers are equal.

The victim is a fork of this process, so that dozens of points cost a moment each.
"""

import json
import os
import shutil
import signal
import traceback
import warnings

import pytest
import torch

from itr_study.lab.runs import run as run_module
from itr_study.lab.runs.data import encoded_data
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import execute
from itr_study.lab.runs.store import RunStore
from itr_study.training.loop import fit
from itr_study.training.settings import Settings
from itr_study.training.state import save
from tests.posix import posix_only
from tests.small import SmallData, SmallLoss, small_model
from tests.small_runs import SMALL, count_trainings

SETTINGS = Settings(epochs=2, batch_size=16, learning_rate=0.02)
CALLS = (("os", os, "fsync"), ("os", os, "rename"), ("os", os, "replace"),
         ("shutil", shutil, "rmtree"))

resource = pytest.importorskip("resource", reason="limits of POSIX")
pytestmark = posix_only


def points(numbers, *fast):
    """Where it happens; all but `fast` are left to the slow tests."""
    return [n if n in fast else pytest.param(n, marks=pytest.mark.slow) for n in numbers]


def in_a_fork(victim) -> int:
    """Run a function in a fork of this process; its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        try:
            victim()
        except OSError:
            os._exit(3)
        except BaseException:
            traceback.print_exc()
            os._exit(4)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def at_call(module, name, number, action):
    """Let `action` happen instead of the number-th call of a function, in this process."""
    real, left = getattr(module, name), [number]

    def counted(*arguments, **named):
        left[0] -= 1
        if left[0] == 0:
            action()
        return real(*arguments, **named)

    setattr(module, name, counted)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def no_room():
    raise OSError(28, "No space left on device")


def train(folder):
    model = small_model()
    fit(model, SmallLoss(), SmallData(), SETTINGS, seed=3, folder=folder, save_seconds=0)
    return model.state_dict()


@pytest.fixture(scope="module")
def calm():
    """Weights of a training that nobody disturbed."""
    return train(None)


@pytest.mark.parametrize("place", CALLS, ids=lambda place: place[2])
@pytest.mark.parametrize("number", points([1, 2, 3, 9], 2))
def test_a_kill_at_any_point_of_a_checkpoint(tmp_path, calm, place, number):
    _, module, name = place

    def victim():
        at_call(module, name, number, die)
        train(tmp_path)

    assert in_a_fork(victim) == -signal.SIGKILL
    resumed = train(tmp_path)
    assert all(torch.equal(resumed[key], value) for key, value in calm.items())
    assert not list(tmp_path.glob(".*")) and len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("number", points([1, 2, 3, 8], 3))
@pytest.mark.parametrize("place", CALLS[:3], ids=lambda place: place[2])
def test_a_full_disk_at_any_point_of_a_checkpoint(tmp_path, calm, place, number):
    _, module, name = place

    def victim():
        at_call(module, name, number, no_room)
        train(tmp_path)

    assert in_a_fork(victim) == 3
    assert not list(tmp_path.glob(".*"))
    resumed = train(tmp_path)
    assert all(torch.equal(resumed[key], value) for key, value in calm.items())


def test_a_file_that_cannot_grow_is_an_error_that_says_how_much_is_needed(tmp_path):
    """The system refuses in the middle of the write, as a full disk does."""
    def victim():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            save(tmp_path / "one", {"a": torch.zeros(10000)}, {})
        except OSError as error:
            (tmp_path / "message").write_text(str(error))
            raise

    assert in_a_fork(victim) == 3
    assert "cannot save 40,000 bytes" in (tmp_path / "message").read_text()
    assert os.listdir(tmp_path) == ["message"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The tables of SMALL, undisturbed."""
    home = tmp_path_factory.mktemp("calm")
    return execute(identify(SMALL), store=RunStore(home)).tables


@pytest.mark.parametrize("number", points(range(1, 16), 5, 12))
def test_a_kill_at_any_point_of_a_run(store, finished, number):
    """Every file of a run is put in place by os.replace: the status, the sittings, each epoch's
    history, the checkpoint's manifest, and at the end, in a folder beside it, history, config,
    result, weights, ranks, codes, manifest; then the old folder is moved away and the new one in,
    and its status written."""
    def victim():
        at_call(os, "replace", number, die)
        execute(identify(SMALL))

    encoded_data(SMALL)
    assert in_a_fork(victim) == -signal.SIGKILL
    run_id = identify(SMALL).id
    status = RunStore().status(run_id)
    assert status is None or status["state"] == "interrupted"
    assert execute(identify(SMALL)).tables == finished
    assert RunStore().status(run_id)["state"] == "done"
    assert not list((store / "runs").rglob("*.tmp"))


@pytest.mark.parametrize("number", points([2, 3, 5, 7, 9, 10], 7))
def test_a_full_disk_at_any_point_of_a_run(store, finished, number):
    def victim():
        at_call(os, "replace", number, no_room)
        execute(identify(SMALL))

    encoded_data(SMALL)
    assert in_a_fork(victim) == 3
    assert RunStore().status(identify(SMALL).id)["state"] == "failed"
    assert execute(identify(SMALL)).tables == finished
    assert not list((store / "runs").rglob("*.tmp"))


def test_the_counts_above_reach_the_end_of_a_run(store):
    """One call more than a run makes, and the victim lives: the points above are all there are."""
    def victim():
        at_call(os, "replace", 16, die)
        execute(identify(SMALL))

    encoded_data(SMALL)
    assert in_a_fork(victim) == 0


@pytest.mark.parametrize("number", points(range(7, 16), 11))
def test_what_was_trained_is_not_trained_again_after_a_kill_at_its_end(store, number):
    """From the first file of the result on: the times of its epochs stay those that were taken."""
    def victim():
        at_call(os, "replace", number, die)
        execute(identify(SMALL))

    encoded_data(SMALL)
    assert in_a_fork(victim) == -signal.SIGKILL
    paths = [store / "runs" / folder / identify(SMALL).id / "metrics.jsonl"
             for folder in ("", ".new")]  # the second alone is there between the two moves
    lines = next(path for path in paths if path.exists()).read_text().splitlines()
    seconds = [json.loads(line)["seconds"] for line in lines]
    history = execute(identify(SMALL)).history.rows
    assert [row["seconds"] for row in history] == seconds


@pytest.mark.parametrize("action", [die, no_room])
@pytest.mark.parametrize("number", points(range(1, 12), 4))
def test_a_result_outlives_a_stop_while_it_is_evaluated_again(store, monkeypatch, number, action):
    """A kill or a full disk at any point: the weights are those that were trained."""
    run = identify(SMALL)
    first = execute(run)

    def victim():
        run_module.is_complete = lambda *_: False
        at_call(os, "replace", number, action)
        execute(run)

    assert in_a_fork(victim) == (3 if action is no_room else -signal.SIGKILL)
    trained = count_trainings(monkeypatch)
    with warnings.catch_warnings(action="error"):  # nothing is set aside
        again = execute(run)
    assert not trained and again.tables == first.tables
    assert all(torch.equal(again.weights()[name], value) for name, value in first.weights().items())
    assert RunStore().status(run.id)["state"] == "done"
