"""Kendall's tau, of all or of the best k: against loops and scipy, with ties, in any block size."""

import doctest
import importlib

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

from itr_study.metrics import coherent, coherent_rows, kendall, kendall_rows, per_query
from itr_study.metrics import graded as blocks
from tests.metrics.graded_sets import bad_input_is_refused, graded, graded_set
from tests.oracles import coherent as best_oracle
from tests.oracles.kendall_tau import graded_oracle

module = importlib.import_module("itr_study.metrics.kendall")


def test_examples_in_docstrings():
    result = doctest.testmod(module)
    assert result.attempted == 5 and not result.failed


def assert_equal(found, expected):
    assert found["i2t"].tolist() == pytest.approx(expected[0], abs=1e-12)
    assert found["t2i"].tolist() == pytest.approx(expected[1], abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["a", "b", "c"])
@pytest.mark.parametrize("tied", [False, True])
def test_equals_slow_oracle_on_graded_relevance(dtype, kind, tied):
    for seed in range(20):
        scores, relevance, truth = graded_set(seed, tied, dtype)
        expected = graded_oracle(scores.tolist(), relevance.tolist(), kind=kind)
        assert_equal(per_query(scores, truth, kendall_rows(kind))[0], expected)


@pytest.mark.parametrize("shape", [(2, 200), (3, 64), (20, 100)])
@pytest.mark.parametrize("kind", ["b", "c"])
def test_equals_scipy(shape, kind):
    rng = np.random.default_rng(sum(shape))
    scores = rng.integers(-200, 200, shape).astype(np.float32)
    relevance = (rng.integers(0, 50, shape) / 50).astype(np.float32)
    truth = graded(relevance)
    expected = [[kendalltau(s, r, variant=kind).statistic for s, r in zip(*rows, strict=True)]
                for rows in ((scores, relevance), (scores.T, relevance.T))]
    # of two images a text's relevances may tie: NaN there
    found, = per_query(scores, truth, kendall_rows(kind))
    assert_equal(found, [np.nan_to_num(x) for x in expected])


@pytest.mark.parametrize("n", [1, 2, 3, 5, 16, 17, 255, 256, 257, 1000, 5000])
def test_inversions_of_permutations(n):
    rng = np.random.default_rng(n)
    rows = np.stack([rng.permutation(n), np.arange(n), np.arange(n)[::-1], rng.permutation(n)])
    expected = [sum(int((row[k + 1:] < row[k]).sum()) for k in range(n)) for row in rows]
    assert module.inversions(rows.astype(np.uint32)).tolist() == expected


@pytest.mark.parametrize("n", [32767, 32768, 40000])
def test_inversions_of_long_lists(n):
    """Past 16 bits of places and 8 bits of bins: the reverse has all, one far swap 2 n - 3."""
    rows = np.stack([np.arange(n)[::-1], np.arange(n)])
    rows[1, [0, -1]] = rows[1, [-1, 0]]
    assert module.inversions(rows.astype(np.uint32)).tolist() == [n * (n - 1) // 2, 2 * n - 3]


@pytest.mark.parametrize("size", [1, 7, 64])
def test_block_size_changes_nothing(size, monkeypatch):
    scores, relevance, truth = graded_set(2, ties=True)
    monkeypatch.setattr(blocks, "BLOCK", size)
    assert_equal(per_query(scores, truth, kendall_rows())[0],
                 graded_oracle(scores.tolist(), relevance.tolist()))


def test_texts_read_the_columns_of_the_same_relevance():
    scores, truth = np.array([[1.0, 2.0], [0.0, 3.0]]), graded([[1, 0.5], [0, 0.2]])
    found, = per_query(scores, truth, kendall_rows("a"))
    assert found["i2t"].tolist() == [-1, 1]  # 1 < 2 though 1 > 0.5; 0 < 3 and 0 < 0.2
    assert found["t2i"].tolist() == [1, -1]  # 1 > 0 and 1 > 0; 2 < 3 though 0.5 > 0.2


@pytest.mark.parametrize("kind", ["a", "b", "c"])
def test_perfect_and_reversed_order(kind):
    relevance = np.random.default_rng(0).permutation(30).reshape(1, 30).astype(np.float32) / 30
    truth = graded(relevance, np.zeros(30, int))
    assert kendall(relevance, truth, kind)["i2t_tau"] == pytest.approx(1)
    assert kendall(-relevance, truth, kind)["i2t_tau"] == pytest.approx(-1)


@pytest.mark.parametrize("kind", ["a", "b", "c"])
def test_without_any_order_it_is_zero(kind):
    for scores, relevance in ((np.zeros((2, 3)), np.eye(2, 3)), (np.eye(2, 3), np.ones((2, 3)))):
        assert kendall(scores, graded(relevance), kind) == {"i2t_tau": 0, "t2i_tau": 0}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 3, 5, 100])
@pytest.mark.parametrize("tied", [False, True])
def test_the_coherent_score_equals_the_slow_oracle(dtype, k, tied):
    for seed in range(20):
        scores, relevance, truth = graded_set(seed, tied, dtype)
        found, = per_query(scores, truth, coherent_rows(k))
        assert_equal(found, best_oracle.graded_oracle(scores.tolist(), relevance.tolist(), k))


def test_of_a_short_list_the_coherent_score_is_kendalls_tau():
    scores, _, truth = graded_set(3)
    best, whole = per_query(scores, truth, coherent_rows(scores.size), kendall_rows())
    for direction, values in best.items():
        assert (values == whole[direction]).all()


def test_what_lies_behind_the_best_does_not_matter():
    """Places 0 to 9 hold the best; those behind are shuffled, of which one is fully relevant."""
    rng = np.random.default_rng(0)
    relevance = (rng.random((1, 50)) / 2).astype(np.float32)
    relevance[0, 40] = 1
    scores = np.arange(50.0)[::-1][None]
    truth = graded(relevance, np.zeros(50, int))
    shuffled = np.concatenate([scores[:, :10], rng.permutation(scores[:, 10:].T).T], 1)
    for k, same in ((10, True), (50, False)):
        values = [coherent(each, truth, k)[f"i2t_cs{k}"] for each in (scores, shuffled)]
        assert (values[0] == values[1]) is same


@pytest.mark.parametrize("metric", [kendall, coherent])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_tensor_and_array_agree(metric, dtype):
    scores, _, truth = graded_set(4, ties=True)
    tensor = torch.from_numpy(scores).to(dtype).requires_grad_()
    assert metric(tensor, truth) == metric(scores, truth)


def test_bad_input_is_refused():
    bad_input_is_refused(kendall)
    bad_input_is_refused(coherent)
    for k in (1, 0, -3, 2.0, None):
        with pytest.raises(ValueError, match="k must be an integer >= 2"):
            coherent(np.eye(2), graded(np.eye(2)), k=k)
    with pytest.raises(ValueError, match="kind must be one of a, b, c"):
        kendall(np.eye(2), graded(np.eye(2)), kind="tau")
