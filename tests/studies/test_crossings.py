"""Where curves cross: worked by hand, and as often right as said."""

import numpy as np
import pandas as pd
import pytest

from itr_study.lab.studies import nb13_forgive as module
from itr_study.lab.studies.nb13_forgive import by_level, crossing_table, crossings
from itr_study.metrics.intervals import student_interval


def made_up(values, metric="test_rsum"):
    """Rows of arms: {(loss, level): value by seed}."""
    return pd.DataFrame([
        {"loss": loss, "vagueness": level, "seed": seed, metric: value}
        for (loss, level), by_seed in values.items() for seed, value in by_seed.items()])


def test_differences_are_paired_over_seeds_that_all_levels_have():
    rows = made_up({("a", 0): {0: 10, 1: 20, 2: 30}, ("hardest", 0): {0: 1, 1: 2, 2: 3},
                    ("a", 1): {0: 5, 2: 7}, ("hardest", 1): {2: 1, 0: 2}})
    np.testing.assert_array_equal(by_level(rows, "a", [0, 1], "test_rsum"), [[9, 27], [3, 6]])
    alone = made_up({("a", 0): {0: 1}, ("hardest", 0): {0: 1},
                     ("a", 1): {1: 1}, ("hardest", 1): {1: 1}})
    for table, loss in ((alone, "a"), (rows, "c")):
        with pytest.raises(ValueError, match=f"no seed of '{loss}' and .* at all .* 0, 1"):
            by_level(table, loss, [0, 1], "test_rsum")


NOISE = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])  # of five seeds: mean 0, spread 0.79


def test_the_interval_ends_where_that_of_student_leaves_zero():
    """All seeds move together: at its ends the mean is as far from zero as the interval reaches."""
    (found,) = crossings([0, 1, 3], np.array([-4 + NOISE, -2 + NOISE, 6 + NOISE]))
    reach = student_interval(NOISE)[1]
    assert found.at == pytest.approx(1.5, abs=1e-3) and found.rising
    assert (found.low, found.high) == pytest.approx((1.5 - reach / 4, 1.5 + reach / 4), abs=1e-3)


def test_a_curve_that_falls_and_one_that_turns():
    (fall,) = crossings([0, 1], np.array([3 + NOISE, -3 + NOISE]))
    assert not fall.rising and fall.at == pytest.approx(0.5, abs=1e-3)
    up, down = crossings([0, 1, 2], np.array([-3 + NOISE, 3 + NOISE, -3 + NOISE]))
    assert (up.rising, down.rising) == (True, False)
    assert (up.at, down.at) == pytest.approx((0.5, 1.5), abs=1e-3)


def test_of_three_zeros_between_two_places_the_middle_is_told():
    """Levels 1 and 2 decide nothing; the mean passes zero at 0.97, 1.67 and 2.02."""
    (found,) = crossings(range(4), np.array([mean + NOISE for mean in (-6, 0.2, -0.1, 6)]))
    assert found.at == pytest.approx(1 + 2 / 3, abs=1e-3) and found.low < 0.9 and found.high > 2.1


@pytest.mark.parametrize("means", [(3, 4), (-3, 0.2), (-0.2, 0.2), (3, 0.1, 3)])
def test_no_crossing_where_one_side_is_not_decided(means):
    assert crossings(range(len(means)), np.array([mean + NOISE for mean in means])) == []


def test_four_seeds_decide_nothing():
    clear = np.array([-9 + NOISE, 9 + NOISE])
    assert len(crossings([0, 1], clear)) == 1 and crossings([0, 1], clear[:, :4]) == []


def test_levels_must_rise():
    for x in ([1, 0], [0, 0], [0, 1, 2]):
        with pytest.raises(ValueError, match="levels must rise, and have a row"):
            crossings(x, np.zeros((2, 5)))


def test_nineteen_of_twenty_intervals_hold_the_true_crossing(monkeypatch):
    """Made-up seeds around a line that is zero at 0.4: 95 %, and not 99 % or 80 %."""
    monkeypatch.setattr(module, "STEPS", 1000)
    random, x = np.random.default_rng(0), np.array([0.0, 0.5, 1.0])
    held = []
    for _ in range(400):
        seeds = 10 * (x - 0.4)[:, None] + random.normal(size=(3, 6))
        (found,) = crossings(x, seeds)
        held.append(found.low <= 0.4 <= found.high)
    assert 0.92 <= np.mean(held) <= 0.98


def verdicts(**of_setting):
    """A difference for each level, decided unless another verdict is given."""
    return pd.DataFrame([
        {"metric": "test_rsum", "loss": "top5", "vagueness": level,
         "verdict": of_setting.get(f"level_{level}", "higher")} for level in (0, 3)])


def test_a_level_that_has_collapsed_settles_nothing():
    rows = made_up({("top5", 0): dict(enumerate(-5 + NOISE)), ("hardest", 0): dict.fromkeys(
        range(5), 0.0), ("top5", 3): dict(enumerate(5 + NOISE)), ("hardest", 3): dict.fromkeys(
        range(5), 0.0)})
    shares = {0: 0.01, 3: 0.16}
    assert len(crossing_table(rows, verdicts(), shares)) == 1
    assert crossing_table(rows, verdicts(level_3="collapsed"), shares).empty


def test_shares_are_joined_on_their_logarithm():
    """Half way between 1 % and 16 %, on that scale, is 4 %."""
    rows = made_up({("top5", 0): dict(enumerate(-5 + NOISE)), ("hardest", 0): dict.fromkeys(
        range(5), 0.0), ("top5", 3): dict(enumerate(5 + NOISE)), ("hardest", 3): dict.fromkeys(
        range(5), 0.0)})
    (found,) = crossing_table(rows, verdicts(), {0: 0.01, 3: 0.16}).itertuples()
    assert found.at == pytest.approx(0.04, rel=1e-3) and found.rising
    assert 0.01 < found.low < found.at < found.high < 0.16
    assert np.sqrt(found.low * found.high) == pytest.approx(found.at, rel=1e-3)
