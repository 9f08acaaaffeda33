"""False negatives of a batch: counted exactly, and as many as sampled batches hold."""

import doctest

import numpy as np
import pytest

from itr_study.data import caption_noise, load_dataset
from itr_study.data.batches import EncodedSplit
from itr_study.data.caption_noise import ROWS, expected_pairs
from itr_study.relevance import RELEVANCE
from itr_study.training.sampling import epoch_samples, expected_siblings
from itr_study.training.settings import Settings


@pytest.fixture(scope="module")
def split():
    data = load_dataset("scenes", train=80, dev=1, test=1)
    of = data.splits["train"]
    return EncodedSplit("train", of.image_of_text, np.zeros((80, 1, 1, 1), np.float32),
                        relevance=data.relevance(of))


def in_batches(split, batch, epochs, labels="exact"):
    """(N, 2) false negatives and siblings of every batch, cell by cell, as a loss sees them."""
    source, found = RELEVANCE[labels](), []
    for epoch in range(epochs):
        for sample in epoch_samples(split, Settings(batch_size=batch), 0, epoch):
            pairs = split.pair_batch(sample.texts)
            own = np.eye(batch, dtype=bool)
            match, graded = pairs.match.numpy(), source(pairs, split).numpy()
            found.append(((~match & (graded >= np.float32(1 - 1e-4))).sum(), (match & ~own).sum()))
    return np.array(found)


def test_example_in_docstring():
    result = doctest.testmod(caption_noise)
    assert result.attempted and not result.failed


def test_as_many_as_sampled_batches_hold(split):
    found = in_batches(split, 40, epochs=40)
    assert len(found) == 400
    expected = expected_pairs(split.relevance, split.image_of_text, 40)
    error = found.std(axis=0) / np.sqrt(len(found))
    assert expected.false_negatives > 10 and expected.siblings > 5
    np.testing.assert_array_less(abs(found.mean(axis=0) - expected[1:]), 4 * error)


def test_a_batch_of_all_texts_holds_what_is_expected_of_it(split):
    """There is one such batch: expected and counted are the same number."""
    counted = in_batches(split, 400, epochs=1)
    assert len(counted) == 1
    np.testing.assert_allclose(counted[0],
                               expected_pairs(split.relevance, split.image_of_text, 400)[1:])


def test_the_share_is_that_of_batches_of_every_size(split):
    small, large = (expected_pairs(split.relevance, split.image_of_text, b) for b in (2, 128))
    assert small.share == pytest.approx(large.share, rel=1e-12)
    assert large.cells == 128 * 127


def test_siblings_as_sampling_expects_them(split):
    """It counts each pair of texts once, and a matrix holds it twice."""
    expected = expected_pairs(split.relevance, split.image_of_text, 32)
    assert expected.siblings == pytest.approx(2 * expected_siblings([5] * 80, 32))


def test_all_images_are_looked_at():
    """More than one block of rows: a false negative of the first image, one of the last."""
    images = 2 * ROWS + 3
    graded = np.eye(images)
    graded[0, 1] = graded[-1, 0] = 1 - 1e-4
    assert expected_pairs(graded, np.arange(images), images)[1:] == (2.0, 0.0)


def test_what_cannot_be_counted_is_refused(split):
    with pytest.raises(ValueError, match="batch must be an integer >= 2 and <= 400"):
        expected_pairs(split.relevance, split.image_of_text, 401)
    with pytest.raises(ValueError, match=r"relevance must be \(I, T\) of the 400 texts"):
        expected_pairs(split.relevance[:, 1:], split.image_of_text, 8)
    with pytest.raises(ValueError, match=r"relevance must be \(I, T\) .*got \(79, 400\)"):
        expected_pairs(split.relevance[:-1], split.image_of_text, 8)  # of 80 images
