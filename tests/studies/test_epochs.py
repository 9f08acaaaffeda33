"""Vectors of every epoch: those of the very run, of which nothing is kept."""

import numpy as np
import pytest

from itr_study.evaluation.search import Searcher
from itr_study.explorers import EmbeddingMap
from itr_study.lab.runs.background import BackgroundRun
from itr_study.lab.runs.data import dataset_of, encoded_data
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import execute, weights
from itr_study.lab.studies.nb10_explorers import epoch_frames
from itr_study.metrics.ranks import ranks
from tests.small_runs import SMALL

LAST = SMALL.with_(**{"settings.epochs": 3, "settings.select": "last", "objective": [
    {"loss": "topk", "arguments": {"k": 1}}], "seed": 4})


def test_the_last_are_those_of_the_trained_model_and_no_run_is_left(store):
    frames = epoch_frames(LAST)
    assert list(frames) == [0, 1, 2, 3] and not (store / "runs").exists()
    assert BackgroundRun(LAST).look().state == "new"
    searcher = Searcher(weights(LAST), dataset_of(LAST), encoded_data(LAST))
    for ours, theirs in zip(frames[3], (searcher.images, searcher.texts), strict=True):
        np.testing.assert_array_equal(ours, theirs.numpy())
    assert not np.array_equal(frames[0][0], frames[1][0])  # each its own, not one tensor
    assert not np.array_equal(frames[2][0], frames[3][0])
    learnt = EmbeddingMap.of({"first": searcher}, frames=frames)
    learnt.handle("colour", "rank")
    assert {"failures, 0", "failures, 3"} <= set(learnt.numbers())
    assert learnt.name == 3


def test_looking_changes_nothing_of_the_training(store):
    """Every epoch is measured on dev, so that its recall must be that of the run."""
    frames = epoch_frames(LAST, split="dev")
    history = execute(identify(LAST)).history.rows
    owner = encoded_data(LAST).splits["dev"].image_of_text
    for row in history:
        images, texts = frames[row["epoch"]]
        found = ranks(images @ texts.T, owner)
        first = 100 * np.mean(found.t2i == 1)
        assert first == pytest.approx(row["dev_t2i_r1"])


def test_a_model_of_several_vectors_and_an_unknown_split_are_refused_before_training(monkeypatch):
    monkeypatch.setattr("itr_study.lab.studies.nb10_explorers.fit",
                        lambda *_, **__: pytest.fail("trained"))
    several = SMALL.with_(model="dvse", model_arguments={"size": 8, "word_size": 8, "heads": 2},
                          tokens="words", sentences=None)
    with pytest.raises(ValueError, match="there must be one vector for each image"):
        epoch_frames(several)
    with pytest.raises(ValueError, match="split must be one of train, dev, test; got 'tset'"):
        epoch_frames(SMALL, split="tset")
