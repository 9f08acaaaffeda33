"""Relevance by sentence vectors: hand-worked, by loops, and the labels that are refused."""

import dataclasses
import doctest
import sys

import numpy as np
import pytest
import torch

from itr_study.data.batches import EncodedSplit
from itr_study.relevance import RELEVANCE, _captions
from tests.relevance.test_registry import batches, rectangle, small_split

Sentence = RELEVANCE["sentence"]


def loops(split, pooling, scale):
    """(I, T) by the definition, in float64."""
    vectors = np.asarray(split.label_vectors["minilm"], np.float64)
    lengths = np.linalg.norm(vectors, axis=1)
    values = np.zeros((split.n_images, split.n_texts))
    for i in range(split.n_images):
        for j in range(split.n_texts):
            cosines = [vectors[c] @ vectors[j] / (lengths[c] * lengths[j])
                       for c in range(split.n_texts) if split.image_of_text[c] == i]
            value = {"max": max(cosines), "mean": sum(cosines) / len(cosines)}[pooling]
            value = (1 + value) / 2 if scale == "unit" else value
            values[i, j] = 1 if split.image_of_text[j] == i else min(value, 1 - 1e-4)
    return values


def test_example_in_docstring():
    result = doctest.testmod(sys.modules[Sentence.__module__])
    assert result.attempted and not result.failed


@pytest.mark.parametrize("scale", ["unit", "cosine"])
@pytest.mark.parametrize("pooling", ["max", "mean"])
def test_whole_split_and_batch_by_loops(pooling, scale, monkeypatch):
    monkeypatch.setattr(_captions, "ENTRIES", 20)  # many small blocks
    split, source = small_split(), Sentence(pooling=pooling, scale=scale)
    expected = loops(split, pooling, scale)
    assert source.block(split, slice(None)) == pytest.approx(expected, abs=1e-6)
    batch = rectangle([2, 0, 2], [4, 1, 8], split)
    assert source(batch, split).numpy() == pytest.approx(expected[[2, 0, 2]][:, [4, 1, 8]],
                                                         abs=1e-6)
    rng = np.random.default_rng(0)
    images, texts = rng.integers(0, 4, 50), rng.integers(0, 9, 50)
    assert source.pairs(split, images, texts) == pytest.approx(expected[images, texts], abs=1e-6)
    assert (expected[1, 0] < 1) and source.scale == scale


def test_the_pair_takes_the_caption_drawn_with_the_image():
    split = small_split()
    vectors = split.label_vectors["minilm"]
    vectors = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    texts = np.array([6, 0, 1, 8, 4])
    relevance = Sentence(pooling="pair", scale="cosine")(split.pair_batch(texts), split).numpy()
    for i, own in enumerate(texts):
        for j, text in enumerate(texts):
            same = split.image_of_text[own] == split.image_of_text[text]
            expected = 1 if same else min(vectors[own] @ vectors[text], 1 - 1e-4)
            assert relevance[i, j] == pytest.approx(expected, abs=1e-6), (own, text)
    assert relevance[1, 4] == np.float32(1 - 1e-4)  # the same caption, another image


def test_the_pair_is_only_right_for_pairs():
    split, source = small_split(), Sentence(pooling="pair")
    with pytest.raises(ValueError, match="needs a batch of pairs.*2 images and 3 texts"):
        source(rectangle([0, 1], [0, 2, 5], split), split)
    with pytest.raises(ValueError, match="needs a batch of pairs"):
        source(rectangle([1, 0], [0, 2], split), split)
    with pytest.raises(ValueError, match="no block"):
        source.block(split, slice(0, 1))
    with pytest.raises(ValueError, match="no pairs"):
        source.pairs(split, np.array([0]), np.array([0]))


def test_vectors_of_any_length_and_of_zeros():
    split = small_split()
    longer = split.label_vectors["minilm"] * np.linspace(0.1, 9, 9, dtype=np.float32)[:, None]
    scaled = dataclasses.replace(split, label_vectors={"minilm": longer})
    assert Sentence().block(scaled, slice(None)) == pytest.approx(
        Sentence().block(split, slice(None)), abs=1e-6)
    longer[5] = 0
    zero = Sentence(scale="cosine").block(scaled, slice(0, 2))
    assert (zero[:, 5] == 0).all()


@pytest.mark.parametrize(("vectors", "message"), [
    (np.zeros((9, 300), np.float32), "384 wide, got 300: they are of another encoder"),
    (np.zeros((8, 384), np.float32), "a row for each of the 9 texts.*got 8"),
    (np.zeros((9, 384), int), "floating point vectors.*int64"),
    (np.full((9, 384), np.nan, np.float32), "finite, found nan or inf first in row 0"),
    (np.r_[np.zeros((8, 384), np.float32), np.full((1, 384), np.inf, np.float32)], "in row 8"),
])
def test_bad_vectors_are_refused(vectors, message):
    split = small_split(label_vectors={"minilm": vectors})
    with pytest.raises(ValueError, match=message):
        Sentence()(batches(split)[0], split)
    with pytest.raises(ValueError, match=message):
        Sentence().block(split, slice(0, 1))


def test_new_vectors_of_a_known_split_are_read():
    """What is remembered of a split is forgotten with its vectors or its texts."""
    split, source = small_split(), Sentence()
    before = source(batches(split)[0], split)
    split.label_vectors = {"minilm": np.random.default_rng(1).normal(size=(9, 384))}
    assert not torch.equal(source(batches(split)[0], split), before)
    split.label_vectors = {"minilm": np.full((9, 384), np.nan)}
    with pytest.raises(ValueError, match="finite"):
        source(batches(split)[0], split)


def test_arguments_and_images_without_captions():
    with pytest.raises(ValueError, match="pooling must be one of max, mean, pair"):
        Sentence(pooling="sum")
    with pytest.raises(ValueError, match="scale must be one of unit, cosine"):
        Sentence(scale="binary")
    with pytest.raises(ValueError, match="label_vectors=.'other',"):
        Sentence("other").block(small_split(), slice(0, 1))
    bare = EncodedSplit("dev", np.array([0, 2]), np.zeros((3, 1, 1, 1)),
                        label_vectors={"mine": np.eye(2)})
    with pytest.raises(ValueError, match="image 1 has no caption"):
        Sentence("mine").block(bare, slice(0, 3))
