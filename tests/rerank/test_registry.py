"""What every re-ranker must do; one without an oracle is red here."""

import doctest
import importlib
import pkgutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from itr_study import rerank
from itr_study.evaluation.evaluate import evaluate_scores
from itr_study.evaluation.table import retrieval_table
from itr_study.metrics import Scores, five_fold, folds, ranks, recall_of_ranks
from itr_study.rerank import RERANKERS, base
from tests.metrics.test_scores import READERS
from tests.rerank.sets import as_lists, cosines, orders

PRIMITIVES = {"base"}


def cases(name):
    return importlib.import_module(f"tests.oracles.{name}")


def expected_orders(name, scores, **arguments):
    """What the oracle says: of FR scores, of the others orders."""
    result = cases(name).oracle(scores.tolist(), **arguments)
    return orders(Scores(*map(np.array, result))) if name == "fast" else list(result)


def test_every_file_is_a_re_ranker_with_an_oracle():
    files = {m.name for m in pkgutil.iter_modules(rerank.__path__)}
    assert files - PRIMITIVES == set(RERANKERS)
    assert all(cases(name).HAND for name in RERANKERS)


@pytest.mark.parametrize("name", [*RERANKERS, *sorted(PRIMITIVES)])
def test_examples_in_docstrings(name):
    result = doctest.testmod(importlib.import_module(f"itr_study.rerank.{name}"))
    assert result.failed == 0 and (result.attempted or name not in RERANKERS)


@pytest.mark.parametrize("name", ["reciprocal", "multi"])
def test_hand_worked_orders(name):
    for scores, arguments, i2t, t2i in cases(name).HAND:
        assert cases(name).oracle(scores, **arguments) == (i2t, t2i)
        assert orders(RERANKERS[name](np.array(scores), **arguments)) == [i2t, t2i]


@pytest.mark.parametrize("name", RERANKERS)
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_orders_are_those_of_the_oracle(name, kind):
    for seed in range(10):
        scores, _ = cosines(seed)
        assert orders(RERANKERS[name](kind(scores))) == expected_orders(name, scores), seed


@pytest.mark.parametrize("name", RERANKERS)
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_ranks_are_those_of_the_matrices(name, kind):
    for seed in range(10):
        scores, owner = cosines(seed, matched=0.1)
        found = RERANKERS[name](kind(scores))
        lazy = as_lists(ranks(found, owner))
        assert not {"i2t", "t2i"} & set(vars(found))  # no matrix was made
        i2t, t2i = found
        assert type(i2t) is type(kind(scores)) and i2t.shape == t2i.shape == scores.shape
        assert lazy == as_lists(ranks(Scores(i2t, t2i), owner)), seed
        assert lazy != as_lists(ranks(scores, owner))


@pytest.mark.parametrize("name", RERANKERS)
def test_blocks_hold_queries_in_rows(name):
    scores, _ = cosines(1)
    found = RERANKERS[name](scores)
    i2t, t2i = found
    for direction, whole in (("i2t", i2t), ("t2i", t2i.T)):
        blocks = list(RERANKERS[name](scores).blocks(direction, 5))
        assert [queries.start for queries, _ in blocks] == list(range(0, len(whole), 5))
        np.testing.assert_array_equal(np.concatenate([part for _, part in blocks]), whole)


@pytest.mark.parametrize("name", RERANKERS)
def test_a_fold_is_re_ranked_within_itself(name):
    scores, owner = cosines(2, images=20)
    tables = [recall_of_ranks(ranks(RERANKERS[name](scores[images][:, texts].copy()), local))
              for images, texts, local in folds(owner, 20)]
    expected = {key: float(np.mean([table[key] for table in tables])) for key in tables[0]}
    assert five_fold(scores, owner, rerank=RERANKERS[name]) == expected
    over_all = five_fold(RERANKERS[name](scores), owner)
    assert over_all != expected  # re-ranked over all, then cut


