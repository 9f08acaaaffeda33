"""Captions of one image in a batch, against what was counted by hand."""

from itertools import combinations

import numpy as np
import pytest

from itr_study.data.batches import EncodedSplit
from itr_study.runs.data import encoded_data
from itr_study.training.sampling import counted_siblings, epoch_samples, expected_siblings
from itr_study.training.settings import Settings
from tests.small_runs import SMALL


def test_expected_siblings_is_the_mean_over_all_batches():
    owner = np.array([0, 0, 0, 1, 1, 2])
    batches = list(combinations(range(6), 4))
    found = np.mean([sum(owner[a] == owner[b] for a, b in combinations(batch, 2))
                     for batch in batches])
    assert expected_siblings([3, 2, 1], 4) == pytest.approx(found)


def test_counted_siblings_are_those_of_the_batches_of_a_run():
    split = EncodedSplit("train", np.repeat(np.arange(40), 5), np.zeros((40, 1, 1, 1)))
    counted = counted_siblings(split, Settings(batch_size=50))
    assert len(counted) == 4
    assert counted.mean() == pytest.approx(expected_siblings([5] * 40, 50), rel=0.2)
    whole = counted_siblings(split, Settings(batch_size=200))
    assert whole.tolist() == [400]  # 40 images of 10 pairs
    train = encoded_data(SMALL).splits["train"]
    assert counted_siblings(train, SMALL.settings).sum() > 0


def test_the_view_of_a_text_is_its_own_whatever_the_batches():
    split = EncodedSplit("train", np.repeat(np.arange(40), 5), np.zeros((40, 4, 1, 1)))

    def views(batch_size):
        samples = epoch_samples(split, Settings(batch_size=batch_size), seed=0, epoch=1)
        return {text: view for sample in samples
                for text, view in zip(sample.texts.tolist(), sample.views.tolist(), strict=True)}

    assert views(20) == views(50) and len(views(20)) == 200
    assert set(views(20).values()) == {0, 1, 2, 3}
