"""The level of answers: worked values, a slow oracle, and its promise on simulated queries."""

import doctest

import numpy as np
import pytest

import itr_study.metrics.answers as module
from itr_study.metrics.answers import answer_level, auroc, best_scores, refusal_level


def test_examples():
    failed, tried = doctest.testmod(module)
    assert tried and not failed


def slow_level(best, right, wrong: float, lost: float) -> float:
    """Scores are tried as levels from above, and every right answer as the last one lost."""
    first = np.inf
    for level in sorted(set(best), reverse=True):
        answers = [holds for score, holds in zip(best, right, strict=True) if score >= level]
        if len(answers) >= max(0.1 * len(best), 1 / wrong) - 1e-9:
            if answers.count(False) + 1 > wrong * (len(answers) + 1) + 1e-9:
                break
            first = level
    kept = sorted(score for score, holds in zip(best, right, strict=True) if holds)
    second = -np.inf
    for k, score in enumerate(kept, start=1):
        if k <= lost * (len(kept) + 1) + 1e-9:
            second = score
    return max(first, second)


@pytest.mark.parametrize("wrong", [0.05, 0.1, 0.3, 0.5])
def test_the_level_is_that_of_the_slow_one(wrong):
    random = np.random.default_rng(int(100 * wrong))
    for queries in (1, 2, 9, 10, 57, 300):
        for lost in (0.0, 0.1, 0.3):
            best = random.integers(0, queries, queries) / 4  # with ties
            right = random.random(queries) < best / best.max(initial=1)
            level = answer_level(best, right, wrong, lost)
            assert level.score == slow_level(best.tolist(), right.tolist(), wrong, lost)
            assert level.answered == np.mean(best >= level.score) and level.queries == queries


def test_a_model_that_is_never_right_answers_nothing():
    level = answer_level(np.arange(40.0), np.zeros(40, bool))
    assert level.score == np.inf and level.answered == 0
    assert answer_level(np.arange(9.0), np.ones(9, bool)).score == np.inf  # too few to promise it
    assert answer_level(np.arange(10.0), np.ones(10, bool)).score == 0


@pytest.mark.parametrize("wrong", [0.1, 0.2, 0.3])
def test_the_promise_is_kept_within_two_points_on_new_queries(wrong):
    """By simulation, five seeds: what is right with the chance that its score says."""
    for seed in range(5):
        random = np.random.default_rng(seed)
        answers, kept = [], []
        for _ in range(200):
            best = random.random((2, 600))
            right = random.random((2, 600)) < best ** 0.5  # a third of all are wrong
            level = answer_level(best[0], right[0], wrong, lost=0.0)
            answers.append(right[1][best[1] >= level.score])
            bound = answer_level(best[0], right[0], wrong=0.999, lost=wrong)
            kept.append((best[1] >= bound.score)[right[1]].mean())
        assert 1 - np.concatenate(answers).mean() == pytest.approx(wrong, abs=0.02)
        assert np.mean(kept) == pytest.approx(1 - wrong, abs=0.02)


@pytest.mark.parametrize(("best", "right"), [
    ([0.1, np.nan], [True, True]), ([0.1], [True, False]), ([], []), ([[0.1]], [[True]])])
def test_what_is_no_calibration_is_refused(best, right):
    with pytest.raises(ValueError, match="best and right must be"):
        answer_level(np.array(best), np.array(right, bool))


def test_scores_with_and_without_the_match_are_those_of_the_slow_ones():
    random = np.random.default_rng(0)
    scores, owner = random.integers(0, 9, (4, 30)) / 4, random.integers(0, 4, 30)
    found, missing = best_scores(scores, owner)
    for t in range(30):
        assert found[t] == max(scores[:, t])
        assert missing[t] == max(scores[i, t] for i in range(4) if i != owner[t])
    pairs = [(a > b) + (a == b) / 2 for a in found for b in missing]
    assert auroc(found, missing) == pytest.approx(np.mean(pairs)) and auroc(found, found) == 0.5
    assert auroc(found, missing - 9) == 1


def test_a_share_of_new_queries_without_a_match_is_answered():
    random, shares = np.random.default_rng(1), []
    for _ in range(300):
        old, new = random.normal(size=(2, 99))
        shares.append((new > refusal_level(old, 0.2)).mean())
    assert np.mean(shares) == pytest.approx(0.2, abs=0.01)
    assert refusal_level(np.arange(8.0), 0.1) == np.inf
    assert refusal_level(np.arange(8.0), 1.0) == -np.inf
