"""Two models compared by their runs, against values worked by hand and simulated tries."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from itr_study.lab.ledger.rivals import (
    OPEN,
    OUTCOMES,
    Runs,
    compared,
    detectable,
    headline,
    seed_differences,
    sentence,
)
from itr_study.lab.ledger.verdict import judge


def runs(name: str, values, metric: str = "rsum", **more) -> Runs:
    return Runs(name, {str(seed): {metric: value} for seed, value in enumerate(values)}, **more)


def one(a, b, metric="rsum"):
    (row,) = compared(runs("A", a, metric), [runs("B", b, metric)], [metric]).itertuples()
    return row


def test_a_difference_is_that_of_pairs_by_seed():
    row = one([3, 5, 4, 6, 7], [1, 2, 3, 4, 5])  # differences 2, 3, 1, 2, 2
    half = 2.776445 * 0.5**0.5 / 5**0.5
    assert (row.difference, row.low, row.high) == pytest.approx((2, 2 - half, 2 + half))
    assert row.n == 5 and row.verdict == "better" and row.q == pytest.approx(row.p)
    assert sentence("A", row) == "A is better than B: +2.0 [+1.1, +2.9] rsum over 5 pairs of runs"
    assert one([1, 2, 3, 4, 5], [3, 5, 4, 6, 7]).verdict == "worse"
    assert one([3, 5, 4, 6, 7], [1, 2, 3, 4, 5], "i2t_meanr").verdict == "worse"  # less is better


def test_fewer_than_five_pairs_tell_nothing_and_the_base_rate_is_said():
    row, apart = one([3.0], [1.0]), np.array([1.0, 3.0, 5.0, 0.5])
    assert row.verdict == "undecided (1 seed)" and not np.isfinite(row.low)
    said = sentence("A", row, apart)
    assert said.startswith("Cannot tell whether A is better than B: one run each (+2.0 rsum)")
    assert "differ by more than this in 50 % of 4 pairs" in said
    assert "4 runs each, 5 are needed" in sentence("A", one([9, 8, 9, 9], [1, 2, 1, 1]))


def test_what_is_not_settled_has_a_bound_and_a_remedy():
    row = one([1, 2, 3, 4, 6], [2, 1, 3, 5, 3])
    said = sentence("A", row)
    assert row.verdict == "not settled" and said.startswith("No difference larger than ±2.5 rsum")
    needed = int(row.needed)
    assert f"{needed - 5} more seeds would settle it" in said and "in four of five tries" in said


def test_false_discoveries_are_held_over_several_rivals():
    rng, a = np.random.default_rng(0), np.zeros(5)
    rivals = [runs(f"B{n}", rng.normal(0.0, 4, 5)) for n in range(20)]
    table = compared(runs("A", a), rivals, ["rsum"])
    assert table["q"].tolist() == pytest.approx(stats.false_discovery_control(table["p"]).tolist())
    alone = [one(a, [b.tables[str(s)]["rsum"] for s in range(5)]).verdict for b in rivals]
    assert "better" in alone or "worse" in alone  # by chance, of twenty
    assert set(table["verdict"]) == {"not settled"}


def test_the_rule_is_that_of_the_ledger():
    """Half widths 0.88 and 2.55 of RSUM: below the 2 points that count, and not."""
    row = one([100, 101, 102, 103, 104], [100.5, 100.5, 102.5, 102.5, 104.0])
    assert row.verdict == "no effect" and row.margin == 2 and row.q > 0.05
    said = sentence("A", row)
    assert said.startswith("No difference larger than ±") and "less than ± 2 points of" in said
    values = rows_of(a=[1, 2, 3, 4, 6], b=[2, 1, 3, 5, 3])
    for a, b in (("a", "b"), ("b", "a")):
        claim = {"id": "x", "kind": "difference", "arm_a": a, "arm_b": b, "metric": "test_rsum",
                 "margin": "", "test": "", "needs": ""}
        judged, lists = judge(claim, values), [list(values[values["arm"] == arm]["test_rsum"])
                                               for arm in (a, b)]
        row = one(*lists)
        assert (judged.parts[0].mean, judged.parts[0].interval()) == (
            row.difference, (row.low, row.high))
        assert OUTCOMES.get(judged.outcome, OPEN) == row.verdict == "not settled"


def rows_of(**values) -> pd.DataFrame:
    return pd.DataFrame([{"arm": arm, "seed": seed, "dataset": "d", "model": "m",
                          "test_rsum": float(value)}
                         for arm, of_arm in values.items() for seed, value in enumerate(of_arm)])


def test_looks_share_the_five_percent():
    """Ten pairs, sd 0.149: half width 0.107 at 95 %, 0.127 at 97.5 %; five are the first look."""
    noise = 0.215 + np.tile([0.0, 0.2, -0.2, 0.1, -0.1], 2)
    for looks, ten, five in ((1, "better", 0.95), (2, "no effect", 0.95)):
        row, few = (next(compared(runs("A", part), [runs("B", 0 * part)], ["rsum"],
                                  looks).itertuples()) for part in (noise, noise[:5]))
        assert row.verdict == ten and few.low == pytest.approx(
            stats.ttest_1samp(noise[:5], 0).confidence_interval(five)[0])
        assert row.high - row.low == pytest.approx(2 * (0.107 if looks == 1 else 0.127), abs=2e-3)
    wide = 100 * (noise - 0.1)
    (row,) = compared(runs("A", wide), [runs("B", 0 * wide)], ["rsum"], 2).itertuples()
    assert row.verdict == "not settled" and row.level == 0.975 and row.needed == 12
    assert "2 more seeds would settle it" in sentence("A", row)


def test_a_win_is_at_least_a_tenth_of_a_point():
    """Differences of mean m and half width 2.776445 x 0.01 x sqrt(2.5 / 5): 0.0196."""
    spread = 0.01 * np.array([-2, -1, 0, 1, 2.0])
    for metric, mean, verdict in (("rsum", 0.121, "better"), ("rsum", 0.119, "no effect"),
                                  ("rsum", -0.121, "worse"), ("i2t_r1", 0.119, "no effect"),
                                  ("main_score", 0.119, OPEN), ("main_score", 0.121, "better"),
                                  ("i2t_meanr", 0.021, "worse"), ("i2t_meanr", 0.019, OPEN)):
        row = one(mean + spread, 0 * spread, metric)
        assert row.verdict == verdict and (row.p < 0.05) == (verdict in ("better", "worse"))
    assert np.isnan(one(0.09 + spread, 0 * spread).needed)  # no number of pairs makes it a win


def test_the_detectable_difference_is_found_in_four_of_five_tries():
    rng = np.random.default_rng(0)
    tries = rng.normal(detectable(1.0, 5), 1, (20_000, 5))
    low, _ = stats.t.interval(0.95, 4, tries.mean(1), tries.std(1, ddof=1) / 5**0.5)
    assert (low > 0).mean() == pytest.approx(0.8, abs=0.01)
    assert np.isnan(detectable(1.0, 4))


def test_other_seeds_are_refused_with_the_remedy():
    other = Runs("B", {"3": {"rsum": 1.0}, "4": {"rsum": 1.0}})
    with pytest.raises(ValueError, match="A has 0, 1, B has 3, 4: leave out"):
        compared(runs("A", [1, 2]), [other], ["rsum"])
    assert one([1.0], [2.0]).n == 1


def test_the_seed_alone_is_measured_over_runs_of_one_setting():
    config = [json.dumps({"model": m, "seed": s}) for m, s in
              (("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1))]
    rows = pd.DataFrame({"config": config, "status": "done", "device": "cpu", "arithmetic": None,
                         "test_rsum": [1.0, 2.0, 4.0, 9.0, 90.0]})
    assert sorted(seed_differences(rows, "test_rsum")) == [1.0, 2.0, 3.0]  # of b only two seeds
    assert len(seed_differences(rows, "test_unknown")) == 0


def test_the_metric_that_decides():
    assert headline(["i2t_r1", "rsum"]) == "rsum"
    assert headline(["X ndcg", "X main_score"]) == "X main_score" and headline(["a", "b"]) == "a"
