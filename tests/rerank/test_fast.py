"""FR: by hand, the right axis, the winner left out, scales in their places, the bank."""

import numpy as np
import pytest

from itr_study.metrics import ranks
from itr_study.rerank import RERANKERS, Bank, fast_grid
from tests.oracles import fast as cases
from tests.rerank.sets import cosines, orders

fast = RERANKERS["fast"]


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


def test_winners_of_columns_do_not_tie():
    rng = np.random.default_rng(0)
    scores = rng.uniform(-1, 1, (12, 30)).astype(np.float32)
    found = fast(scores, 1500, 1500, 1500, 1500)
    for values, winners in ((found.i2t, scores.argmax(axis=0)),
                            (found.t2i.T, scores.argmax(axis=1))):
        won = values[winners, np.arange(len(winners))]
        assert np.isfinite(values).all() and len(np.unique(won)) == len(won) and (won < 0).all()


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
