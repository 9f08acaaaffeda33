"""Runs that differ in their objective share their warm-up, and no number tells."""

import shutil
from unittest.mock import Mock

import pytest

from itr_study.runs import facts, warmups
from itr_study.runs.identity import identify
from itr_study.runs.run import execute
from itr_study.runs.store import RunStore
from itr_study.runs.warmups import warmup_key
from tests.small_runs import SMALL

WARM = SMALL.with_(**{"settings.epochs": 3, "settings.warmup_epochs": 2,
                      "settings.precision": "bfloat16", "model_arguments.dropout": 0.2,
                      "warmup_objective": [{"loss": "triplet_sum"}]})
OTHER = WARM.with_(objective=[{"loss": "triplet_hardest"}])
GRADED = WARM.with_(objective=[{
    "loss": "kendall", "labels": "sentence",
    "label_arguments": {"vectors": "glove-mean", "scale": "cosine"}}])


def run(config, store=None):
    return execute(identify(config), store=store)


def numbers(result) -> tuple:
    """All that a run gives but how long it took."""
    return result.tables, [{name: value for name, value in row.items() if name != "seconds"}
                           for row in result.history.rows], result.history.best_epoch


def seconds(result) -> list[float]:
    return [row["seconds"] for row in result.history.rows]


@pytest.mark.parametrize("second", [OTHER, GRADED, WARM.with_(objective=[{"loss": "triplet_sum"}])])
def test_a_shared_warm_up_gives_the_bits_of_one_s_own(store, tmp_path, second):
    first, shared = run(WARM), run(second)
    own = run(second, RunStore(tmp_path / "elsewhere"))
    assert seconds(shared)[:2] == seconds(first)[:2] and seconds(own)[:2] != seconds(first)[:2]
    assert seconds(shared)[2] != seconds(first)[2]
    assert numbers(shared) == numbers(own) and numbers(shared) != numbers(first)
    assert all((shared.weights()[name] == tensor).all() for name, tensor in own.weights().items())


@pytest.mark.parametrize("change", [
    {"seed": 1}, {"settings.learning_rate": 1e-3}, {"settings.epochs": 4}, {"settings.average": 2},
    {"settings.warmup_epochs": 1}, {"model_arguments.hidden": 8}, {"data_options.train": 25},
    {"sentences": "minilm"}, {"warmup_objective": [{"loss": "topk"}]}])
def test_what_a_warm_up_depends_on(change):
    keys = [warmup_key(identify(config)) for config in (WARM, OTHER, OTHER.with_(**change))]
    assert keys[0] == keys[1] != keys[2] and len(keys[2]) == 16


def test_a_version_of_its_parts_alone_counts(monkeypatch):
    before = warmup_key(identify(OTHER))
    losses = warmups.part_versions.__globals__["LOSSES"]
    monkeypatch.setattr(losses["triplet_hardest"], "version", 99)
    assert warmup_key(identify(OTHER)) == before
    monkeypatch.setattr(losses["triplet_sum"], "version", 99)
    assert warmup_key(identify(OTHER)) != before


def test_without_a_warm_up_nothing_is_kept(store):
    run(SMALL)
    assert warmup_key(identify(SMALL)) is None
    assert not RunStore().path("warmups").exists()


def test_a_damaged_one_is_set_aside_and_trained_again(store, tmp_path):
    first = run(WARM)
    kept = next(RunStore().path("warmups").iterdir())
    state = next(kept.glob("*/state.safetensors"))
    state.write_bytes(state.read_bytes()[:-1] + b"x")
    with pytest.warns(UserWarning, match="the warm-up is trained again"):
        second = run(OTHER)
    assert seconds(second)[:2] != seconds(first)[:2]
    assert numbers(second) == numbers(run(OTHER, RunStore(tmp_path / "elsewhere")))
    assert seconds(run(GRADED))[:2] == seconds(second)[:2]  # it is kept again


def test_who_computed_the_warm_up_is_stated(store, monkeypatch):
    monkeypatch.setattr(facts, "instructions", lambda: "amx")
    run(WARM)
    monkeypatch.setattr(facts, "instructions", lambda: "avx2")
    assert run(OTHER).facts["instructions"] == "amx + avx2"


def test_a_run_that_stopped_goes_on_from_its_own_checkpoint(store, monkeypatch):
    def stop(self, run_id, history):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(RunStore, "write_history", stop)
        execute(identify(OTHER), save_seconds=0)
    first, second = run(WARM), run(OTHER)
    assert seconds(second)[:2] != seconds(first)[:2] and numbers(second) != numbers(first)


def test_a_copy_that_was_killed_is_cleared_away(store, monkeypatch):
    run(WARM)
    folder = RunStore().path("warmups")
    (folder / ".1234.tmp" / "part").mkdir(parents=True)
    monkeypatch.setattr(shutil, "copy", Mock(side_effect=OSError("the disk is full")))
    with pytest.raises(OSError, match="full"):
        run(OTHER)
    assert [path.name for path in folder.iterdir()] == [warmup_key(identify(WARM))]
    assert not [path for path in RunStore().path(identify(OTHER).id).iterdir() if path.is_dir()]


def test_the_oldest_go(store, monkeypatch):
    monkeypatch.setattr(warmups, "KEPT", 2)
    for seed in range(3):
        run(WARM.with_(seed=seed))
    left = {path.name for path in RunStore().path("warmups").iterdir()}
    assert left == {warmup_key(identify(WARM.with_(seed=seed))) for seed in (1, 2)}
