"""Images hard to tell apart, and how relevant mistakes are."""

import doctest

import numpy as np
import pytest

from itr_study.evaluation import confusions
from itr_study.evaluation.confusions import confusable_pairs, mistakes


def test_confusable_pairs_take_no_image_twice_and_average_both_directions():
    alike = np.array([[1, 1, 0.9, 0.8, 0.1], [0.7, 0.5, 1, 0.9, 0.2], [0.1, 0.1, 0.9, 1, 0.3],
                      [0, 0, 0, 0.4, 1]])
    owner = np.array([0, 0, 1, 2, 3])
    pairs = confusable_pairs(alike, owner, 2)
    # 1-2: (0.9 + 0.9) / 2 = 0.9 beats 0-1: (0.9 + (0.7 + 0.5) / 2) / 2 = 0.75
    assert [(i, j) for i, j, _ in pairs] == [(1, 2), (0, 3)]
    assert pairs[0][2] == pytest.approx(0.9) and pairs[1][2] == pytest.approx((0.1 + 0) / 2)
    assert len(confusable_pairs(alike, owner, 9)) == 2


def test_mistakes_leave_out_matches_and_count_both_directions():
    scores = np.array([[0.9, 0.8, 0.1], [0.5, 0.2, 0.7]])  # texts 0, 1 of image 0, text 2 of 1
    graded = np.array([[1.0, 1.0, 0.4], [0.6, 0.2, 1.0]])
    owner = np.array([0, 0, 1])
    found = mistakes(scores, graded, owner, 2)  # image 1 finds 2, 0; texts find both images
    assert found == pytest.approx({"i2t": 0.6, "t2i": (0.6 + 0.2 + 0.4) / 3})
    assert np.isnan(mistakes(scores, graded, owner, 1)["i2t"])


def test_examples():
    assert doctest.testmod(confusions).failed == 0
