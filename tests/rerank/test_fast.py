"""FR: by hand, the right axis, the winner left out, scales in their places, near ties, the bank."""

import re
import sys

import numpy as np
import pytest
import torch

from itr_study.metrics import Scores, ranks
from itr_study.rerank import RERANKERS, Bank, fast_grid
from itr_study.rerank.fast import FlatScores
from tests.oracles import fast as cases
from tests.rerank.sets import as_lists, cosines, orders

fast = RERANKERS["fast"]
module = sys.modules["itr_study.rerank.fast"]  # the package shows the function of the same name


def test_hand_worked():
    for scores, arguments, i2t, t2i in cases.HAND:
        found = fast(np.array(scores), **arguments)
        np.testing.assert_allclose(found.i2t, i2t, atol=1e-12)
        np.testing.assert_allclose(found.t2i, t2i, atol=1e-12)
        np.testing.assert_allclose(cases.oracle(scores, **arguments), (i2t, t2i), atol=1e-12)


@pytest.mark.parametrize("scales", [(25, 25, 20, 20), (9, 8, 8, 17), (1, 1500, 1500, 1)])
def test_equals_the_slow_oracle(scales):
    names = ("gamma1", "gamma2", "lambda1", "lambda2")
    arguments = dict(zip(names, scales, strict=True))
    for seed in range(5):
        scores, _ = cosines(seed)
        expected = cases.oracle(scores.astype(np.float64).tolist(), **arguments)
        np.testing.assert_allclose(tuple(fast(scores, **arguments)), expected, rtol=1e-9)


def test_i2t_is_normalised_over_images_and_t2i_over_texts():
    """Over the other axis every query's order would be that of the scores as they are."""
    scores, _ = cosines(0)
    found, before = orders(fast(scores)), orders(scores)
    assert found[0] != before[0] and found[1] != before[1]
    hub = np.zeros((4, 4))
    hub[:, 0] = 0.5  # all images like text 0
    hub[2, 1] = 0.4
    assert orders(hub)[0][2][0] == 0 and orders(fast(hub))[0][2][0] == 1


@pytest.mark.parametrize("spread", [0.1, 1, 30])
def test_winners_do_not_tie(spread):
    """At 1,500 even where the second is so far behind that exp of it is no number."""
    scores = np.random.default_rng(0).uniform(-spread, spread, (12, 30)).astype(np.float32)
    found = fast(scores, 1500, 1500, 1500, 1500)
    for values, queries in ((found.i2t, scores), (found.t2i.T, scores.T)):
        won = values[queries.argmax(axis=0), np.arange(queries.shape[1])]
        assert np.isfinite(values).all() and len(np.unique(won)) == len(won) and (won < 0).all()
        ascending = np.sort(queries.astype(np.float64), axis=0)
        lead = ascending[-1] - ascending[-2]
        clear = lead > 0.03  # the sum is that of the second, and the order that of the leads
        assert clear.sum() > 2 or spread == 0.1
        np.testing.assert_array_equal(np.argsort(won[clear]), np.argsort(lead[clear]))


def test_the_winner_is_left_out_of_its_sum():
    """With it log(1 + sum) would be log(2 + rest), for every winner the same but for rounding."""
    found = fast(np.array([[1.0, 0.9, 0.5], [0.0, 0.0, 0.0]]), 30, 30)
    np.testing.assert_allclose(found.i2t[0], [-np.exp(-30), -np.exp(-27), -np.log1p(np.exp(-15))],
                               rtol=1e-9)


@pytest.mark.parametrize(("ours", "theirs"), [((0, 1), (1, 0)), ((2, 3), (3, 2))])
def test_each_scale_has_its_place(ours, theirs):
    """The first of a pair scales all queries, the second the pair; one direction at a time."""
    scores, _ = cosines(9)
    scales, swapped = [9.0, 8.0, 7.0, 17.0], [9.0, 8.0, 7.0, 17.0]
    swapped[ours[0]], swapped[ours[1]] = scales[theirs[0]], scales[theirs[1]]
    found, other = fast(scores, *scales), fast(scores, *swapped)
    moved, same = ("i2t", "t2i") if ours == (0, 1) else ("t2i", "i2t")
    assert (vars(found).get(same, found.by_direction(same)) == other.by_direction(same)).all()
    assert orders(found)[moved == "t2i"] != orders(other)[moved == "t2i"]


def test_few_queries_are_counted_again_where_scores_differ(monkeypatch):
    counted = []
    again = module.ranks_of_queries
    monkeypatch.setattr(module, "ranks_of_queries", lambda scores, direction, owner, queries: (
        counted.extend(queries), again(scores, direction, owner, queries))[1])
    scores, owner = cosines(10, images=60)
    ranks(fast(scores), owner)
    assert len(counted) < 10
    same = np.repeat(scores[:, :60], 2, axis=1)  # each text and a copy, of two images
    ranks(fast(same), np.arange(120) % 60)
    assert len(counted) >= 60


@pytest.mark.parametrize("scales", [
    (25, 25, 20, 20), (9, 8, 8, 17), (1500, 1500, 1500, 1500), (1, 1500, 1500, 1),
    (1500, 1, 1, 1500), (1e-3, 1e3, 1e3, 1e-3)])
