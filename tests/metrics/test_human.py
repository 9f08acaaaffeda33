"""Agreement with people: Kendall's tau by counting pairs, Pearson and Spearman by definition."""

import doctest

import numpy as np
import pytest

import itr_study.metrics.human as module
from itr_study.data.base import Judgements
from itr_study.data.cxc import Crisscrossed
from itr_study.metrics.human import cxc_correlation, human_correlation
from tests.oracles import human as slow


def judged(seed, tau="c", raters=3, n=40):
    rng = np.random.default_rng(seed)
    ratings = rng.integers(1, 5, (n, raters)).astype(float)
    ratings[rng.random((n, raters)) < 0.1] = np.nan
    own = rng.random(n) < 0.2
    ratings[own] = 4
    scores = np.round(rng.random(n), 1)  # with ties
    return scores, Judgements("expert", ("i",) * n, ("t#0",) * n, ratings, own, tau)


def rated(n=30):
    rng = np.random.default_rng(0)
    ratings = rng.integers(0, 6, n).astype(float)
    own = np.arange(n) < 12
    return ratings + rng.normal(size=n), Crisscrossed("sits", "test", np.arange(n), np.arange(n),
                                                      ratings, own)


def test_example_in_docstring():
    result = doctest.testmod(module)
    assert result.attempted and not result.failed


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("tau", ["b", "c"])
@pytest.mark.parametrize("seed", range(4))
def test_tau_by_counting_pairs(seed, tau, own):
    scores, said = judged(seed, tau)
    ours, theirs = [], []
    for score, ratings, is_own in zip(scores, said.ratings, said.own, strict=True):
        for rating in ratings:
            if (own or not is_own) and not np.isnan(rating):
                ours.append(score)
                theirs.append(rating)
    expected = slow.tau(ours, theirs, tau)
    assert human_correlation(scores, said, own=own) == {
        f"expert_tau_{tau}": pytest.approx(expected)}


def test_own_captions_are_left_out_by_default():
    scores, said = judged(0)
    best = np.where(said.own, 9.0, scores)
    assert human_correlation(best, said) == human_correlation(scores, said)
    assert human_correlation(best, said, own=True) != human_correlation(scores, said, own=True)


@pytest.mark.parametrize("own", [False, True])
def test_cxc_by_definition(own):
    scores, pairs = rated()
    kept = np.ones(30, bool) if own else ~pairs.own
    found = cxc_correlation(scores, pairs, own=own)
    assert found["pearson"] == pytest.approx(slow.pearson(scores[kept], pairs.ratings[kept]))
    assert found["spearman"] == pytest.approx(slow.spearman(scores[kept], pairs.ratings[kept]))


def test_equal_scores_order_nothing():
    _, said = judged(0)
    assert human_correlation(np.zeros(40), said) == {"expert_tau_c": 0.0}
    assert cxc_correlation(np.ones(30), rated()[1]) == {"pearson": 0.0, "spearman": 0.0}


def test_bad_scores_are_refused():
    scores, said = judged(0)
    with pytest.raises(ValueError, match=r"each of the 40 pairs, got \(39,\)"):
        human_correlation(scores[1:], said)
    with pytest.raises(ValueError, match="nan or inf first at pair 3"):
        human_correlation(np.where(np.arange(40) == 3, np.nan, scores), said)
    with pytest.raises(ValueError, match=r"got \(30, 1\)"):
        cxc_correlation(rated()[0][:, None], rated()[1])
    only = said.take(np.flatnonzero(said.own))
    with pytest.raises(ValueError, match="at least two ratings, got 0.*own=True"):
        human_correlation(np.zeros(len(only)), only)
