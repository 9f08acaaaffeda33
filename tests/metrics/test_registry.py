"""What every metric must do; a metric without an oracle is red here."""

import importlib
import pkgutil

import numpy as np
import pytest

import itr_study.metrics
from itr_study.metrics import METRICS, Truth
from tests.metrics.sets import random_set

LEAST = {"kendall": -1, "coherent": -1}  # every other metric is a fraction
PRIMITIVES = {"ranks", "truth", "graded", "human", "retrieval_sets", "eccv", "intervals"}

# Where a loss has the name of a metric, the oracle of the metric is called otherwise.
ORACLES = {"kendall": "kendall_tau"}


def cases(name):
    return importlib.import_module(f"tests.oracles.{ORACLES.get(name, name)}")


def test_every_file_is_registered():
    files = {m.name for m in pkgutil.iter_modules(itr_study.metrics.__path__)}
    assert files - PRIMITIVES <= set(METRICS)


@pytest.mark.parametrize("name", METRICS)
def test_hand_worked_values(name):
    assert cases(name).HAND
    for scores, owner, arguments, expected in cases(name).HAND:
        truth = Truth(np.array(owner), len(scores))
        assert METRICS[name](np.array(scores), truth, **arguments) == pytest.approx(expected)
        assert cases(name).oracle(scores, owner, **arguments) == pytest.approx(expected)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("ties", [False, True])
def test_equals_slow_oracle_and_is_a_fraction(name, ties):
    for seed in range(25):
        scores, owner = random_set(seed, ties)
        ours = METRICS[name](scores, Truth(owner))
        assert ours == pytest.approx(cases(name).oracle(scores.tolist(), owner.tolist())), seed
        assert all(LEAST.get(name, 0) <= value <= 1 for value in ours.values())


@pytest.mark.parametrize("name", METRICS)
def test_order_of_images_and_texts_does_not_matter(name):
    scores, owner = random_set(1)
    rng = np.random.default_rng(0)
    rows, columns = (rng.permutation(n) for n in scores.shape)
    moved = np.argsort(rows)[owner[columns]]
    assert METRICS[name](scores[rows][:, columns], Truth(moved)) == pytest.approx(
        METRICS[name](scores, Truth(owner)))
