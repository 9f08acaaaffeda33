"""Cosines between sub-embeddings, against doing it pair by pair."""

import numpy as np
import pytest
import torch

from itr_study.metrics.attention import head_correlation, mean_correlation
from tests.oracles import correlation as oracle


def example(seed, images=6, heads=4, size=5):
    rng = np.random.default_rng(seed)
    mask = rng.integers(0, 2, (images, heads))
    mask[0, :2] = 1
    mask[1:3] = [0] * heads, [1] + [0] * (heads - 1)  # no pair in these
    return rng.normal(size=(images, heads, size)), mask


def test_hand_worked_values():
    """3-4-5 triangles: cosines of 0.6, -0.8 and 0; the mean of 0.6, 0.8, 0."""
    heads = np.array([[[1, 0], [3, 4], [-4, 3]]], dtype=float)
    assert head_correlation(heads, signed=True)[0] == pytest.approx(
        np.array([[1, 0.6, -0.8], [0.6, 1, 0], [-0.8, 0, 1]]))
    assert mean_correlation(heads) == pytest.approx(1.4 / 3)
    assert mean_correlation(heads, signed=True) == pytest.approx(-0.2 / 3)
    assert mean_correlation(heads, np.array([[1, 0, 1]])) == pytest.approx(0.8)
    assert oracle.mean(heads.tolist(), [[1, 1, 1]]) == pytest.approx(1.4 / 3)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
def test_equals_the_slow_oracle(signed, kind):
    for seed in range(8):
        vectors, mask = example(seed)
        found = head_correlation(kind(vectors), kind(mask), signed)
        for image, (heads, on) in enumerate(zip(vectors.tolist(), mask.tolist(), strict=True)):
            assert found[image] == pytest.approx(np.array(oracle.matrix(heads, on, signed)))
        assert mean_correlation(kind(vectors), kind(mask), signed) == pytest.approx(
            oracle.mean(vectors.tolist(), mask.tolist(), signed))


def test_lengths_do_not_matter_not_even_those_whose_square_overflows():
    vectors, _ = example(1)
    for factor in (1e-170, 1e200):
        assert head_correlation(vectors * factor) == pytest.approx(head_correlation(vectors))


def test_a_zero_vector_and_a_head_switched_off_have_nothing_in_common():
    vectors, _ = example(2)
    zeros, mask = vectors.copy(), np.ones(vectors.shape[:2])
    zeros[:, 1], mask[:, 1] = 0, 0
    found = head_correlation(zeros)
    assert (found == head_correlation(vectors, mask)).all()
    assert (found[:, 1] == 0).all() and (found[:, :, 1] == 0).all()
    assert mean_correlation(vectors, mask) > mean_correlation(zeros)  # a pair left out is no zero


def test_collapsed_heads_have_one_and_none_more():
    same = np.repeat(np.random.default_rng(0).normal(size=(50, 1, 7)), 3, axis=1)
    assert mean_correlation(same) == pytest.approx(1)
    assert head_correlation(same * [[[1], [-2], [3]]]).max() <= 1


def test_bad_input_is_refused():
    vectors, mask = example(3)
    with pytest.raises(ValueError, match="one sub-embedding has no other"):
        head_correlation(vectors[:, :1])
    with pytest.raises(ValueError, match=r"must be \(n_images, K, D\)"):
        mean_correlation(vectors[0])
    with pytest.raises(ValueError, match=r"must be \(n_images, K, D\)"):
        head_correlation(vectors[:0])
    for value in (np.nan, np.inf):
        bad = vectors.copy()
        bad[4, 2, 1] = value
        with pytest.raises(ValueError, match="image 4, row 2"):
            head_correlation(bad)
    with pytest.raises(ValueError, match="no image has two heads"):
        mean_correlation(vectors, np.zeros_like(mask))
    for wrong in (mask[:, :2], mask * 0.5):
        with pytest.raises(ValueError, match=r"mask must be \(6, 4\) of zeros and ones"):
            head_correlation(vectors, wrong)
