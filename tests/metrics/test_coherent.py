"""The coherent score: Kendall's tau of the best k, against sorting and comparing all pairs."""

import doctest
import importlib

import numpy as np
import pytest
import torch

from itr_study.metrics import coherent, coherent_per_query, kendall_per_query
from tests.metrics.graded_sets import bad_input_is_refused, graded, graded_set
from tests.oracles.coherent import graded_oracle

module = importlib.import_module("itr_study.metrics.coherent")


def test_examples_in_docstrings():
    result = doctest.testmod(module)
    assert result.attempted == 3 and not result.failed


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 3, 5, 100])
@pytest.mark.parametrize("tied", [False, True])
def test_equals_slow_oracle(dtype, k, tied):
    for seed in range(20):
        scores, relevance, truth = graded_set(seed, tied, dtype)
        found = coherent_per_query(scores, truth, k)
        expected = graded_oracle(scores.tolist(), relevance.tolist(), k)
        for direction, values in zip(("i2t", "t2i"), expected, strict=True):
            assert found[direction].tolist() == pytest.approx(values, abs=1e-12)


def test_of_a_short_list_it_is_kendalls_tau():
    scores, _, truth = graded_set(3)
    expected = kendall_per_query(scores, truth)
    for direction, values in coherent_per_query(scores, truth, scores.size).items():
        assert (values == expected[direction]).all()


def test_what_lies_behind_the_best_does_not_matter():
    """Places 0 to 9 hold the best; those behind are shuffled, of which one is fully relevant."""
    rng = np.random.default_rng(0)
    relevance = (rng.random((1, 50)) / 2).astype(np.float32)
    relevance[0, 40] = 1
    scores = np.arange(50.0)[::-1][None]
    truth = graded(relevance, np.zeros(50, int))
    shuffled = np.concatenate([scores[:, :10], rng.permutation(scores[:, 10:].T).T], 1)
    assert coherent_per_query(shuffled, truth, 10)["i2t"] == coherent_per_query(
        scores, truth, 10)["i2t"]
    assert coherent_per_query(scores, truth, 50)["i2t"] != coherent_per_query(
        shuffled, truth, 50)["i2t"]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_tensor_and_array_agree(dtype):
    scores, _, truth = graded_set(4, ties=True)
    tensor = torch.from_numpy(scores).to(dtype).requires_grad_()
    assert coherent(tensor, truth, 3) == coherent(scores, truth, 3)


def test_bad_input_is_refused():
    bad_input_is_refused(coherent)
    for k in (1, 0, -3, 2.0, None):
        with pytest.raises(ValueError, match="k must be a whole number of at least 2"):
            coherent(np.eye(2), graded(np.eye(2)), k=k)
