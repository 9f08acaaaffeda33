"""Runs that differ in their objective share their warm-up, and no number tells."""

import dataclasses
import os
import shutil
import threading
from unittest.mock import Mock

import pytest
from filelock import FileLock

from itr_study.evaluation import evaluate
from itr_study.lab.runs import run as module
from itr_study.lab.runs import store as warmups
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import execute, warmup_key
from itr_study.lab.runs.store import RunStore, WarmUps
from itr_study.losses import LOSSES
from itr_study.models import TwoBranch
from itr_study.relevance import RELEVANCE
from itr_study.training import loop
from itr_study.training.state import Checkpoints, TrainingState
from tests.small_runs import SMALL

WARM = SMALL.with_(**{"settings.epochs": 3, "settings.warmup_epochs": 2,
                      "settings.precision": "bfloat16", "model_arguments.dropout": 0.2,
                      "warmup_objective": [{"loss": "triplet_sum"}]})
OTHER = WARM.with_(objective=[{"loss": "triplet_hardest"}])
SUM = WARM.with_(objective=[{"loss": "triplet_sum"}])
COSINES = {"labels": "sentence", "label_arguments": {"vectors": "glove-mean", "scale": "cosine"}}
GRADED = WARM.with_(objective=[{"loss": "kendall"} | COSINES])
HERE = {"instructions": "avx2", "commit": "0123"}


@pytest.fixture(autouse=True)
def committed(monkeypatch):
    """As in a checkout without changes, whatever this one has."""
    monkeypatch.setattr("itr_study.lab.runs.run.git_commit", lambda: HERE["commit"])


@pytest.fixture
def epochs(monkeypatch) -> list[int]:
    """Grows by the number of every epoch that is trained."""
    trained, end = [], TrainingState.end_epoch

    def end_epoch(self, table):
        trained.append(self.epoch + 1)
        end(self, table)

    monkeypatch.setattr(TrainingState, "end_epoch", end_epoch)
    return trained


def run(config, store=None, **how):
    return execute(identify(config), store=store, **how)


def numbers(result) -> tuple:
    """All that a run gives but how long it took."""
    return result.tables, [{name: value for name, value in row.items() if name != "seconds"}
                           for row in result.history.rows], result.history.best_epoch


