"""Relevance of single pairs: that of whole blocks, and slow tools are asked once."""

import numpy as np
import pytest

from itr_study.lab.label_quality import judges as module
from itr_study.lab.label_quality.judges import image_relevance, pair_relevance, text_relevance
from itr_study.relevance import RELEVANCE
from tests.label_quality.judged_sets import VECTORS, Overlap, judged_split

IMAGES, PLACES = np.array([2, 0, 1, 0, 2, 2]), np.array([0, 0, 5, 4, 4, 1])


@pytest.mark.parametrize("source", [
    RELEVANCE["binary"](), RELEVANCE["exact"](), RELEVANCE["sentence"]("mine", "mean"),
    RELEVANCE["cider"]()], ids=lambda source: source.name)
def test_pairs_are_places_of_the_block(source, monkeypatch):
    monkeypatch.setattr(module, "IMAGES", 2)
    split = judged_split(exact=True)
    block = source.block(split, slice(None))
    np.testing.assert_allclose(pair_relevance(source, split, IMAGES, PLACES),
                               block[IMAGES, PLACES], atol=1e-7)


@pytest.fixture
def meteor(store, monkeypatch):
    source, program = RELEVANCE["meteor"](), Overlap()
    monkeypatch.setattr(source, "_tool", program)
    monkeypatch.setattr(type(source), "tool", lambda self: self._tool)
    return source, program


def test_a_tool_is_asked_once_and_never_of_matches(meteor, store):
    source, program = meteor
    split = judged_split()
    first = pair_relevance(source, split, IMAGES, PLACES)
    np.testing.assert_allclose(first, source.pairs(split, IMAGES, PLACES))
    assert first[1] == first[4] == 1 and first[0] == pytest.approx(5 / 10)  # of 10 words in all
    kept = store / "features" / "pairs-meteor-5806b705a5734c8f.npy"
    assert kept.is_file()  # the name that all versions gave it: hours of Java are still read
    program.asked = 0
    np.testing.assert_array_equal(pair_relevance(source, split, IMAGES, PLACES), first)
    assert program.asked == 0
    split.label_vectors["texts"][0] = "another text"
    pair_relevance(source, split, IMAGES, PLACES)
    assert program.asked
    own = pair_relevance(source, split, np.array([0, 2]), np.array([1, 5]))
    assert own.tolist() == [1, 1]


def test_texts_and_images_are_compared_by_hand():
    split, source = judged_split(), RELEVANCE["sentence"]("mine", "mean", "cosine")
    pairs = np.array([0, 1]), np.array([4, 3])
    np.testing.assert_allclose(text_relevance(source, split, *pairs),
                               (VECTORS[pairs[0]] * VECTORS[pairs[1]]).sum(axis=1), atol=1e-6)
    alike = image_relevance(source, split, np.array([0, 1]), np.array([2, 0]))
    cosines = VECTORS @ VECTORS.T
    np.testing.assert_allclose(alike, [cosines[:2, 4:].mean(), cosines[2:4, :2].mean()], atol=1e-6)


@pytest.mark.parametrize("name", ["binary", "meteor"])
def test_sources_that_compare_no_texts_are_refused(name):
    for compare in (text_relevance, image_relevance):
        with pytest.raises(ValueError, match=f'labels "{name}" are not taken'):
            compare(RELEVANCE[name](), judged_split(), np.array([0]), np.array([1]))
