import json
import os

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from itr_study import configs, identity, runs, training
from itr_study.atomic import read_json, write_json
from itr_study.configs import RunConfig, base, part_versions, run_id
from itr_study.losses import LOSSES
from itr_study.models import MODELS, TwoBranch
from itr_study.runs import RunStore, execute, weights
from itr_study.stopping import OutOfMemory
from itr_study.training import Diverged
from tests.small_runs import SMALL, count_trainings


def refused(**changes):
    with pytest.raises(ValueError) as caught:
        SMALL.with_(**changes)
    return str(caught.value)


def test_wrong_configs_are_refused_with_the_names_there_are():
    assert "did you mean 'learning_rate'" in refused(**{"settings.learing_rate": 0.1})
    assert "RunConfig has no 'sed'; did you mean 'seed'" in refused(sed=1)
    assert "names are size, hidden" in refused(**{"model_arguments.sizes": 3})
    assert "it takes margin, k" in refused(**{"objective.0.arguments.kk": 3})
    assert "k must be an integer >= 1" in refused(**{"objective.0.arguments.k": 0})
    assert "dataset must be one of scenes" in refused(dataset="flickr9k")
    assert "at '1' there is 0 to 0" in refused(**{"objective.1.weight": 2.0})
    assert "there is nothing" in refused(**{"seed.x": 2})
    assert "valid integer" in refused(seed="1")
    assert "go together" in refused(**{"settings.warmup_epochs": 2})
    with pytest.raises(ValidationError, match="frozen"):
        SMALL.seed = 3


def test_changes_reach_inside_and_leave_the_original_alone():
    changed = SMALL.with_(**{"objective.0.arguments.k": 3, "settings.learning_rate": 0.1,
                             "seed": 7})
    assert changed.objective[0].arguments["k"] == 3 and changed.seed == 7
    assert changed.settings.learning_rate == 0.1
    assert SMALL.seed == 0 and SMALL.objective[0].arguments == {"k": 1}
    assert RunConfig.model_validate_json(changed.model_dump_json()) == changed


def id_of(config, data="d", key="k", **versions):
    return run_id(config, data, key, part_versions(config) | versions)


def test_an_id_depends_on_what_the_numbers_depend_on():
    others = [SMALL.with_(seed=1), SMALL.with_(**{"objective.0.arguments.k": 2}),
              SMALL.with_(**{"settings.precision": "bfloat16"}), SMALL.with_(tokens="words")]
    ids = [id_of(SMALL), *(id_of(other) for other in others), id_of(SMALL, data="e"),
           id_of(SMALL, key="l"), id_of(SMALL, loop=2)]
    assert len(set(ids)) == len(ids)
    assert all(len(run) == 16 and set(run) <= set("0123456789abcdef") for run in ids)


def test_a_default_written_out_is_the_same_run():
    """The id is pinned: it may change only with versions of parts, never with new options."""
    written = SMALL.with_(**{"objective.0.arguments.margin": 0.2, "settings.optimizer": "adamw",
                             "model_arguments.text_layers": 2})
    assert written != SMALL and id_of(written) == id_of(SMALL)
    assert id_of(SMALL.with_(dataset="flickr8k", data_options={})) == id_of(
        SMALL.with_(dataset="flickr8k", data_options={"skip_bad": False}))
    assert run_id(SMALL, "d", "k", {"model:two_branch": 1}) == "199605e9093f816b"


def test_a_version_makes_another_id(monkeypatch):
    before = id_of(SMALL)
    monkeypatch.setattr(LOSSES["topk"], "version", 99)
    assert id_of(SMALL) != before
    monkeypatch.undo()
    monkeypatch.setattr(MODELS["two_branch"], "version", 99)
    assert id_of(SMALL) != before


def test_base_configs_are_read_and_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(configs, "BASES", tmp_path)
    (tmp_path / "scenes.toml").write_text(
        '[cheap]\nimages = "detector"\nmodel = "two_branch"\nsentences = "fisher"\n'
        'objective = [{loss = "topk", arguments = {k = 4}}]\nsettings = {epochs = 3}\n')
    assert base("scenes", "cheap", seed=2).objective[0].arguments == {"k": 4}
    assert base("scenes", "cheap", seed=2).settings.epochs == 3
    with pytest.raises(ValueError, match="base config of scenes must be one of cheap"):
        base("scenes", "dear")
    with pytest.raises(ValueError, match="must be one of scenes; got 'coco'"):
        base("coco", "cheap")