@pytest.mark.parametrize("change", [
    lambda s: np.round(s, 1), lambda s: np.round(s, 2) + 1000, lambda s: s + np.float32(1e4),
    lambda s: s.astype(np.float64) + 1e-12 * np.arange(s.size).reshape(s.shape) % 5,
    lambda s: 1e-30 * s, lambda s: (100 * s).astype(np.int16)])
def test_counted_ranks_are_those_of_the_matrices_where_scores_are_near(scales, change):
    for seed in range(6):
        scores, owner = cosines(seed, matched=0.1)
        found = fast(change(scores), *scales)
        assert as_lists(ranks(found, owner)) == as_lists(ranks(Scores(*found), owner)), seed


def test_more_rows_than_a_byte_counts():
    scores, owner = cosines(11, images=400, captions=1, matched=0.0)
    found = fast(scores)
    assert as_lists(ranks(found, owner)) == as_lists(ranks(Scores(*found), owner))
    assert ranks(found, owner).t2i.max() > 255


def test_a_bank_normalises_each_query_alone():
    scores, owner = cosines(5)
    images, texts = cosines(6, images=7)[0][:, :36], cosines(7, captions=2)[0]
    bank = Bank(np.tile(images, (1, 2))[:, :36], texts)
    for scales in ((25, 25, 20, 20), (9, 8, 8, 17)):
        found = fast(scores, *scales, bank=bank)
        i2t = [[cases.alone(float(x), bank.images[:, j].tolist(), *scales[:2])
                for j, x in enumerate(row)] for row in scores]
        t2i = [[cases.alone(float(x), bank.texts[i].tolist(), *scales[2:])
                for x in row] for i, row in enumerate(scores)]
        np.testing.assert_allclose(found.i2t, i2t, atol=1e-9)
        np.testing.assert_allclose(found.t2i, t2i, atol=1e-9)
        few = fast(scores[:1], *scales, bank=Bank(bank.images, texts[:1]))
        np.testing.assert_array_equal(few.i2t, found.i2t[:1])  # other queries change nothing
    assert (ranks(fast(scores), owner).i2t != ranks(found, owner).i2t).any()


def test_the_grid_is_r_at_1_of_every_pair_of_scales():
    scores, owner = cosines(8, images=40, matched=0.2)
    first, second = (1, 10, 1500), (5, 25)
    grid = fast_grid(scores, owner, first, second)
    assert grid["i2t"].shape == grid["t2i"].shape == (3, 2)
    for a, one in enumerate(first):
        for b, two in enumerate(second):
            best = ranks(fast(scores, one, two, one, two), owner)
            assert grid["i2t"][a, b] == (best.i2t == 1).mean()
            assert grid["t2i"][a, b] == (best.t2i == 1).mean()
    assert len(np.unique(grid["i2t"])) > 2


def collapsed(size, seed=0, images=60):
    """Cosines of vectors that hardly differ from one direction, by unequal lengths, and owners."""
    rng = np.random.default_rng(seed)
    own = rng.standard_normal((images, 32)) * np.exp(0.7 * rng.standard_normal((images, 1)))
    vectors = [own, own + 0.5 * rng.standard_normal(own.shape)]
    for one in vectors:
        one *= size / 32**0.5
        one[:, 0] += 1
        one /= np.linalg.norm(one, axis=1, keepdims=True)
    return vectors[0] @ vectors[1].T, np.arange(images)


def first_share(scores, owner):
    return (ranks(scores, owner).i2t == 1).mean()


@pytest.mark.parametrize("size", [0.01, 0.03])
def test_a_collapsed_model_is_warned_of_with_scales_that_lose_less(size):
    """Exact arithmetic does not save it: what is taken off is what told the vectors apart."""
    scores, owner = collapsed(size)
    with pytest.warns(FlatScores, match=r"i2t: gamma1 = 25 times .*; t2i: lambda1 = 20") as told:
        found = fast(scores)
    assert len(told) == 1 and told[0].filename == __file__
    before, after = first_share(scores, owner), first_share(found, owner)
    assert after < before - 0.2
    remedy = dict(re.findall(r"(gamma1|gamma2|lambda1|lambda2)=(\d+)", str(told[0].message)))
    better = fast(scores, **{name: float(scale) for name, scale in remedy.items()})
    assert first_share(better, owner) > after + 0.1


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy, lambda scores: Scores(
    scores, scores.copy())])
def test_only_the_direction_whose_scale_is_too_small_is_warned_of(kind, recwarn):
    scores = cosines(3)[0]
    fast(kind(scores))
    fast(kind(scores + 100))  # what all share takes nothing away
    fast(kind(np.zeros_like(scores)))  # equal scores have no order to lose
    fast(kind(scores[:1]), lambda1=20)
    assert not recwarn.list
    with pytest.warns(FlatScores, match=r"ranking, t2i: lambda1 = 1 times .*try lambda1=\d+,"):
        fast(kind(scores), lambda1=1)
    with pytest.warns(FlatScores, match=r"ranking, i2t: gamma1 = 1 times [^;]*$"):
        fast(kind(scores), gamma1=1)


def test_of_a_bank_its_own_spread_counts(recwarn):
    scores = cosines(3)[0]
    fast(scores, bank=Bank(cosines(4)[0], cosines(5)[0]))
    assert not recwarn.list
    with pytest.warns(FlatScores, match="ranking, t2i"):
        fast(scores, bank=Bank(cosines(4)[0], cosines(5)[0] / 100))
