"""NDCG by counting and by sorted keys: against loops, whatever the blocks, types and ties."""

import doctest
import importlib

import numpy as np
import pytest
import torch

from itr_study.metrics import graded as blocks
from itr_study.metrics import ndcg, ndcg_rows, per_query
from itr_study.metrics.truth import Truth
from tests.metrics.graded_sets import bad_input_is_refused, graded, graded_set
from tests.oracles.ndcg import graded_oracle

module = importlib.import_module("itr_study.metrics.ndcg")


def test_examples_in_docstrings():
    result = doctest.testmod(module)
    assert result.attempted == 2 and not result.failed


def assert_equal(found, expected, **how):
    assert found["i2t"].tolist() == pytest.approx(expected[0], **how)
    assert found["t2i"].tolist() == pytest.approx(expected[1], **how)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ties", ["worst", "paper"])
@pytest.mark.parametrize("at", [None, 1, 3, 100])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("few", [0, 3, 99])  # sorted; some blocks counted; counted
def test_equals_slow_oracle_on_graded_relevance(dtype, ties, at, tied, few, monkeypatch):
    monkeypatch.setattr(module, "FEW", few)
    for seed in range(20):
        scores, relevance, truth = graded_set(seed, tied, dtype)
        expected = graded_oracle(scores.tolist(), relevance.tolist(), ties=ties, at=at)
        assert_equal(per_query(scores, truth, ndcg_rows(ties, at))[0], expected, abs=1e-12)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_block_size_changes_nothing(size, monkeypatch):
    scores, relevance, truth = graded_set(2, ties=True)
    monkeypatch.setattr(blocks, "BLOCK", size)
    monkeypatch.setattr(blocks, "HELD", 3 * size)  # columns of relevance, a panel at a time
    expected = graded_oracle(scores.tolist(), relevance.tolist())
    assert_equal(per_query(scores, truth, ndcg_rows())[0], expected, abs=1e-12)


def test_it_says_how_many_queries_are_done(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 20)
    told, (scores, _, truth) = [], graded_set(5, ties=True)
    per_query(scores, truth, ndcg_rows(), show=told.append)
    assert told == sorted(told) and len(told) > 2 and told[-1] == sum(scores.shape)


@pytest.mark.parametrize("few", [0, 99])
def test_a_perfect_list_has_exactly_one(few, monkeypatch):
    """Models that are both perfect must not differ by a rounding."""
    monkeypatch.setattr(module, "FEW", few)
    matches = (np.arange(4)[:, None] == np.repeat(np.arange(4), 5)).astype(np.float32)
    assert set(per_query(matches, graded(matches), ndcg_rows())[0]["i2t"]) == {1.0}


def test_where_few_are_relevant_nothing_is_sorted(monkeypatch):
    monkeypatch.setattr(module, "sorted_dcg", pytest.fail)
    random = np.random.default_rng(0)
    scores, truth = random.normal(size=(50, 250)), Truth(np.repeat(np.arange(50), 5))
    found, = per_query(scores, truth, ndcg_rows())
    assert 0 < found["i2t"].mean() < 1


def test_relevance_is_asked_for_once(monkeypatch):
    monkeypatch.setattr(blocks, "IMAGES", 3)
    asked = []

    def relevance(images):
        asked.extend(range(10)[images])
        return np.ones((len(range(10)[images]), 10))

    truth = graded(np.ones((10, 10)))
    object.__setattr__(truth, "graded", relevance)
    ndcg(np.zeros((10, 10)), truth)
    assert asked == list(range(10))


def test_texts_read_the_columns_of_the_same_relevance():
    # relevance is not symmetric: text 1 is found by image 0 (r = 0.5), not image 1 by text 0
    truth = graded([[1, 0.5], [0, 1]])
    found, = per_query(np.array([[2.0, 2.0], [1.0, 1.0]]), truth, ndcg_rows())
    half = 2**0.5 - 1
    third = 1 / np.log2(3)
    assert found["t2i"].tolist() == pytest.approx([1, (half + third) / (1 + half * third)])
    assert found["i2t"].tolist() == pytest.approx([(half + third) / (1 + half * third), third])


def test_a_perfect_order_scores_one_though_relevance_ties():
    relevance = np.array([[1, 1, 0.5, 0.5, 0.5, 0.0]], np.float32)
    truth = graded(relevance, np.zeros(6, int))
    assert ndcg(relevance - 0.1 * np.arange(6) / 6, truth)["i2t_ndcg"] == pytest.approx(1)


def test_tied_scores_earn_the_worst_order():
    scores, relevance, truth = graded_set(3, ties=True)
    worst, lucky = (ndcg(scores + sign * 1e-4 * relevance, truth) for sign in (-1, 1))
    assert ndcg(scores, truth) == pytest.approx(worst)
    assert ndcg(scores, truth)["i2t_ndcg"] < lucky["i2t_ndcg"]


def test_a_query_without_relevant_items_has_zero():
    found, = per_query(np.zeros((2, 2)), graded([[1, 0], [0, 0]]), ndcg_rows())
    assert found["i2t"][1] == 0 and found["t2i"][1] == 0
    assert ndcg(np.zeros((2, 2)), graded(np.zeros((2, 2)))) == {"i2t_ndcg": 0, "t2i_ndcg": 0}


def test_one_image_with_one_text():
    assert ndcg(np.array([[0.0]]), graded([[0.3]])) == {"i2t_ndcg": 1, "t2i_ndcg": 1}


@pytest.mark.parametrize("few", [0, 2])
def test_zero_and_minus_zero_tie(few, monkeypatch):
    monkeypatch.setattr(module, "FEW", few)  # sorted, counted
    truth = graded([[1, 0]], np.zeros(2, int))
    for dtype in (np.float32, np.float64):
        for values in ([0.0, -0.0], [-0.0, 0.0]):
            found, = per_query(np.array([values], dtype), truth, ndcg_rows())
            assert found["i2t"].tolist() == pytest.approx([1 / np.log2(3)])
    grades = graded([[-0.0, 1]], np.zeros(2, int))  # of relevance, too: of two that tie 1 is last
    assert ndcg(np.zeros((1, 2)), grades)["i2t_ndcg"] == pytest.approx(1 / np.log2(3))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_tensor_and_array_agree(dtype):
    scores, _, truth = graded_set(4, ties=True)
    tensor = torch.from_numpy(scores).to(dtype).requires_grad_()
    assert ndcg(tensor, truth) == pytest.approx(ndcg(scores, truth))


def test_infinite_scores_have_their_place():
    truth = graded([[1, 0.5, 0]], np.zeros(3, int))
    for dtype in (np.float32, np.float64):
        scores = np.array([[np.inf, 3, -np.inf]], dtype)
        assert ndcg(scores, truth)["i2t_ndcg"] == 1
        assert ndcg(-scores, truth)["i2t_ndcg"] < 1


def test_bad_input_is_refused():
    bad_input_is_refused(ndcg)
    for arguments in (dict(at=0), dict(ties="best")):
        with pytest.raises(ValueError, match="must be"):
            ndcg(np.eye(2), graded(np.eye(2)), **arguments)
