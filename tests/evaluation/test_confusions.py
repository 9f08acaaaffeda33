"""Images hard to tell apart, and how relevant mistakes are."""

import doctest

import numpy as np
import pytest

from itr_study.evaluation import confusions
from itr_study.evaluation.confusions import confusable_pairs, mistakes
from itr_study.metrics import Scores


def test_confusable_pairs_take_no_image_twice_and_average_both_directions():
    alike = np.array([[1, 1, 0.9, 0.8, 0.1], [0.7, 0.5, 1, 0.9, 0.2], [0.1, 0.1, 0.9, 1, 0.3],
                      [0, 0, 0, 0.4, 1]])
    owner = np.array([0, 0, 1, 2, 3])
    pairs = confusable_pairs(alike, owner, 2)
    # 1-2: (0.9 + 0.9) / 2 = 0.9 beats 0-1: (0.9 + (0.7 + 0.5) / 2) / 2 = 0.75
    assert [(i, j) for i, j, _ in pairs] == [(1, 2), (0, 3)]
    assert pairs[0][2] == pytest.approx(0.9) and pairs[1][2] == pytest.approx((0.1 + 0) / 2)
    assert len(confusable_pairs(alike, owner, 9)) == 2


def test_of_two_matrices_confusable_pairs_take_the_mean():
    owner = np.arange(4)
    i2t, t2i = np.eye(4), np.eye(4)
    i2t[0, 1] = i2t[1, 0] = 0.8  # 0-1: 0.8 and 0.2, mean 0.5
    t2i[0, 1] = t2i[1, 0] = 0.2
    t2i[2, 3] = t2i[3, 2] = 0.9  # 2-3: 0 and 0.9, mean 0.45
    pairs = confusable_pairs(Scores(i2t, t2i), owner, 2)
    assert [(i, j, round(fit, 9)) for i, j, fit in pairs] == [(0, 1, 0.5), (2, 3, 0.45)]


def test_of_two_matrices_mistakes_read_one_in_each_direction():
    graded = np.array([[1.0, 0.2, 0.6], [0.4, 1.0, 0.8], [0.1, 0.3, 1.0]])
    i2t = np.array([[0.0, 1, 2], [2, 0, 1], [1, 2, 0]])  # finds texts 2, 0, 1 first
    t2i = np.array([[0.0, 2, 1], [1, 0, 2], [2, 1, 0]])  # texts find images 2, 0, 1 first
    found = mistakes(Scores(i2t, t2i), graded, np.arange(3), 1)
    assert found == pytest.approx({"i2t": (0.6 + 0.4 + 0.3) / 3, "t2i": (0.1 + 0.2 + 0.8) / 3})


def test_mistakes_leave_out_matches_and_count_both_directions():
    scores = np.array([[0.9, 0.8, 0.1], [0.5, 0.2, 0.7]])  # texts 0, 1 of image 0, text 2 of 1
    graded = np.array([[1.0, 1.0, 0.4], [0.6, 0.2, 1.0]])
    owner = np.array([0, 0, 1])
    found = mistakes(scores, graded, owner, 2)  # image 1 finds 2, 0; texts find both images
    assert found == pytest.approx({"i2t": 0.6, "t2i": (0.6 + 0.2 + 0.4) / 3})
    assert np.isnan(mistakes(scores, graded, owner, 1)["i2t"])


def test_examples():
    assert doctest.testmod(confusions).failed == 0
