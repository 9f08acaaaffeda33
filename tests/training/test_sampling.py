"""Captions of one image in a batch, against what was counted by hand."""

from itertools import combinations

import numpy as np
import pytest
import torch

from itr_study.data.batches import EncodedSplit
from itr_study.lab.runs.data import encoded_data
from itr_study.training.loop import fit
from itr_study.training.sampling import counted_siblings, epoch_samples, expected_siblings
from itr_study.training.settings import Settings
from tests.small import SmallData, SmallLoss, small_model
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


# Several texts of an image in a batch

OWNER = np.array([0, 0, 0, 0, 0, 1, 1, 2, 3, 3, 3, 3])  # images of 5, 2, 1 and 4 texts


def drawn(n, batch_size=12, epoch=0, tokens=None, owner=OWNER):
    """Texts of every batch."""
    images = owner.max() + 1
    split = EncodedSplit("train", owner, np.zeros((images, 2, 1, 1)), tokens=tokens)
    settings = Settings(batch_size=batch_size, texts_per_image=n)
    return [sample.texts for sample in epoch_samples(split, settings, 3, epoch)]


def runs(texts, owner=OWNER):
    """Lengths of the stretches of one image's texts, with that image."""
    borders = np.flatnonzero(np.diff(owner[texts])) + 1
    return [(int(owner[part[0]]), len(part)) for part in np.split(texts, borders)]


def test_images_are_drawn_with_so_many_of_their_texts():
    """By hand, n = 2: groups 2 2 1 of the first image, 2, 1, and 2 2; neighbours may touch."""
    of_four = set()
    for epoch in range(20):
        (texts,) = drawn(2, epoch=epoch)
        of_four.add(tuple(length for image, length in runs(texts) if image == 3))
        assert sorted(texts.tolist()) == list(range(12))
        lengths = {image: sum(length for i, length in runs(texts) if i == image)
                   for image in range(4)}
        assert lengths == {0: 5, 1: 2, 2: 1, 3: 4}
        assert sum(length % 2 for image, length in runs(texts) if image in (1, 3)) == 0
        assert sum(length % 2 for image, length in runs(texts) if image == 0) == 1
    assert of_four == {(2, 2), (4,)}
    (texts,) = drawn(5)
    assert sorted(runs(texts)) == [(0, 5), (1, 2), (2, 1), (3, 4)]  # who has fewer gives all


@pytest.mark.parametrize("tokens", [None, [np.ones(1 + t % 7, int) for t in range(200)]])
def test_every_text_comes_once_and_with_its_siblings(tokens):
    owner = np.repeat(np.arange(40), 5)
    for n in (5, 2):  # of each image a group of 5, or 2, 2 and 1
        batches = drawn(n, 20, 1, tokens, owner)
        assert sorted(np.concatenate(batches).tolist()) == list(range(200))
        counts = [np.unique(owner[texts], return_counts=True)[1] for texts in batches]
        found = sum(int((c * (c - 1) // 2).sum()) for c in counts)
        assert found == 400 if n == 5 else found > 80  # 80 groups of two, some cut by a batch's end
    usual = drawn(1, 20, 1, tokens, owner)
    counts = [np.unique(owner[texts], return_counts=True)[1] for texts in usual]
    assert sum(int((c * (c - 1) // 2).sum()) for c in counts) < 60  # by chance 38


def test_groups_are_dealt_anew_and_come_in_another_order():
    owner = np.repeat(np.arange(40), 5)
    first, second = (np.concatenate(drawn(2, 20, epoch, owner=owner)) for epoch in (0, 1))
    pairs = [{tuple(sorted(texts[i:i + 2])) for i in range(199)
              if owner[texts[i]] == owner[texts[i + 1]]} for texts in (first, second)]
    assert 0 < len(pairs[0] & pairs[1]) < 0.6 * len(pairs[0])
    singles = [i for texts in (first, second) for i, (_, length) in enumerate(runs(texts, owner))
               if length % 2]
    assert min(singles) < 20 and max(singles) > 80  # what is left comes anywhere


def test_groups_of_like_length_are_batched_together():
    """The longest of a group counts: 20 images of long texts beside 20 of short ones."""
    owner = np.repeat(np.arange(40), 5)
    tokens = [np.ones(9 if image % 2 and text % 5 == 0 else 2, int)
              for text, image in enumerate(owner)]
    for texts in drawn(5, 20, 0, tokens, owner):
        assert len(set(owner[texts] % 2)) == 1


def test_one_text_of_an_image_is_drawn_as_ever():
    """The batches from before there was a choice, transcribed."""
    plain = [[2, 7, 9, 0], [4, 1, 10, 6], [11, 8, 3, 5]]
    by_length = [[6, 7, 11, 3], [1, 5, 2, 10], [0, 4, 8, 9]]
    owner = np.repeat(np.arange(4), 3)
    tokens = [np.ones(1 + t % 4, int) for t in range(12)]
    assert [texts.tolist() for texts in drawn(1, 4, 2, owner=owner)] == plain
    assert [texts.tolist() for texts in drawn(1, 4, 2, tokens, owner)] == by_length


def test_a_training_with_siblings_goes_on_bit_equal(tmp_path):
    settings = Settings(epochs=2, batch_size=8, texts_per_image=2, learning_rate=0.02)

    def trained(**named):
        model = small_model()
        fit(model, SmallLoss(), SmallData(), settings, seed=1, **named)
        return model.state_dict()

    expected, asked = trained(), []

    class Breaks(SmallLoss):
        def forward(self, scores, relevance):
            asked.append(int((relevance >= 1).sum()) - len(scores))
            if len(asked) == 13:  # of 9 steps an epoch
                raise RuntimeError("the machine is gone")
            return super().forward(scores, relevance)

    with pytest.raises(RuntimeError, match="the machine is gone"):
        fit(small_model(), Breaks(), SmallData(), settings, seed=1, folder=tmp_path,
            save_seconds=0)
    assert np.mean(asked) > 3  # 24 groups of two in 9 batches, both ways; by chance 1.6
    for name, value in trained(folder=tmp_path).items():
        assert torch.equal(expected[name], value), name


@pytest.mark.parametrize("wrong, told", [
    ({"texts_per_image": 0}, "texts_per_image"), ({"texts_per_image": 2.0}, "texts_per_image"),
    ({"texts_per_image": 8, "batch_size": 8}, "less than batch_size, got 8 of 8.*no negatives")])
def test_wrong_numbers_of_texts_are_refused(wrong, told):
    with pytest.raises(ValueError, match=told):
        Settings(**wrong)


def test_more_texts_than_any_image_has_are_refused():
    assert len(drawn(5)) == 1
    with pytest.raises(ValueError, match="texts_per_image must be at most 5, got 6: no image"):
        drawn(6)
