"""The bootstrap of the retrieval table."""

import numpy as np
import pytest

from itr_study.evaluation.table import bootstrap, bootstrap_difference, retrieval_table
from itr_study.metrics import Ranks, ranks
from tests.metrics.sets import random_set


def resample_directly(found, owner, draws):
    """The statistics of one resample of images, by concatenating lists."""
    i2t = found.i2t[draws]
    t2i = np.concatenate([found.t2i[owner == image] for image in draws])
    return retrieval_table(Ranks(i2t, t2i))


def test_bootstrap_equals_resampling_directly():
    found, owner = ranks(*random_set(4, images=30)), random_set(4, images=30)[1]
    draws = np.random.default_rng(7).integers(0, 30, (100, 30))
    tables = [resample_directly(found, owner, d) for d in draws]
    for key, interval in bootstrap(found, owner, n=100, seed=7, level=0.9).items():
        low, high = np.quantile([table[key] for table in tables], [0.05, 0.95])
        assert interval.value == pytest.approx(retrieval_table(found)[key])
        assert (interval.low, interval.high) == pytest.approx((low, high)), key


def test_bootstrap_is_determined_by_its_seed():
    scores, owner = random_set(5, images=30)
    found = ranks(scores, owner)
    assert bootstrap(found, owner) == bootstrap(found, owner)
    assert bootstrap(found, owner, n=100) != bootstrap(found, owner, n=100, seed=1)
    narrow, wide = bootstrap(found, owner, level=0.5), bootstrap(found, owner, level=0.99)
    assert all(wide[k].low <= narrow[k].low <= narrow[k].high <= wide[k].high for k in wide)


def test_bootstrap_covers_the_truth_about_as_often_as_it_says():
    rng, inside = np.random.default_rng(0), 0
    owner = np.repeat(np.arange(200), 2)
    for trial in range(200):
        found = Ranks(np.where(rng.random(200) < 0.4, 1, 50), np.full(400, 50))
        low, high = bootstrap(found, owner, n=300, seed=trial)["i2t_r1"][1:]
        inside += low <= 40 <= high
    assert 0.89 <= inside / 200 <= 0.99


def test_texts_of_an_image_are_resampled_together():
    # texts of an image share its fate: as few independent units as images, not as texts
    hit = np.random.default_rng(0).random(100) < 0.5
    owner = np.repeat(np.arange(100), 5)
    found = Ranks(np.where(hit, 1, 50), np.where(hit, 1, 50)[owner])
    interval = bootstrap(found, owner)
    assert interval["t2i_r1"] == pytest.approx(interval["i2t_r1"])


@pytest.mark.parametrize(("arguments", "message"), [
    (dict(n=0), "n must be >= 1"), (dict(level=1.0), "level"), (dict(level=0.0), "level")])
def test_bad_arguments_are_refused(arguments, message):
    scores, owner = random_set(6)
    with pytest.raises(ValueError, match=message):
        bootstrap(ranks(scores, owner), owner, **arguments)


def test_a_difference_is_that_of_both_sides_under_the_same_draws():
    """One run a side, by a loop over the same draws; a side less itself is nothing."""
    owner, rng = np.repeat(np.arange(40), 2), np.random.default_rng(3)
    sides = [Ranks(rng.integers(1, 20, 40), rng.integers(1, 20, 80)) for _ in range(4)]
    found = bootstrap_difference(sides[:2], sides[2:], owner, n=50)
    draws, values = np.random.default_rng(0).integers(0, 40, (50, 40)), []
    for draw in draws:
        texts = np.concatenate([np.flatnonzero(owner == image) for image in draw])
        tables = [retrieval_table(Ranks(one.i2t[draw], one.t2i[texts])) for one in sides]
        values.append([sum(t[name] for t in tables[:2]) / 2 - sum(t[name] for t in tables[2:]) / 2
                       for name in ("rsum", "t2i_meanr")])
    low, high = np.quantile(values, [0.025, 0.975], axis=0)
    for at, name in enumerate(("rsum", "t2i_meanr")):
        assert found[name][1:] == pytest.approx((low[at], high[at]))
    assert set(bootstrap_difference(sides, sides, owner, n=5)["rsum"]) == {0.0}
