"""RR and MR: ties, siblings, what stays below."""

import numpy as np
import pytest

from itr_study.metrics import first, ranks
from itr_study.rerank import RERANKERS
from tests.oracles import multi as multi_cases
from tests.oracles import reciprocal as reciprocal_cases
from tests.rerank.sets import cosines, orders


def tied(seed):
    scores, owner = cosines(seed)
    return np.round(scores, 1).astype(np.float32), owner


@pytest.mark.parametrize(("name", "cases"), [("reciprocal", reciprocal_cases),
                                             ("multi", multi_cases)])
@pytest.mark.parametrize("make", [cosines, tied])
def test_orders_are_those_of_stable_sorts_for_any_k(name, cases, make):
    for seed in range(8):
        scores, _ = make(seed)
        for k in (1, 2, 5, 36):
            arguments = {"k_i2t": k, "k_t2i": k} if name == "reciprocal" else {"k": k}
            for given in (scores, scores.astype(np.float64)):
                assert orders(RERANKERS[name](given, **arguments)) == list(
                    cases.oracle(scores.tolist(), **arguments)), (seed, k)


@pytest.mark.parametrize("arguments", [{"w1": 0.3, "w2": 1.1}, {"w1": 0.0, "w2": 0.0},
                                       {"w1": 50.0}, {"decay": 2.0}, {"unit": False}])
def test_multi_weighs_its_parts(arguments):
    for seed in range(5):
        scores, _ = cosines(seed)
        scores = np.abs(scores)
        assert orders(RERANKERS["multi"](scores, **arguments)) == list(
            multi_cases.oracle(scores.tolist(), **arguments))
    if arguments == {"w1": 0.0, "w2": 0.0}:
        assert orders(RERANKERS["multi"](scores, **arguments)) == orders(scores)


@pytest.mark.parametrize("make", [cosines, tied])
def test_siblings_stand_for_each_other(make):
    """The best reverse rank of any text of the query's image, in any number and order."""
    differ = 0
    for seed in range(6):
        scores, owner = make(seed)
        owner[:12] = np.arange(12)  # from one text an image to several
        expected = reciprocal_cases.oracle(scores.tolist(), siblings=owner.tolist())
        found = orders(RERANKERS["reciprocal"](scores, siblings=owner))
        assert found == list(expected), seed
        plain = orders(RERANKERS["reciprocal"](scores))
        assert found[0] == plain[0]
        differ += found[1] != plain[1]
    assert differ > 3


def test_equal_reverse_ranks_keep_the_order_and_what_is_equal_in_both_ties():
    # every text likes image 0 best: reverse ranks are 0 for it, 1 for image 1
    scores = np.array([[0.9, 0.8, 0.9, 0.7], [0.1, 0.3, 0.1, 0.2]])
    found = RERANKERS["reciprocal"](scores)
    assert orders(found)[0] == [[0, 2, 1, 3], [1, 3, 0, 2]]
    assert found.i2t[0, 0] == found.i2t[0, 2] > found.i2t[0, 1] > found.i2t[0, 3]
    assert ranks(found, np.array([0, 0, 1, 1])).i2t.tolist() == [2, 2]  # ties count against it


@pytest.mark.parametrize("scale", [1, 1000])
@pytest.mark.parametrize("name", ["reciprocal", "multi"])
def test_what_is_not_re_ordered_stays_as_it_was_below(name, scale):
    scores = scale * cosines(12)[0]
    arguments = {"k_i2t": 4, "k_t2i": 3} if name == "reciprocal" else {"k": 4, "unit": scale == 1}
    i2t, t2i = RERANKERS[name](scores, **arguments)
    lists = first(scores, 4)
    for row, before, results in ((i2t[5], scores[5], lists["i2t"][5]),
                                 (t2i[:, 8], scores[:, 8], lists["t2i"][8])):
        k = 3 if name == "reciprocal" and len(row) == 12 else 4
        rest = np.delete(np.arange(len(row)), results[:k])
        np.testing.assert_array_equal(row[rest], before[rest])
        assert row[results[:k]].min() > before.max()
        assert len(np.unique(row[results[:k]])) == k