@pytest.mark.parametrize("name", RERANKERS)
def test_each_direction_of_a_pair_is_re_ranked_from_its_own_matrix(name):
    scores, owner = cosines(3)
    other, _ = cosines(4)
    pair = RERANKERS[name](Scores(scores, other))
    i2t, t2i = pair
    np.testing.assert_array_equal(i2t, RERANKERS[name](scores).i2t)
    np.testing.assert_array_equal(t2i, RERANKERS[name](other).t2i)
    assert as_lists(ranks(pair, owner)) == (as_lists(ranks(RERANKERS[name](scores), owner))[0],
                                            as_lists(ranks(RERANKERS[name](other), owner))[1])


@pytest.mark.parametrize("name", RERANKERS)
@pytest.mark.parametrize("reader", READERS)
def test_every_metric_reads_it(name, reader):
    scores = np.tanh(np.random.default_rng(3).standard_normal((10, 30)).astype(np.float32))
    dense = Scores(*RERANKERS[name](scores))
    for key, value in READERS[reader](dense).items():
        np.testing.assert_array_equal(READERS[reader](RERANKERS[name](scores))[key], value)


@pytest.mark.parametrize("name", RERANKERS)
def test_it_is_evaluated_as_scores_are(name):
    scores, owner = cosines(13)
    table, best = evaluate_scores(RERANKERS[name](scores), SimpleNamespace(image_of_text=owner))
    dense = ranks(Scores(*RERANKERS[name](scores)), owner)
    assert as_lists(best) == as_lists(dense) and table == retrieval_table(dense)


@pytest.mark.parametrize("name", RERANKERS)
def test_a_part_is_computed_by_itself(name):
    scores, _ = cosines(4)
    lazy, dense = RERANKERS[name](scores), Scores(*RERANKERS[name](scores))
    for images, texts in ((slice(2, 7), slice(3, 20)), (np.array([4, 0]), np.array([9, 9, 30]))):
        for ours, expected in zip(lazy.cut(images, texts), dense.cut(images, texts), strict=True):
            np.testing.assert_array_equal(ours, expected)
    assert not {"i2t", "t2i"} & set(vars(lazy))


@pytest.mark.parametrize("name", RERANKERS)
@pytest.mark.parametrize("pairs", [1, 100, 10**9])
def test_the_size_of_blocks_changes_nothing(name, pairs, monkeypatch):
    scores, owner = cosines(5)
    expected = RERANKERS[name](scores)
    i2t, t2i = expected
    monkeypatch.setattr(base, "PAIRS", pairs)
    found = RERANKERS[name](scores)
    assert as_lists(ranks(found, owner)) == as_lists(ranks(expected, owner))
    np.testing.assert_allclose(found.i2t, i2t, rtol=1e-13)
    np.testing.assert_allclose(found.t2i, t2i, rtol=1e-13)


@pytest.mark.parametrize("name", RERANKERS)
def test_queries_of_equal_scores_tie_wherever_they_stand(name):
    """Every text twice, in odd numbers: copies get one score, to the last bit."""
    scores, _ = cosines(6, images=23, captions=1)
    twice = np.concatenate((scores, scores), axis=1)
    i2t, t2i = RERANKERS[name](np.concatenate((twice, scores[:, :1]), axis=1))
    if name == "fast":  # in lists of a fixed length a copy may be in, or out, or stand before
        np.testing.assert_array_equal(i2t[:, :23], i2t[:, 23:46])
    np.testing.assert_array_equal(t2i[:, :23].argmax(axis=0), t2i[:, 23:46].argmax(axis=0))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", RERANKERS)
def test_cuda_agrees(name):
    scores, owner = cosines(7, images=200)
    there, here = RERANKERS[name](torch.from_numpy(scores).cuda()), RERANKERS[name](scores)
    assert as_lists(ranks(there, owner)) == as_lists(ranks(here, owner))
    assert there.i2t.is_cuda and there.t2i.is_cuda
    np.testing.assert_allclose(there.i2t.cpu(), here.i2t, rtol=1e-9)
    np.testing.assert_allclose(there.t2i.cpu(), here.t2i, rtol=1e-9)
