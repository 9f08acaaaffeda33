"""mAP@R, R-Precision and R@K on lists of matches: against sorting in Python, with ties."""

import doctest

import numpy as np
import pytest
import torch

import itr_study.metrics.retrieval_sets as module
from itr_study.metrics import Positives, Truth, map_at_r, r_precision, ranks
from itr_study.metrics.retrieval_sets import Matches, best_ranks, find
from tests.metrics.sets import random_set
from tests.oracles.sets import order, query_map_at_r, query_r_precision, query_recall_at


def random_lists(rng, queries, gallery, most):
    """Positives of every query, some lists empty, and the same as Python sets."""
    lists = [rng.permutation(gallery)[:rng.integers(0, most + 1)] for _ in range(queries)]
    starts = np.concatenate(([0], np.cumsum([len(x) for x in lists])))
    return Positives(starts, np.concatenate(lists).astype(np.int64)), [set(x) for x in lists]


def case(seed, ties=False, most=6):
    """(scores, matches, sets per direction)."""
    rng = np.random.default_rng(seed)
    images, texts = (int(n) for n in rng.integers(most, 60, 2))
    scores = rng.standard_normal((images, texts)).astype(np.float32)
    i2t, sets = random_lists(rng, images, texts, most)
    t2i, columns = random_lists(rng, texts, images, most)
    scores = np.round(scores) if ties else scores
    return scores, Matches(i2t, t2i), {"i2t": (scores, sets), "t2i": (scores.T, columns)}


def test_examples_in_docstrings():
    result = doctest.testmod(module)
    assert result.attempted == 6 and not result.failed


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("most", [6, 40])  # fewer and more than MANY
def test_equals_sorting(ties, most):
    for seed in range(10):
        scores, matches, lists = case(seed, ties, most)
        for direction, positives in matches._asdict().items():
            found = find(scores, positives, direction)
            rows = [(row, s) for row, s in zip(*lists[direction], strict=True) if s]
            assert found.map_at_r().tolist() == pytest.approx(
                [query_map_at_r(*row) for row in rows], abs=1e-12)
            assert found.r_precision().tolist() == pytest.approx(
                [query_r_precision(*row) for row in rows], abs=1e-12)
            for k in (1, 3, 10):
                assert found.recall_at(k).tolist() == [query_recall_at(*row, k) for row in rows]


def test_ranks_of_every_match():
    scores, matches, lists = case(0, ties=True)
    found = find(scores, matches.i2t, "i2t")
    for place, query in enumerate(found.queries):
        ordered, mine = order(scores[query], lists["i2t"][1][query]), lists["i2t"][1][query]
        expected = [rank for rank, item in enumerate(ordered, 1) if item in mine]
        assert found.ranks[found.starts[place]:found.starts[place + 1]].tolist() == expected


def test_a_match_outside_the_gallery_counts_in_r_and_is_never_found():
    # R = 3, one of them absent: ranks 1 and 2 -> (1 + 1) / 3, twice; query 1 has absent ones only
    scores = np.array([[0.9, 0.8, 0.1], [0.1, 0.2, 0.3]])
    lists = Positives(np.array([0, 2, 2]), np.array([0, 1]))
    found = find(scores, lists, "i2t", sizes=np.array([3, 2]))
    assert found.map_at_r().tolist() == [2 / 3, 0]
    assert found.r_precision().tolist() == [2 / 3, 0]
    assert found.recall_at(1).tolist() == [1, 0]


@pytest.mark.parametrize("ties", [False, True])
def test_best_ranks_of_several_sets_in_one_pass(ties):
    for seed in range(10):
        scores, matches, lists = case(seed, ties)
        other = Matches(*(Positives(p.starts, p.items[::-1].copy()) for p in matches))
        both = best_ranks(scores, matches, other)
        assert (both[1]["i2t"] != both[0]["i2t"]).any()
        for direction, positives in matches._asdict().items():
            found = find(scores, positives, direction)
            expected = np.zeros(len(positives), np.int64)
            some = np.diff(found.starts) > 0
            expected[found.queries[some]] = found.ranks[found.starts[:-1][some]]
            assert both[0][direction].tolist() == expected.tolist()


def test_best_ranks_are_ranks_where_each_text_has_one_image():
    scores, owner = random_set(0, ties=True, images=40)
    truth = Truth(owner)
    found, = best_ranks(scores, Matches(truth.positives("i2t"), truth.positives("t2i")))
    expected = ranks(scores, owner)
    assert (found["i2t"] == expected.i2t).all() and (found["t2i"] == expected.t2i).all()


def test_constant_scores_earn_what_is_left_at_the_end():
    truth = Truth(np.repeat(np.arange(4), 3))
    assert map_at_r(np.zeros((4, 12)), truth) == {"i2t_map_at_r": 0, "t2i_map_at_r": 0}
    assert r_precision(np.zeros((4, 12)), truth) == {"i2t_r_precision": 0, "t2i_r_precision": 0}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_tensor_and_array_agree(dtype):
    scores, owner = random_set(4, ties=True)
    tensor, truth = torch.from_numpy(scores).to(dtype).requires_grad_(), Truth(owner)
    assert map_at_r(tensor, truth) == map_at_r(scores, truth)
    matches = Matches(truth.positives("i2t"), truth.positives("t2i"))
    assert (best_ranks(tensor, matches)[0]["i2t"] == best_ranks(scores, matches)[0]["i2t"]).all()


def test_bad_input_is_refused():
    truth = Truth(np.array([0, 1]))
    nan = np.array([[0.1, 0.2], [0.3, np.nan]])
    matches = Matches(truth.positives("i2t"), truth.positives("t2i"))
    for call in (lambda: map_at_r(nan, truth), lambda: best_ranks(nan, matches)):
        with pytest.raises(ValueError, match="found one at image 1, text 1"):
            call()
    with pytest.raises(ValueError, match="for each of 3 queries; got 2"):
        find(np.zeros((3, 2)), truth.positives("i2t"), "i2t")
    with pytest.raises(ValueError, match=r"must be .* = \(2, 2\); got \(3, 2\)"):
        map_at_r(np.zeros((3, 2)), truth)
    with pytest.raises(ValueError, match=r"\(3, 2\) need as many lists of positives; got \(2, 2\)"):
        best_ranks(np.zeros((3, 2)), matches)
    with pytest.raises(ValueError, match="at least its length"):
        find(np.eye(2), truth.positives("i2t"), "i2t", sizes=np.array([0, 1]))
    with pytest.raises(ValueError, match="k must be an integer >= 1"):
        find(np.eye(2), truth.positives("i2t"), "i2t").recall_at(0)
