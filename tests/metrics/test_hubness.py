"""The first results of queries, and how unevenly they are spread over the candidates."""

import doctest
import importlib

import numpy as np
import pytest
import torch
from scipy.stats import skew

from itr_study.metrics import Scores, first, hubness
from tests.metrics.sets import random_set
from tests.oracles.sets import stable_order


def test_examples_in_docstrings():
    result = doctest.testmod(importlib.import_module("itr_study.metrics.first"))
    assert result.attempted and not result.failed


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_first_are_those_of_a_stable_sort(ties, kind):
    for seed in range(15):
        scores, _ = random_set(seed, ties)
        for k in (1, 3, 1000):
            found = first(kind(scores), k)
            for direction, rows in (("i2t", scores), ("t2i", scores.T)):
                assert found[direction].tolist() == [stable_order(row)[:k] for row in rows.tolist()]
                assert found[direction].dtype == np.int64


def test_hubness_is_the_skewness_of_how_often_each_is_among_the_first():
    scores, _ = random_set(5, images=30)
    other, _ = random_set(6, images=30)
    other = np.resize(other, scores.shape)
    found = hubness(Scores(scores, other), k=4)
    texts, images = np.zeros(scores.shape[1]), np.zeros(30)
    for row in scores.tolist():
        texts[stable_order(row)[:4]] += 1
    for column in other.T.tolist():
        images[stable_order(column)[:4]] += 1
    assert found == pytest.approx({"i2t_hubness": skew(texts), "t2i_hubness": skew(images)})


def test_without_hubs_it_is_0():
    assert hubness(np.eye(6), k=1) == {"i2t_hubness": 0, "t2i_hubness": 0}
    assert hubness(np.eye(3)) == {"i2t_hubness": 0, "t2i_hubness": 0}  # fewer than ten


@pytest.mark.parametrize("reader", [first, hubness])
def test_bad_input(reader):
    scores, _ = random_set(1)
    with pytest.raises(ValueError, match="k must be an integer >= 1"):
        reader(scores, k=0)
    with pytest.raises(ValueError, match="at least 1 x 1"):
        reader(np.zeros((0, 3)), k=1)
    for bad in range(2):
        pair = [scores.copy(), scores.copy()]
        pair[bad][1, 2] = np.nan
        with pytest.raises(ValueError, match="found one at image 1, text 2"):
            reader(Scores(*pair), k=1)
