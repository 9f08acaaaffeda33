"""What every metric must do; a metric without an oracle is red here."""

import importlib
import pkgutil

import numpy as np
import pytest

from itr_study import metrics
from itr_study.metrics import GRADED_METRICS, Truth, query_means
from tests.metrics.sets import METRICS, random_set

LEAST = {"kendall": -1, "coherent": -1}  # every other metric is a fraction
PRIMITIVES = {"ranks", "truth", "graded", "human", "retrieval_sets", "eccv", "intervals",
              "scores", "first", "entropy", "attention", "answers"}

# Where a loss has the name of a metric, the oracle of the metric is called otherwise.
ORACLES = {"kendall": "kendall_tau"}


def cases(name):
    return importlib.import_module(f"tests.oracles.{ORACLES.get(name, name)}")


def test_every_file_is_tested_here():
    files = {m.name for m in pkgutil.iter_modules(metrics.__path__)}
    assert files - PRIMITIVES <= set(METRICS)


@pytest.mark.parametrize("name", METRICS)
def test_hand_worked_values(name):
    assert cases(name).HAND
    for scores, owner, arguments, expected in cases(name).HAND:
        truth = Truth(np.array(owner), len(scores))
        ours = getattr(metrics, name)(np.array(scores), truth, **arguments)
        assert ours == pytest.approx(expected)
        assert cases(name).oracle(scores, owner, **arguments) == pytest.approx(expected)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("ties", [False, True])
def test_equals_slow_oracle_and_is_a_fraction(name, ties):
    for seed in range(25):
        scores, owner = random_set(seed, ties)
        ours = getattr(metrics, name)(scores, Truth(owner))
        assert ours == pytest.approx(cases(name).oracle(scores.tolist(), owner.tolist())), seed
        assert all(LEAST.get(name, 0) <= value <= 1 for value in ours.values())


@pytest.mark.parametrize("name", METRICS)
def test_order_of_images_and_texts_does_not_matter(name):
    scores, owner = random_set(1)
    rng = np.random.default_rng(0)
    rows, columns = (rng.permutation(n) for n in scores.shape)
    moved = np.argsort(rows)[owner[columns]]
    assert getattr(metrics, name)(scores[rows][:, columns], Truth(moved)) == pytest.approx(
        getattr(metrics, name)(scores, Truth(owner)))


def test_the_metrics_of_runs_are_those_by_name_in_one_walk():
    scores, owner = random_set(2, ties=True)
    truth = Truth(owner)
    assert query_means(scores, truth, GRADED_METRICS) == (
        metrics.ndcg(scores, truth) | metrics.kendall(scores, truth)
        | metrics.coherent(scores, truth) | metrics.mean_relevance(scores, truth))


def test_several_metrics_walk_once(monkeypatch):
    walks = []
    blocks = metrics.graded.query_blocks
    monkeypatch.setattr(metrics.graded, "query_blocks",
                        lambda *given: walks.append(given) or blocks(*given))
    scores, owner = random_set(3)
    query_means(scores, Truth(owner), GRADED_METRICS)
    assert len(walks) == 1