def test_a_run_writes_what_it_promises_and_is_not_trained_twice(store, monkeypatch):
    trained = count_trainings(monkeypatch)
    result = execute(SMALL)
    assert sorted(os.listdir(result.folder)) == [
        "config.json", "manifest.json", "metrics.jsonl", "ranks.npz", "result.json",
        "status.json", "test.safetensors", "weights.safetensors"]
    assert result.folder == store / "runs" / result.run
    assert RunStore().status(result.run)["state"] == result.status == "done"
    lines = (result.folder / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == result.history.rows and len(lines) == 2
    assert RunConfig.model_validate(read_json(result.folder / "config.json")) == SMALL
    ranks = result.ranks()
    assert result.tables["test"]["i2t_r5"] == pytest.approx(100 * (ranks["test_i2t"] <= 5).mean())
    assert result.history.rows[result.history.best_epoch - 1]["dev_rsum"] == (
        result.tables["dev"]["rsum"])
    assert result.embeddings()["images"].shape[0] == len(ranks["test_i2t"])
    assert result.facts["software"]["torch"] == torch.__version__
    again = execute(SMALL)
    assert len(trained) == 1 and again.tables == result.tables


def test_weights_are_those_of_the_best_epoch(store, monkeypatch):
    trained = count_trainings(monkeypatch)
    model = weights(SMALL)
    data = identity.encoded_data(SMALL)
    found = runs.evaluate(model, data.splits["test"], suite=True)
    assert found.table == execute(SMALL).tables["test"]
    assert not model.training and len(trained) == 1


def test_ids_of_encoded_data_are_known_without_encoding(store):
    data = identity.encoded_data(SMALL)
    assert identity.identify(SMALL).encoded == data.key


@pytest.mark.parametrize("name", ["weights.safetensors", "result.json", "config.json",
                                  "manifest.json"])
def test_a_damaged_finished_run_is_set_aside_and_trained_again(store, name):
    result = execute(SMALL)
    path = result.folder / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.warns(UserWarning, match=f"run {result.run}: .*; it is trained again; set aside"):
        again = execute(SMALL)
    assert again.tables == result.tables
    assert (store / "runs" / f"{result.run}.corrupt").is_dir()


def test_a_run_that_diverges_says_so_and_stays_so(store, monkeypatch):
    wild = SMALL.with_(**{"settings.learning_rate": 1e30, "settings.clip_norm": None,
                          "settings.optimizer": "sgd"})
    trained = count_trainings(monkeypatch)
    result = execute(wild)
    assert result.status == "diverged" and "is not finite" in result.reason
    assert "texts" in result.reason and result.tables == {}
    assert execute(wild).reason == result.reason and len(trained) == 1
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

    monkeypatch.setattr(runs, "fit", fail)
    with pytest.raises(kind):
        execute(SMALL)
    run = identity.identify(SMALL).run
    status = RunStore().status(run)
    assert status["state"] == state and type(error).__name__ in (
        status["reason"].replace("OutOfMemory:", "OutOfMemoryError:MemoryError"))
    monkeypatch.undo()
    monkeypatch.setenv("ITR_STUDY_HOME", str(store))
    assert execute(SMALL).status == "done"


def test_a_full_disk_is_the_error_even_if_the_status_cannot_be_written(store, monkeypatch):
    real = RunStore.set_status

    def full(self, run, state, reason=""):
        if state == "failed":
            raise OSError(28, "No space left on device", "status.json")
        real(self, run, state, reason)

    def no_room(*arguments, **named):
        raise OSError(28, "No space left on device", "checkpoint")

    monkeypatch.setattr(RunStore, "set_status", full)
    monkeypatch.setattr(runs, "fit", no_room)
    with pytest.raises(OSError, match="checkpoint") as caught:
        execute(SMALL)
    assert "status of run" in caught.value.__notes__[0]


def test_a_running_status_of_a_dead_process_means_interrupted(store):
    runs_ = RunStore()
    runs_.set_status("a" * 16, "running")
    assert runs_.status("a" * 16)["state"] == "running"
    path = runs_.path("a" * 16) / "status.json"
    write_json(path, read_json(path) | {"pid": 2 ** 22 + 5})
    assert runs_.status("a" * 16)["state"] == "interrupted"
    assert runs_.status("b" * 16) is None
    path.write_text('{"state": "run')
    with pytest.warns(UserWarning, match="is not valid JSON.*set aside as status.json.corrupt"):
        assert runs_.status("a" * 16) is None


def test_diverged_carries_the_epochs_before():
    error = Diverged("no", training.History([{"epoch": 1}], 1))
    assert error.history.rows == [{"epoch": 1}]


def test_the_seed_sets_initialisation():
    inputs = identity.encoded_data(SMALL).inputs
    one, same, other = (runs.build_model(SMALL.with_(seed=s), inputs) for s in (1, 1, 2))
    assert isinstance(one, TwoBranch)
    left, right, third = (m.image[0].weight.detach().numpy() for m in (one, same, other))
    assert np.array_equal(left, right) and not np.array_equal(left, third)
