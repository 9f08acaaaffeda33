"""Two matrices: every metric reads i2t of the one and t2i of the other, and refuses NaN in both."""

import doctest

import numpy as np
import pandas as pd
import pytest
import torch

import itr_study.metrics.scores as module
from itr_study import metrics
from itr_study.metrics import GRADED_METRICS, Scores, Truth, query_means
from itr_study.metrics.eccv import eccv_table
from itr_study.metrics.retrieval_sets import Matches, best_ranks, find
from itr_study.metrics.truth import DIRECTIONS
from tests.metrics.coco_sets import small_sets

OWNER = np.repeat(np.arange(10), 3)
GRADED = np.random.default_rng(9).random((10, 30), dtype=np.float32)
TRUTH = Truth(OWNER, 10, GRADED.__getitem__)


def as_dict(found):
    return {d: getattr(found, d) for d in DIRECTIONS}


def every_match(scores):
    return {d: find(scores, TRUTH.positives(d), d).ranks for d in DIRECTIONS}


def eccv(scores):
    image_ids, text_ids, sets = small_sets(0)
    return eccv_table(scores, image_ids, text_ids, sets)


# Each gives a dict whose names begin with the direction.
READERS = {
    "ranks": lambda scores: as_dict(metrics.ranks(scores, OWNER)),
    "best_ranks": lambda scores: best_ranks(
        scores, Matches(*(TRUTH.positives(d) for d in DIRECTIONS)))[0],
    "find": every_match,
    "five_fold": lambda scores: metrics.five_fold(scores, OWNER),
    "per_query": lambda scores: metrics.per_query(scores, TRUTH, metrics.ndcg_rows())[0],
    "query_means": lambda scores: query_means(scores, TRUTH, GRADED_METRICS),
    **{name: lambda scores, name=name: getattr(metrics, name)(scores, TRUTH)
       for name in ("recall", "map_at_r", "r_precision", "ndcg", "kendall", "coherent")},
}


def two(shape=(10, 30)):
    rng = np.random.default_rng(5)
    return [rng.standard_normal(shape).astype(np.float32) for _ in DIRECTIONS]


def check(reader, i2t, t2i):
    """The pair gives i2t of the first and t2i of the second, and the two differ in both."""
    apart = dict(zip(DIRECTIONS, (reader(i2t), reader(t2i)), strict=True))
    pair = reader(Scores(i2t, t2i))
    assert set(pair) == set(apart["i2t"])
    for name, value in pair.items():
        np.testing.assert_array_equal(value, apart[name[:3]][name])
    for direction in DIRECTIONS:
        assert any(not np.array_equal(apart["i2t"][name], apart["t2i"][name])
                   for name in pair if name.startswith(direction))
    same = reader(Scores(i2t, i2t.copy() if isinstance(i2t, np.ndarray) else i2t.clone()))
    for name, value in same.items():
        np.testing.assert_array_equal(value, apart["i2t"][name])


@pytest.mark.parametrize("name", READERS)
def test_each_direction_reads_its_own_matrix(name):
    check(READERS[name], *two())
    check(READERS[name], *map(torch.from_numpy, two()))


def test_coco_reads_its_own_matrix_in_each_direction():
    image_ids, text_ids, sets = small_sets(0)
    check(eccv, *two((len(image_ids), len(text_ids))))


@pytest.mark.parametrize("name", sorted(set(READERS) - {"five_fold"}))  # reads folds only
@pytest.mark.parametrize("bad", DIRECTIONS)
def test_nan_is_refused_in_either(name, bad):
    pair = dict(zip(DIRECTIONS, two(), strict=True))
    pair[bad][4, 7] = np.nan
    with pytest.raises(ValueError, match="found one at image 4, text 7"):
        READERS[name](Scores(**pair))


def test_both_have_one_shape_and_unpack():
    i2t, t2i = two()
    first, second = Scores(i2t, t2i)
    assert first is i2t and second is t2i and Scores(i2t, t2i).shape == (10, 30)
    assert Scores.of(i2t).single and not Scores.of(Scores(i2t, t2i)).single
    with pytest.raises(ValueError, match=r"got \(10, 30\) and \(30, 10\)"):
        Scores(i2t, t2i.T)


def test_a_part_of_a_plain_matrix_stays_one_matrix():
    part = Scores.of(two()[0]).cut(slice(2, 4), np.array([1, 5, 9]))
    assert part.single and part.shape == (2, 3)


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_blocks_hold_some_queries_of_a_direction_in_rows(kind):
    i2t, t2i = two((10, 600))
    scores = Scores(kind(i2t), kind(t2i))
    for direction, rows in (("i2t", i2t), ("t2i", t2i.T)):
        blocks = list(scores.blocks(direction, 7))
        assert [queries.start for queries, _ in blocks] == list(range(0, len(rows), 7))
        for queries, values in blocks:
            np.testing.assert_array_equal(values, rows[queries])
        np.testing.assert_array_equal(
            scores.of_queries(direction, np.array([9, 0, 9])), rows[[9, 0, 9]])
    with pytest.raises(ValueError, match="direction must be one of i2t, t2i"):
        next(scores.blocks("texts", 7))
    with pytest.raises(ValueError, match="size must be an integer >= 1"):
        next(scores.blocks("i2t", 0))


def test_columns_of_many_rows_are_turned_whole():
    matrix = two((600, 9))[0]
    turned = Scores.of(matrix).of_queries("t2i", slice(2, 5))
    np.testing.assert_array_equal(turned, matrix[:, 2:5].T)


def test_examples():
    result = doctest.testmod(module)
    assert result.attempted and not result.failed


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("turn", "message"), [
    (lambda scores: scores.tolist(), "numpy array or a torch tensor, got list; numpy.asarray"),
    (lambda scores: pd.DataFrame(scores), "numpy array or a torch tensor, got DataFrame"),
    (lambda scores: scores.astype(str), "must be real numbers, got <U"),
    (lambda scores: scores + 1j, "must be real numbers, got complex64"),
    (lambda scores: torch.from_numpy(scores + 1j), "must be real numbers, got torch.complex64"),
    (lambda scores: np.ma.masked_greater(scores, 1), "must not be masked"),
    (lambda scores: (scores * 9).astype(np.int64) + 2**60, "must lie within"),
    (lambda scores: torch.from_numpy(scores).long() - 2**60, "must lie within"),
    (lambda scores: np.zeros((), np.float32), r"n_images, n_texts.*\(\)"),
])
def test_what_is_no_matrix_of_numbers_is_refused(reader, turn, message):
    with pytest.raises(ValueError, match=message):
        READERS[reader](turn(two()[0]))


@pytest.mark.parametrize("count", [0, 1.5, True])
def test_what_is_no_count_is_refused(count):
    scores = two()[0]
    for reader in (lambda: metrics.recall(scores, TRUTH, ks=(count,)),
                   lambda: metrics.ndcg(scores, TRUTH, at=count),
                   lambda: find(scores, TRUTH.positives("i2t"), "i2t").recall_at(count)):
        with pytest.raises(ValueError, match="must be an integer >= 1"):
            reader()
