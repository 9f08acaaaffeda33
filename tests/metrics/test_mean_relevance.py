"""Mean relevance of the first k: one partition of keys, against sorting each list."""

import doctest
import importlib

import numpy as np
import pytest
import torch

from itr_study.metrics import mean_relevance, mean_relevance_rows, per_query
from tests.metrics.graded_sets import bad_input_is_refused, graded, graded_set
from tests.oracles.mean_relevance import graded_oracle

module = importlib.import_module("itr_study.metrics.graded")


def test_examples_in_docstrings():
    result = doctest.testmod(module)
    assert result.attempted == 4 and not result.failed


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 2, 3, 10, 100])
@pytest.mark.parametrize("tied", [False, True])
def test_equals_slow_oracle_on_graded_relevance(dtype, k, tied):
    for seed in range(20):
        scores, relevance, truth = graded_set(seed, tied, dtype)
        expected = graded_oracle(scores.tolist(), relevance.tolist(), k)
        values, = per_query(scores, truth, mean_relevance_rows(k))
        for direction, of_queries in zip(("i2t", "t2i"), expected, strict=True):
            assert values[direction].tolist() == pytest.approx(of_queries, abs=1e-12)


def test_it_is_the_first_ten_not_the_last():
    """Of twelve texts in falling order the two least relevant stand last."""
    relevance = np.array([[1.0] * 10 + [0.25, 0.5]], np.float32)
    scores, truth = np.arange(12.0)[::-1][None], graded(relevance, np.zeros(12, int))
    assert mean_relevance(scores, truth)["i2t_rel10"] == 1
    assert mean_relevance(-scores, truth)["i2t_rel10"] == pytest.approx((8 + 0.75) / 10)


def test_of_equal_scores_the_least_relevant_count():
    """Constant scores earn the ten least relevant, however they stand in the matrix."""
    relevance = np.random.default_rng(0).random((1, 30)).astype(np.float32)
    truth = graded(relevance, np.zeros(30, int))
    expected = np.sort(relevance[0])[:10].mean(dtype=np.float64)
    assert mean_relevance(np.zeros((1, 30)), truth)["i2t_rel10"] == pytest.approx(expected)
    zeros = graded(np.array([[-0.0, 0.5, 0.0, 0.25]]), np.zeros(4, int))  # -0.0 is least, as 0 is
    assert mean_relevance(np.zeros((1, 4)), zeros, 2)["i2t_rel2"] == 0
    with_minus = np.where(np.arange(30) % 2, 0.0, -0.0)[None]
    assert mean_relevance(with_minus, truth)["i2t_rel10"] == pytest.approx(expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_tensor_and_array_agree(dtype):
    scores, _, truth = graded_set(4, ties=True)
    tensor = torch.from_numpy(scores).to(dtype).requires_grad_()
    assert mean_relevance(tensor, truth, 3) == mean_relevance(scores, truth, 3)


def test_bad_input_is_refused():
    bad_input_is_refused(mean_relevance)
    for k in (0, -3, 2.0, None):
        with pytest.raises(ValueError, match="k must be"):
            mean_relevance(np.eye(2), graded(np.eye(2)), k=k)