def kept() -> list:
    """The warm-ups in the store, by name."""
    folder = RunStore().path("warmups")
    return sorted(path for path in folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("second", [OTHER, GRADED, SUM])
def test_a_shared_warm_up_gives_the_bits_of_one_s_own(store, tmp_path, epochs, second):
    first = run(WARM, save_seconds=0)  # which has older checkpoints, too
    shared = run(second)
    assert epochs == [1, 2, 3, 3]
    own = run(second, RunStore(tmp_path / "elsewhere"))
    assert numbers(shared) == numbers(own) and numbers(shared) != numbers(first)
    assert all((shared.weights()[name] == tensor).all() for name, tensor in own.weights().items())
    assert [row["seconds"] for row in shared.history.rows[:2]] == [
        row["seconds"] for row in first.history.rows[:2]]


@pytest.mark.parametrize("change", [
    {"seed": 1}, {"settings.learning_rate": 1e-3}, {"settings.epochs": 4}, {"settings.average": 2},
    {"settings.warmup_epochs": 1}, {"model_arguments.hidden": 8}, {"data_options.train": 25},
    {"sentences": "minilm"}, {"warmup_objective": [{"loss": "topk"}]}])
def test_what_a_warm_up_depends_on(change):
    keys = [warmup_key(identify(config), HERE) for config in (WARM, OTHER, OTHER.with_(**change))]
    assert keys[0] == keys[1] != keys[2] and len(keys[2]) == 16


def test_where_the_data_and_who_computes_count():
    one = identify(OTHER)
    keys = [warmup_key(one, HERE), warmup_key(dataclasses.replace(one, data="x"), HERE),
            warmup_key(dataclasses.replace(one, encoded="x"), HERE),
            *(warmup_key(one, HERE | {name: "x"}) for name in HERE)]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("part, counts", [
    (LOSSES["triplet_hardest"], False), (LOSSES["triplet_sum"], True), (TwoBranch, True)])
def test_versions_of_its_own_parts_count(monkeypatch, part, counts):
    before = warmup_key(identify(OTHER), HERE)
    monkeypatch.setattr(part, "version", 99)
    assert (warmup_key(identify(OTHER), HERE) != before) == counts


def test_versions_of_loop_evaluation_and_labels_count(monkeypatch):
    graded = OTHER.with_(warmup_objective=[{"loss": "kendall"} | COSINES])
    keys = [warmup_key(identify(graded), HERE)]
    for part, name in ((loop, "VERSION"), (evaluate, "VERSION"),
                       (RELEVANCE["sentence"], "version")):
        monkeypatch.setattr(part, name, 99)
        keys.append(warmup_key(identify(graded), HERE))
    assert len(set(keys)) == 4


def test_without_a_warm_up_nothing_is_kept(store):
    run(SMALL)
    assert warmup_key(identify(SMALL), HERE) is None and not kept()


@pytest.mark.parametrize("commit", ["0123+", "0123+ + 4567", "0123 + 4567+"])
def test_of_code_that_was_never_committed_none_is_kept(store, monkeypatch, epochs, commit):
    """Two versions of it have one name."""
    monkeypatch.setattr("itr_study.lab.runs.run.git_commit", lambda: commit)
    run(WARM)
    run(OTHER)
    assert epochs == 2 * [1, 2, 3] and not kept()


def test_one_of_other_software_is_left_alone(store, monkeypatch, epochs):
    """So that a row states one machine and one software, and can be held to its bits."""
    run(WARM)
    monkeypatch.setattr(module, "instructions", lambda: "amx")
    assert run(OTHER).facts["instructions"] == "amx"
    assert epochs == 2 * [1, 2, 3] and len(kept()) == 2


def cut(folder):
    state = next(folder.glob("*/state.safetensors"))
    state.write_bytes(state.read_bytes()[:-1] + b"x")


def of_another_model(folder):
    end = next(folder.iterdir())
    tensors, values = warmups.load(end)
    shutil.rmtree(end)
    Checkpoints(folder).save(end.name, tensors | {"model.more": tensors["random.cpu"]}, values)


@pytest.mark.parametrize("harm, told", [(cut, "checksum"), (of_another_model, "another model")])
def test_one_that_is_no_use_is_set_aside_and_trained_again(store, tmp_path, epochs, harm, told):
    run(WARM)
    harm(kept()[0])
    with pytest.warns(UserWarning, match=f"{told}.*the warm-up is trained again"):
        second = run(OTHER)
    run(GRADED)  # it is kept again
    assert epochs == [1, 2, 3, 1, 2, 3, 3]
    assert numbers(second) == numbers(run(OTHER, RunStore(tmp_path / "elsewhere")))


def test_an_empty_one_is_made_anew(store, epochs):
    run(WARM)
    (end,) = kept()[0].iterdir()
    end.rename(end.with_name(f".{end.name}.1234.tmp"))  # as a process leaves it that is killed
    run(OTHER)
    assert list(kept()[0].iterdir()) == [end]
    run(GRADED)
    assert epochs == [1, 2, 3, 1, 2, 3, 3]


def test_a_run_that_stopped_goes_on_from_its_own_checkpoint(store, monkeypatch, epochs):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(RunStore, "write_history", Mock(side_effect=KeyboardInterrupt))
        run(OTHER, save_seconds=0)  # in the end of its first epoch
    run(WARM)
    run(OTHER)
    assert epochs == [1, 1, 2, 3, 1, 2, 3]


def test_what_is_kept_is_its_end_and_nothing_later(store, tmp_path, monkeypatch, epochs):
    """Stopped before it was kept, or kept no more: a later checkpoint is of the objective."""
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(WarmUps, "keep", Mock(side_effect=[None, KeyboardInterrupt]))
        run(WARM)
    run(WARM)
    assert epochs == [1, 2, 3] and len(kept()) == 1  # as the next epoch ended
    shared = run(OTHER)
    assert epochs == [1, 2, 3, 3]
    assert numbers(shared) == numbers(run(OTHER, RunStore(tmp_path / "elsewhere")))


def test_a_full_disk_costs_the_saving_alone(store, monkeypatch, epochs):
    monkeypatch.setattr(warmups, "load", Mock(side_effect=OSError("the disk is full")))
    with pytest.warns(UserWarning, match="cannot be kept in .*: the disk is full; the run trains"):
        assert run(WARM).status == "done"
    assert kept() == []


@pytest.mark.parametrize("harm", [
    lambda folder: folder.touch(), lambda folder: folder.with_suffix(".lock").mkdir()])
def test_a_folder_that_cannot_be_used_costs_the_saving_alone(store, harm):
    folder = RunStore().path("warmups")
    folder.parent.mkdir(parents=True, exist_ok=True)
    harm(folder)
    with pytest.warns(UserWarning, match="a warm-up cannot be (read|kept) in .*trains its own"):
        assert run(WARM).status == "done"


def test_those_not_used_for_longest_go(store, monkeypatch):
    monkeypatch.setattr(warmups, "KEPT", 2)
    run(WARM)
    first = kept()[0]
    os.utime(first, (0, 0))
    run(WARM.with_(seed=1))
    os.utime(next(path for path in kept() if path != first), (1, 1))
    (first.parent / "note.txt").touch()  # is left alone
    run(OTHER)  # uses the first
    run(WARM.with_(seed=2))
    assert first in kept() and len(kept()) == 3


def test_its_folder_is_locked(tmp_path):
    warm = WarmUps(tmp_path / "warmups", "key", 0)
    source = Checkpoints(tmp_path / "run")
    source.save(warm.end, {}, {})
    with FileLock(tmp_path / "warmups.lock"):
        waiting = threading.Thread(target=warm.keep, args=(source,))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive() and not list((tmp_path / "warmups").iterdir())
    waiting.join(30)
    assert [path.name for path in (tmp_path / "warmups").iterdir()] == ["key"]
