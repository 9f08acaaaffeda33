"""The interval of Student, that of a rank correlation, and the range that chance spans."""

import numpy as np
import pytest

from itr_study.metrics.intervals import (
    range_by_chance,
    rank_correlation_interval,
    student_interval,
)

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


def test_a_rank_correlation_has_a_wide_interval_of_few_methods():
    half = 1.96 * np.sqrt(1.06 / 9)  # 0.6727
    low, high = rank_correlation_interval(0.84, 12)
    assert (np.arctanh(low), np.arctanh(high)) == pytest.approx(
        (np.arctanh(0.84) - half, np.arctanh(0.84) + half), abs=1e-4)
    assert rank_correlation_interval(-0.84, 12) == pytest.approx((-high, -low))
    assert rank_correlation_interval(1.0, 4) == (-1.0, 1.0)
    assert all(np.isfinite(rank_correlation_interval(1.0, 12)))


def test_chance_alone_spans_a_range():
    draws = np.random.default_rng(0).normal(size=(20_000, 30))
    assert range_by_chance(30) == pytest.approx(np.ptp(draws, axis=1).mean(), rel=0.01)
    assert range_by_chance(2) == pytest.approx(2 / np.sqrt(np.pi), abs=1e-6)
