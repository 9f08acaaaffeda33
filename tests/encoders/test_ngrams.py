"""CIDEr-D of n-gram vectors: by hand, against dictionaries, and what is refused."""

import doctest
import math

import numpy as np
import pytest

import itr_study.encoders.ngrams as module
from itr_study.encoders.ngrams import Ngrams, cider_d, cider_d_rows
from tests.oracles import cider as slow

WORDS = "a dog cat man red blue runs sits on the grass dog's".split()


def texts(seed, n=30, longest=14):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(1, longest))) for _ in range(n)]


def test_examples_in_docstrings():
    result = doctest.testmod(module)
    assert result.attempted and not result.failed


def test_by_hand():
    """Three images; "dog" is in one, "a" in all, so "a" weighs nothing, unseen words most."""
    ngrams = Ngrams().fit(["a dog", "a cat", "a dog dog", "a"], np.array([0, 1, 0, 2]))
    assert ngrams.words == {"a": 0, "dog": 1, "cat": 2} and ngrams.images == 3
    assert ngrams.image_counts[0][1].tolist() == [3, 1, 1, 0]  # dog, twice in image 0, counts once
    assert ngrams.image_counts[1][1].tolist() == [1, 1, 1, 0]  # a dog, a cat, dog dog
    vectors = ngrams.encode(["dog", "dog dog", "a dog"])
    assert vectors.candidates.shape == (3, 4)  # dog, dog dog, dog twice, a dog: "a" weighs nothing
    # 1 -> 0: counts 2 and 1, clipped to min(2, 1) * 1 / (2 * 1) of unigrams; one bigram longer
    # 0 -> 1: min(1, 2) * 2 / (1 * 2) of unigrams
    penalty = math.exp(-1 / 72)
    np.testing.assert_allclose(
        cider_d(vectors, vectors),
        [[1 / 4, penalty / 2 / 4, penalty / 4],
         [penalty / 4, 2 / 4, 1 / 4],  # "a dog" has 1 of its unigrams, none of its bigrams
         [penalty / 4, 1 / 2 / 4, 2 / 4]], rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_equals_the_slow_form_for_all_pairs(seed):
    train, owner = texts(100 + seed), np.arange(30) // 2
    frequency, images = slow.document_frequency(train, owner.tolist())
    said = texts(seed) + ["", "a zebra a zebra a zebra a zebra"]  # nothing; unseen and repeated
    vectors = Ngrams().fit(train, owner).encode(said)
    expected = np.array([[slow.oracle(candidate, reference, frequency, images)
                          for candidate in said] for reference in said])
    np.testing.assert_allclose(cider_d(vectors, vectors), expected, atol=1e-6)
    assert (np.abs(expected - expected.T) > 1e-3).any()  # clipping tells the two apart
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, len(said), (2, 60))
    np.testing.assert_allclose(cider_d_rows(vectors[a], vectors[b]), expected[a, b], atol=1e-6)


def test_rows_are_taken_as_of_an_array():
    vectors = Ngrams().fit(texts(0), np.arange(30)).encode(texts(1))
    part = vectors[np.array([4, 4, 2])]
    assert len(vectors) == 30 and len(part) == 3
    np.testing.assert_array_equal(cider_d(part, part),
                                  cider_d(vectors, vectors)[np.ix_([4, 4, 2], [4, 4, 2])])


def test_one_training_image_weighs_nothing():
    vectors = Ngrams().fit(["a dog"], np.array([0])).encode(["a dog", "a cat"])
    assert np.isfinite(cider_d(vectors, vectors)).all() and cider_d(vectors, vectors)[0, 0] == 0


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="not fitted; call fit"):
        Ngrams().encode(["a dog"])
    with pytest.raises(ValueError, match="got 2 texts and 1 images"):
        Ngrams().fit(["a", "b"], np.array([0]))
    with pytest.raises(ValueError, match="got 0 texts"):
        Ngrams().fit([], np.array([], int))
    fitted = Ngrams().fit(["a dog", "a cat"], np.array([0, 1]))
    with pytest.raises(ValueError, match="no texts to encode"):
        fitted.encode([])
    with pytest.raises(ValueError, match="encoded in different calls"):
        cider_d(fitted.encode(["a dog"]), fitted.encode(["a dog"]))
