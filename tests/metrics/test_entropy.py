"""Embedding entropy: hand-worked values, the printed formulas, what cannot change it."""

import doctest
import importlib
import math

import numpy as np
import pytest
import torch

from itr_study.metrics.entropy import TEMPERATURE, embedding_entropy, score_entropy
from tests.metrics.sets import random_set
from tests.oracles.entropy import HAND, oracle


def unit(rng, *shape):
    vectors = rng.normal(size=shape)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def example(seed=0, images=7, heads=3, size=6):
    """Head vectors (I, K, D), texts (T, D), image_of_text in random order."""
    rng = np.random.default_rng(seed)
    owner = random_set(seed, images=images)[1]
    return unit(rng, images, heads, size), unit(rng, len(owner), size), owner


def test_examples_in_docstrings():
    result = doctest.testmod(importlib.import_module("itr_study.metrics.entropy"))
    assert result.attempted == 8 and not result.failed


@pytest.mark.parametrize("case", HAND)
def test_hand_worked_values(case):
    scores, owner, temperature, expected = case
    found = score_entropy(np.array(scores), np.array(owner), temperature)
    assert np.stack(found, axis=1) == pytest.approx(np.array(expected), abs=1e-12)
    if np.max(scores) < 10:  # Python's exponentials overflow beyond
        assert np.array(oracle(scores, owner, temperature)) == pytest.approx(np.array(expected))


@pytest.mark.parametrize("temperature", [0.02, TEMPERATURE, 1.0])
def test_of_each_head_it_is_the_printed_formula(temperature):
    for seed in range(10):
        images, texts, owner = example(seed)
        found = embedding_entropy(images, texts, owner, temperature)
        assert found.nats.shape == found.noise.shape == images.shape[:2]
        for head in range(images.shape[1]):
            expected = oracle((images[:, head] @ texts.T).tolist(), owner.tolist(), temperature)
            assert np.stack((found.nats[:, head], found.noise[:, head]), 1) == pytest.approx(
                np.array(expected), abs=1e-9)


def test_a_single_vector_is_a_head_alone_and_scores_are_its_cosines():
    images, texts, owner = example(1)
    every = embedding_entropy(images, texts, owner)
    for alone in (embedding_entropy(images[:, 1], texts, owner),
                  score_entropy(images[:, 1] @ texts.T, owner)):
        for values, heads in zip(alone, every, strict=True):
            assert values == pytest.approx(heads[:, 1])


def test_blocks_order_and_kind_of_numbers_change_nothing():
    images, texts, owner = example(2, images=11)
    found = embedding_entropy(images, texts, owner)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(len(images)), rng.permutation(len(texts))
    moved = embedding_entropy(images[rows], texts[columns], np.argsort(rows)[owner[columns]])
    for other, expected, near in (
            (embedding_entropy(images, texts, owner, block=1), found, 1e-12),
            (score_entropy(images[:, 0] @ texts.T, owner, block=4),
             [values[:, 0] for values in found], 1e-12),
            (moved, [values[rows] for values in found], 1e-12),
            (embedding_entropy(torch.tensor(images, dtype=torch.float32).requires_grad_(),
                               torch.tensor(texts, dtype=torch.float32), owner), found, 1e-4)):
        for values, wanted in zip(other, expected, strict=True):
            assert values == pytest.approx(wanted, abs=near)
            assert values.dtype == np.float64


def test_it_lies_between_0_and_its_bound_which_equal_outcomes_reach():
    images, texts, owner = example(3)
    counts = np.bincount(owner)
    for temperature in (1e-3, 0.07, 100.0):
        nats, noise = embedding_entropy(images, texts, owner, temperature)
        assert (nats >= 0).all() and (nats <= np.log(counts + 1)[:, None] + 1e-12).all()
        assert (noise >= 0).all() and (noise <= 1).all()
    # the two others together are as likely as each of the three matches
    scores = np.array([[2.0, 2.0, 2.0, 2 - math.log(2), 2 - math.log(2)], [0.0] * 5])
    nats, noise = score_entropy(scores, np.array([0, 0, 0, 1, 1]), 1.0)
    assert nats[0] == pytest.approx(math.log(4)) and noise[0] == pytest.approx(1 / 4)


def test_nothing_found_has_low_entropy_too_which_the_noise_tells():
    for found in (1.0, -1.0):
        nats, noise = score_entropy(np.array([[found, 0.0], [0.0, found]]), np.array([0, 1]), 0.05)
        assert (nats < 1e-6).all()
        assert noise == pytest.approx([0, 0] if found > 0 else [1, 1], abs=1e-6)


def test_small_probabilities_stay_exact():
    """Where the noise is e^-50 beside 1, 1 - P would be 0; -P log P is about 50 e^-50."""
    nats, noise = score_entropy(np.array([[50.0, 0.0], [0.0, 50.0]]), np.array([0, 1]), 1.0)
    assert noise[0] == pytest.approx(math.exp(-50), rel=1e-12)
    assert nats[0] == pytest.approx(51 * math.exp(-50), rel=1e-9)  # 50 P + P, of both outcomes


def test_bad_input_is_refused():
    images, texts, owner = example(4)
    bad = images.copy()
    bad[2, 1, 0] = np.nan
    with pytest.raises(ValueError, match="NaN is an error; that of image 2 has length nan"):
        embedding_entropy(bad, texts, owner)
    bad[2, 1] = 0
    with pytest.raises(ValueError, match="that of image 2 has length 0"):
        embedding_entropy(bad, texts, owner)
    with pytest.raises(ValueError, match="that of text 0 has length 2"):
        embedding_entropy(images, 2 * texts, owner)
    for value in (np.nan, np.inf):
        scores = images[:, 0] @ texts.T
        scores[5, 3] = value
        with pytest.raises(ValueError, match=f"found {value} at image 5, text 3"):
            score_entropy(scores, owner, block=2)
    with pytest.raises(ValueError, match=r"got \(7, 3, 6\) and \(\d+, 5\)"):
        embedding_entropy(images, texts[:, :5], owner)
    with pytest.raises(ValueError, match="images must be"):
        embedding_entropy(images[:, :0], texts, owner)
    with pytest.raises(ValueError, match="scores must be"):
        score_entropy(np.zeros((0, 3)), owner)
    with pytest.raises(ValueError, match="every image needs at least one text"):
        embedding_entropy(images, texts, np.zeros_like(owner))
    with pytest.raises(ValueError, match="one entry per text"):
        embedding_entropy(images, texts, owner[:-1])
    with pytest.raises(ValueError, match="temperature must be > 0"):
        embedding_entropy(images, texts, owner, temperature=0)
    with pytest.raises(ValueError, match="block must be"):
        score_entropy(images[:, 0] @ texts.T, owner, block=0)
