"""All scores of a run, kept where they took minutes: the same, and never a reason to train."""

import shutil

import pytest
import torch

from itr_study.evaluation import ensemble, search
from itr_study.evaluation.search import Searcher
from itr_study.lab.runs import run
from itr_study.lab.runs import store as scores
from itr_study.lab.runs.data import encoded_data
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import execute, weights
from itr_study.lab.runs.store import SCORES, RunStore, kept_scores
from tests.small_runs import SMALL, count_trainings

SAF = SMALL.with_(model="saf", tokens="words", sentences=None, model_arguments={
    "size": 8, "similarity": 5, "word_size": 5, "text": "gru"})


def test_a_model_that_compares_pairs_keeps_its_scores_and_no_other_does(store, monkeypatch):
    """What searches it, or puts it together with another, computes none of them again."""
    kept, model, data = kept_scores(execute(identify(SAF))), weights(SAF), encoded_data(SAF)
    dev = run.evaluate(model, data.splits["dev"], measures_of="scenes")
    test = run.evaluate(model, data.splits["test"], measures_of="scenes", bank=dev)
    assert kept.keys() == test.scores.keys() == {"scores", "bank_images", "bank_texts"}
    assert all(torch.equal(kept[name], test.scores[name]) for name in kept)
    assert not dev.scores and not kept_scores(execute(identify(SMALL)))
    assert not run.searcher(SAF, split="dev").known
    members = {str(seed): run.searcher(SAF.with_(seed=seed)) for seed in (0, 1)}
    anew = ensemble.ensemble({name: Searcher(one.model, one.dataset, data)
                              for name, one in members.items()}).table
    for module in (search, ensemble):
        monkeypatch.setattr(module, "score", None)
    assert ensemble.ensemble(members).table == pytest.approx(anew)
    assert torch.equal(torch.from_numpy(members["0"].scores), kept["scores"])


def test_scores_that_are_gone_or_damaged_are_computed_again_and_nothing_is_trained(
        store, monkeypatch):
    trained, result = count_trainings(monkeypatch), execute(identify(SAF))
    folder = store / "runs" / "scores" / result.id
    before = run.searcher(SAF).scores
    data = bytearray((folder / SCORES).read_bytes())
    data[-1] ^= 1
    (folder / SCORES).write_bytes(data)
    with pytest.warns(UserWarning, match=f"scores of run {result.id}: .*; they are computed again"):
        one = run.searcher(SAF)
    assert not one.known and one.scores == pytest.approx(before, abs=1e-6)
    assert not run.searcher(SAF).known and len(trained) == 1  # set aside, and asked for once


def test_scores_of_other_weights_are_not_taken(store):
    """A run that was trained again, on another machine, may have others."""
    result = execute(identify(SAF))
    other = execute(identify(SAF.with_(seed=1)))
    shutil.copy(other.folder / "weights.safetensors", result.folder / "weights.safetensors")
    assert kept_scores(other) and not kept_scores(result)


def test_a_disk_that_is_full_costs_the_scores_alone(store, monkeypatch):
    def full(path, *tensors):
        if path.name == scores.SCORES:
            raise OSError(28, "No space left on device")
        save_weights(path, *tensors)

    save_weights = scores.save_weights
    monkeypatch.setattr(scores, "save_weights", full)
    with pytest.warns(UserWarning, match="cannot be kept in .*No space left.*computes them again"):
        result = execute(identify(SAF))
    assert RunStore().status(result.id)["state"] == "done" and not kept_scores(result)


def test_known_scores_of_another_size_are_refused(store):
    one = run.searcher(SAF)
    with pytest.raises(ValueError, match="must be of the 10 images and 50 texts of dev, got .9, 5"):
        Searcher(one.model, one.dataset, one.data, "dev", {"scores": torch.zeros(9, 50)})
