import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from itr_study.data.batches import InputSpec
from itr_study.files.atomic import read_json
from itr_study.files.sealed import load_weights
from itr_study.lab.runs import run
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.data import encoded_data
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import execute, weights
from itr_study.lab.runs.store import RunStore
from itr_study.lab.runs.sweeps import sweep
from itr_study.models import VSEPP, TwoBranch
from itr_study.training import loop
from itr_study.training.interrupts import OutOfMemory
from itr_study.training.loop import Diverged
from itr_study.training.state import History
from tests.small_runs import SMALL, count_trainings


def test_a_run_writes_what_it_promises_and_is_not_trained_twice(store, monkeypatch):
    trained = count_trainings(monkeypatch)
    result = execute(identify(SMALL))
    assert sorted(os.listdir(result.folder)) == [
        "config.json", "manifest.json", "metrics.jsonl", "ranks.npz", "result.json",
        "status.json", "test.safetensors", "weights.safetensors"]
    assert result.folder == store / "runs" / result.id
    assert RunStore().status(result.id)["state"] == result.status == "done"
    lines = (result.folder / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == result.history.rows and len(lines) == 2
    assert RunConfig.model_validate(read_json(result.folder / "config.json")) == SMALL
    ranks = result.arrays()
    assert result.tables["test"]["i2t_r5"] == pytest.approx(100 * (ranks["test_i2t"] <= 5).mean())
    assert result.history.rows[result.history.best_epoch - 1]["dev_rsum"] == (
        result.tables["dev"]["rsum"])
    codes = load_weights(result.folder / "test.safetensors")
    assert codes["images"].shape[0] == len(ranks["test_i2t"])
    assert result.facts["software"]["torch"] == torch.__version__
    again = execute(identify(SMALL))
    assert len(trained) == 1 and again.tables == result.tables


def test_weights_are_those_of_the_best_epoch(store, monkeypatch):
    trained = count_trainings(monkeypatch)
    model = weights(SMALL)
    data = encoded_data(SMALL)
    dev = run.evaluate(model, data.splits["dev"], measures_of="scenes")
    test = run.evaluate(model, data.splits["test"], measures_of="scenes", bank=dev)
    assert {"dev": dev.table, "test": test.table}.items() <= execute(
        identify(SMALL)).tables.items()
    assert not model.training and len(trained) == 1


@pytest.mark.parametrize("name", ["weights.safetensors", "result.json", "config.json",
                                  "manifest.json"])
def test_a_damaged_finished_run_is_set_aside_and_trained_again(store, name):
    result = execute(identify(SMALL))
    path = result.folder / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.warns(UserWarning, match=f"run {result.id}: .*; it is trained again; set aside"):
        again = execute(identify(SMALL))
    assert again.tables == result.tables
    assert (store / "runs" / f"{result.id}.corrupt").is_dir()


def test_a_run_that_diverges_says_so_and_stays_so(store, monkeypatch):
    wild = SMALL.with_(**{"settings.learning_rate": 1e30, "settings.clip_norm": None,
                          "settings.optimizer": "sgd"})
    trained = count_trainings(monkeypatch)
    result = execute(identify(wild))
    assert result.status == "diverged" and "is not finite" in result.reason
    assert "texts" in result.reason and result.tables == {}
    assert execute(identify(wild)).reason == result.reason and len(trained) == 1
    with pytest.raises(ValueError, match="has no weights: the .* is not finite"):
        weights(wild)


@pytest.mark.parametrize("error,kind,state", [
    (torch.OutOfMemoryError("CUDA out of memory"), OutOfMemory, "oom"),
    (MemoryError(), OutOfMemory, "oom"),
    (KeyboardInterrupt(), KeyboardInterrupt, "interrupted"),
    (ZeroDivisionError("by zero"), ZeroDivisionError, "failed"),
])
def test_a_failure_is_noted_and_the_next_call_tries_again(store, monkeypatch, error, kind, state):
    def fail(*arguments, **named):
        raise error

    monkeypatch.setattr(run, "fit", fail)
    with pytest.raises(kind):
        execute(identify(SMALL))
    status = RunStore().status(identify(SMALL).id)
    assert status["state"] == state and type(error).__name__ in (
        status["reason"].replace("OutOfMemory:", "OutOfMemoryError:MemoryError"))
    monkeypatch.undo()
    monkeypatch.setenv("ITR_STUDY_HOME", str(store))
    assert execute(identify(SMALL)).status == "done"


def test_a_full_disk_is_the_error_even_if_the_status_cannot_be_written(store, monkeypatch):
    real = RunStore.set_status

    def full(self, run_id, state, reason=""):
        if state == "failed":
            raise OSError(28, "No space left on device", "status.json")
        real(self, run_id, state, reason)

    def no_room(*arguments, **named):
        raise OSError(28, "No space left on device", "checkpoint")

    monkeypatch.setattr(RunStore, "set_status", full)
    monkeypatch.setattr(run, "fit", no_room)
    with pytest.raises(OSError, match="checkpoint") as caught:
        execute(identify(SMALL))
    assert "status of run" in caught.value.__notes__[0]


def test_diverged_carries_the_epochs_before():
    error = Diverged("no", loop.History([{"epoch": 1}], 1))
    assert error.history.rows == [{"epoch": 1}]


def test_the_seed_sets_initialisation():
    inputs = encoded_data(SMALL).inputs
    one, same, other = (run.build_model(SMALL.with_(seed=s), inputs) for s in (1, 1, 2))
    assert isinstance(one, TwoBranch)
    left, right, third = (m.image[0].weight.detach().numpy() for m in (one, same, other))
    assert np.array_equal(left, right) and not np.array_equal(left, third)


WILD = SMALL.with_(**{"settings.optimizer": "sgd", "settings.learning_rate": 1e12})


def test_a_training_that_taught_nothing_says_so(store, capsys):
    """All its scores are the same: done, but its reason and stderr say what that is worth."""
    result = execute(identify(WILD))
    assert result.status == "done" and result.history.rows[-1]["score_std"] < 0.02
    assert result.reason.startswith("collapsed: in the last epoch the scores spread by 0, at")
    frame = sweep([WILD.with_(seed=1), SMALL], workers=0)
    assert frame["reason"].str.startswith("collapsed").tolist() == [True, False]
    said = capsys.readouterr().err
    assert f"run {frame['run'][0]} (two_branch, seed 1): done: collapsed" in said
    assert frame["run"][1] not in said


def test_a_loss_that_is_always_0_is_told():
    history = History([{"epoch": 1, "loss": 0.0, "score_std": 0.3}], 1)
    assert "the loss was 0 in every step" in history.doubt()
    history.rows.append({"epoch": 2, "loss": 0.1, "score_std": 0.3})
    assert history.doubt() == "" and History().doubt() == ""


@pytest.mark.parametrize("arguments", [{"size": -5}, {"size": 3.7}, {"hidden": 1}, {"hidden": "a"},
                                       {"text_layers": True}])
def test_sizes_of_a_model_are_whole_numbers(store, arguments):
    (name,) = arguments
    changed = SMALL.with_(**{f"model_arguments.{name}": value for name, value in arguments.items()})
    with pytest.raises(ValueError, match=f"{name} must be an integer >= "):
        execute(identify(changed))


def test_sizes_of_words_are_whole_numbers():
    for arguments in ({"word_size": -1}, {"size": 2.5}):
        with pytest.raises(ValueError, match="must be an integer >= 1"):
            VSEPP(InputSpec(region_size=4, vocabulary=9), **arguments)


def test_who_waits_for_another_training_is_told_for_whom(store, capsys):
    """Two processes on one run: the second said nothing until the first had ended."""
    run_id = identify(SMALL).id
    runs = RunStore()
    with ThreadPoolExecutor(1) as pool, runs.lock(run_id):
        runs.set_status(run_id, "running")
        second = pool.submit(execute, identify(SMALL))
        end = time.monotonic() + 30
        while not (said := capsys.readouterr().err):
            assert time.monotonic() < end, "nothing was said"
            time.sleep(0.02)
    assert f"run {run_id}: waiting for process {os.getpid()} on " in said
    assert second.result().status == "done"
