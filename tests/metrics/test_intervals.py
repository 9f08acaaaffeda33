"""Intervals of Student, over seeds and images, over models, of a rank correlation; chance."""

import numpy as np
import pytest

from itr_study.metrics.intervals import (
    crossed_error,
    random_effects,
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


def test_two_half_widths_add_up_as_squares():
    """0.1963 over seeds, 1.96 x 0.1 over images: 0.2774 together."""
    low, high = student_interval(1 + NOISE, error=0.1)
    assert (high - low) / 2 == pytest.approx((0.1963**2 + 0.19600**2) ** 0.5, abs=1e-4)
    assert (low + high) / 2 == pytest.approx(1)
    assert student_interval(1 + NOISE) == student_interval(1 + NOISE, error=0.0)


def test_the_error_over_columns_leaves_out_what_rows_have_already():
    """By hand: means of columns 1 and 4, variance 4.5 / 2; residuals +-0.5, 1 / (1 x 1) / 4."""
    values = np.array([[1.0, 3.0], [1.0, 5.0]])
    assert crossed_error(values) == pytest.approx((2.25 - 0.25) ** 0.5)
    assert crossed_error(np.array([[0.0, 1.0], [1.0, 0.0]])) == 0  # all of it is residual


def test_the_crossed_interval_covers_what_both_seeds_and_images_move():
    """By simulation: 95 % or a little more of 1,000 intervals hold the true mean of 0."""
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(1000):
        values = (rng.normal(size=(5, 1)) + 5 * rng.normal(size=(1, 40))
                  + 3 * rng.normal(size=(5, 40)))
        low, high = student_interval(values.mean(axis=1), error=crossed_error(values))
        inside.append(low < 0 < high)
    assert 0.94 < np.mean(inside) < 0.99


def test_random_effects_weigh_models_alike_where_models_differ():
    """Between models: Q = 50, C = 2 - 2 / 2 = 1: variance 49, weights 1 / 50 each."""
    pooled = random_effects([0.0, 10.0], [1.0, 1.0])
    assert pooled.between == pytest.approx(7) and pooled.mean == pytest.approx(5)
    assert pooled.high - pooled.mean == pytest.approx(12.7062 * 5, abs=1e-3)  # sd 7.07 / sqrt 2
    # Weights 1 and 1/4: Q = 3.2, C = 0.4, variance 5.5; then 1 / 6.5 and 1 / 9.5
    unlike = random_effects([0.0, 4.0], [1.0, 2.0])
    assert (unlike.mean, unlike.between) == (pytest.approx(26 / 16), pytest.approx(5.5**0.5))
    # Nothing between: weights 100, 100 and 25; mean 1.1; (100 x 0.01 x 2 + 0) / 2 / 225
    near = random_effects([1.0, 1.2, 1.1], [0.1, 0.1, 0.2])
    assert (near.mean, near.between) == (pytest.approx(1.1), 0)
    assert near.high - 1.1 == pytest.approx(4.3027 * (1 / 225) ** 0.5, abs=1e-4)
    equal = random_effects([0.3, 0.3], [5.0, 5.0])  # they agree by chance
    assert equal.high - 0.3 == pytest.approx(12.7062 * 5 / 2**0.5, abs=1e-3)


@pytest.mark.parametrize("means, errors", [([1.0], [1.0]), ([1.0, 2.0], [1.0, 0.0])])
def test_random_effects_ask_for_two_groups_with_a_spread(means, errors):
    with pytest.raises(ValueError, match="two groups or more with standard errors above 0"):
        random_effects(means, errors)
