"""Relevance by CIDEr-D: over the captions of an image, against the slow form."""

import doctest
import sys

import numpy as np
import pytest

from itr_study.data.base import read_lines
from itr_study.data.batches import EncodedSplit
from itr_study.data.flickr8k import read_judgements
from itr_study.encoders.ngrams import Ngrams
from itr_study.metrics.human import human_correlation
from itr_study.relevance import RELEVANCE
from tests.oracles import cider as slow
from tests.relevance.test_registry import TEXTS, batches, small_split

Cider = RELEVANCE["cider"]


def test_example_in_docstring():
    result = doctest.testmod(sys.modules[Cider.__module__])
    assert result.attempted and not result.failed


@pytest.mark.parametrize("pooling", ["max", "mean"])
def test_over_the_captions_by_loops(pooling):
    split, source = small_split(), Cider(pooling)
    frequency, images = slow.document_frequency(TEXTS, split.image_of_text.tolist())
    expected = np.zeros((4, 9))
    for i in range(4):
        for j in range(9):
            values = [slow.oracle(TEXTS[j], TEXTS[c], frequency, images)
                      for c in range(9) if split.image_of_text[c] == i]
            value = {"max": max(values), "mean": sum(values) / len(values)}[pooling]
            expected[i, j] = 1 if split.image_of_text[j] == i else min(value, 1 - 1e-4)
    assert source.block(split, slice(None)) == pytest.approx(expected, abs=1e-6)
    i, j = np.divmod(np.arange(36), 9)
    assert source.pairs(split, i, j) == pytest.approx(expected[i, j], abs=1e-6)
    assert 0 < expected[0, 6] < expected[0, 4] < 1


def test_the_text_is_the_candidate_and_the_caption_the_reference():
    """Clipped counts are not symmetric: min(a, b) * b over the two lengths."""
    split = small_split()
    frequency, images = slow.document_frequency(TEXTS, split.image_of_text.tolist())
    relevance = Cider("pair")(split.pair_batch(np.array([1, 6])), split)
    assert relevance[0, 1].item() == pytest.approx(
        slow.oracle(TEXTS[6], TEXTS[1], frequency, images), abs=1e-6)


def test_vectors_in_the_place_of_ngrams_are_refused():
    split = small_split(label_vectors={"cider": np.zeros((9, 5), np.float32)})
    with pytest.raises(ValueError, match="must be NgramVectors.*ndarray"):
        Cider()(batches(split)[0], split)


def test_real_agreement_with_experts(real_data):
    """What was measured once stays so: CIDEr-D over an image's captions, Flickr8k-Expert."""
    folder = real_data / "flickr8k"
    lines = dict(line.split("\t") for line in read_lines(folder / "Flickr8k.token.txt"))

    def read(split):
        images = read_lines(folder / f"Flickr_8k.{split}Images.txt")
        return images, [f"{image}#{k}" for image in images for k in range(5)]

    train, test = read("train"), read("test")
    ngrams = Ngrams().fit([lines[t] for t in train[1]], np.arange(30_000) // 5)
    split = EncodedSplit("test", np.arange(5000) // 5, np.zeros((1000, 1, 1, 1)),
                         label_vectors={"cider": ngrams.encode([lines[t] for t in test[1]])})
    said = read_judgements(real_data, "expert")
    images = np.array([test[0].index(image) for image in said.image_ids])
    texts = np.array([test[1].index(text) for text in said.text_ids])
    found = human_correlation(Cider().pairs(split, images, texts), said)
    assert found["expert_tau_c"] == pytest.approx(0.4304, abs=2e-3)
