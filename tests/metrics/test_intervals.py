"""The interval of Student."""

import numpy as np
import pytest

from itr_study.metrics.intervals import student_interval

NOISE = np.array([-0.2, -0.1, 0.0, 0.1, 0.2])  # sd 0.1581, half width 2.776 * 0.0707 = 0.196


def test_interval_is_the_one_of_student():
    low, high = student_interval(1 + NOISE)
    half = 2.7764 * np.sqrt(0.1 / 4) / np.sqrt(5)  # squares: .04 + .01 + 0 + .01 + .04 = 0.1
    assert (low, high) == (pytest.approx(1 - half, abs=1e-4), pytest.approx(1 + half, abs=1e-4))
    assert student_interval(np.array([3.0])) == (-np.inf, np.inf)


def test_edges_of_student():
    assert student_interval([]) == (-np.inf, np.inf)
    assert student_interval([2.5, 2.5, 2.5]) == (2.5, 2.5)  # nothing varies, and nothing is said
    low, high = student_interval(1 + NOISE, 0.99)
    assert low < student_interval(1 + NOISE)[0] and high > student_interval(1 + NOISE)[1]
    assert all(type(end) is float for end in (low, high))
