"""The arms of notebook 13 and where curves cross: worked by hand, and as often right as said."""

import doctest
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from itr_study.data.scenes.styles import USUAL
from itr_study.metrics.intervals import student_interval
from itr_study.studies import forgive
from itr_study.studies.arms import in_one_model
from itr_study.studies.forgive import (
    FORGIVING,
    by_level,
    crossings,
    false_negatives,
    near_duplicate_arms,
    noise_arms,
    vagueness_arms,
)

SMALL = SimpleNamespace(epochs=0, seeds=2, data_options={}, levels=[0, 1, 2, 3, 4],
                        scenes={"train": 40, "dev": 5, "test": 5}, noises=[0.0, 0.2, 0.4],
                        left_out=["near_duplicates", "as_many_others"])


def test_example_in_docstring():
    result = doctest.testmod(forgive)
    assert result.attempted and not result.failed


def test_every_loss_at_every_level_over_the_same_seeds():
    arms = vagueness_arms("scenes", SMALL)
    assert len(arms) == 5 * 6 * 2 and len({(arm.label, arm.config.seed) for arm in arms}) == 60
    assert {arm.label for arm in arms} == {
        f"{loss}, vagueness={level}" for loss in FORGIVING for level in range(5)}
    for arm in arms:
        assert f"vagueness={arm.config.data_options['vagueness']}" in arm.label
        assert arm.config.data_options["train"] == 40 and arm.config.model == "two_branch"
    losses = {arm.label: [term.loss for term in arm.config.objective] for arm in arms}
    assert losses["hardest+listwise, vagueness=0"] == ["triplet_hardest", "smooth_ndcg"]


@pytest.mark.parametrize("make, dataset, knob", [
    (vagueness_arms, "scenes", f"vagueness={USUAL}"), (noise_arms, "flickr8k", "noise=0"),
    (noise_arms, "scenes", "noise=0")])
def test_the_data_as_it_is_takes_the_runs_that_are_there(make, dataset, knob):
    """Ids leave defaults out: these runs are those of other notebooks, and their rows serve."""
    plain = {(arm.label, arm.config.seed): arm.config.differing()
             for arm in in_one_model(dataset, SMALL, 2, FORGIVING)}
    same = {(arm.label.removesuffix(f", {knob}"), arm.config.seed): arm.config.differing()
            for arm in make(dataset, SMALL) if arm.label.endswith(f", {knob}")}
    assert same == plain


def test_photographs():
    noise, fewer = noise_arms("flickr8k", SMALL), near_duplicate_arms("flickr8k", SMALL)
    assert len(noise) == 3 * 6 * 2 and len(fewer) == 2 * 6 * 2
    assert noise[-1].label == "hardest+listwise, noise=0.4"
    assert noise[-1].config.data_options == {"caption_noise": 0.4}
    assert fewer[0].label == "hardest, without near_duplicates"
    assert fewer[-1].config.data_options == {"leave_out": "as_many_others"}


def test_a_data_set_without_the_option_has_no_such_arms():
    assert vagueness_arms("flickr8k", SMALL) == near_duplicate_arms("scenes", SMALL) == []
    assert noise_arms("coco", SMALL) == []


def test_false_negatives_of_each_level():
    found = false_negatives(SimpleNamespace(**vars(SMALL) | {"levels": [0, 4]}))
    assert list(found) == [0, 4] and found[0].cells == found[4].cells == 128 * 127
    assert found[4].share > 50 * found[0].share


def made_up(values, metric="test_rsum"):
    """Rows of arms: {(loss, level): value by seed}."""
    return pd.DataFrame([
        {"arm": f"{loss}, vagueness={level}", "seed": seed, "dataset": "scenes", "model": "m",
         metric: value} for (loss, level), by_seed in values.items()
        for seed, value in by_seed.items()])


def test_differences_are_paired_over_seeds_that_all_levels_have():
    rows = made_up({("a", 0): {0: 10, 1: 20, 2: 30}, ("b", 0): {0: 1, 1: 2, 2: 3},
                    ("a", 1): {0: 5, 2: 7}, ("b", 1): {2: 1, 0: 2}})
    np.testing.assert_array_equal(by_level(rows, "a", "b", "vagueness", [0, 1], "test_rsum"),
                                  [[9, 27], [3, 6]])
    alone = made_up({("a", 0): {0: 1}, ("b", 0): {0: 1}, ("a", 1): {1: 1}, ("b", 1): {1: 1}})
    with pytest.raises(ValueError, match="no seed of .a. and .b. was run at all .* 0, 1"):
        by_level(alone, "a", "b", "vagueness", [0, 1], "test_rsum")
    with pytest.raises(ValueError, match="share no seed"):
        by_level(rows, "a", "c", "vagueness", [0, 1], "test_rsum")


NOISE = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])  # of five seeds: mean 0, spread 0.79


def test_the_interval_ends_where_that_of_student_leaves_zero():
    """All seeds move alike: zero lies where the mean is as far from it as the interval reaches."""
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


@pytest.mark.parametrize("means", [(3, 4), (-3, 0.2), (-0.2, 0.2), (3, 0.1, 3)])
def test_no_crossing_where_one_side_is_not_settled(means):
    assert crossings(range(len(means)), np.array([mean + NOISE for mean in means])) == []


def test_four_seeds_settle_nothing():
    clear = np.array([-9 + NOISE, 9 + NOISE])
    assert len(crossings([0, 1], clear)) == 1 and crossings([0, 1], clear[:, :4]) == []


def test_levels_must_rise():
    for x in ([1, 0], [0, 0], [0, 1, 2]):
        with pytest.raises(ValueError, match="levels must rise, and have a row"):
            crossings(x, np.zeros((2, 5)))


def test_nineteen_of_twenty_intervals_hold_the_true_crossing(monkeypatch):
    """Made-up seeds around a line that is zero at 0.4: 95 %, and not 99 % or 80 %."""
    monkeypatch.setattr(forgive, "STEPS", 1000)
    random, x = np.random.default_rng(0), np.array([0.0, 0.5, 1.0])
    held = []
    for _ in range(400):
        seeds = 10 * (x - 0.4)[:, None] + random.normal(size=(3, 6))
        (found,) = crossings(x, seeds)
        held.append(found.low <= 0.4 <= found.high)
    assert 0.92 <= np.mean(held) <= 0.98
