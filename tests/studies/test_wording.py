"""Differences in words."""

import doctest

import pandas as pd

from itr_study.lab.studies import wording
from itr_study.lab.studies.wording import (
    finding,
    findings,
    listed,
    measured,
    readable,
    settled,
    standing,
)

GAPS = pd.DataFrame({
    "comparison": ["bcls − hardest", "k=5 − sum", "sum − k=1"],
    "arm_a": ["bcls", "k=5", "sum"], "arm_b": ["hardest", "sum", "k=1"],
    "metric": ["test_rsum", "test_i2t_r1", "test_t2i_ndcg_exact"], "n": [5, 5, 5],
    "difference": [-6.0123, 2.0, 1.0], "low": [-7.0, 1.0, -1.0], "high": [-5.0, 3.0, 3.0],
    "verdict": ["lower", "higher", "undecided"]})


def test_examples():
    failed, tried = doctest.testmod(wording)
    assert tried and not failed


def test_a_reader_sees_names_and_two_digits():
    table = readable(GAPS)
    assert list(table.comparison) == ["soft + windows − hardest", "top-5 − sum",
                                      "sum − hardest (k = 1)"]
    assert list(table.metric) == ["RSUM", "i→t R@1", "t→i NDCG (exact)"]
    assert list(table.difference) == ["−6.01", "+2.00", "+1.00"] and "arm_a" not in table
    tiny = readable(GAPS.head(1).assign(difference=-0.0027, low=float("nan"), high=-0.001))
    assert tiny.iloc[0][["difference", "low", "high"]].tolist() == ["−0.0027", "–", "−0.0010"]


def test_settled_counts_both_ways():
    assert settled(GAPS) == "settled: 1 higher, 1 lower"
    more = pd.concat([GAPS, GAPS[GAPS.verdict == "higher"]])
    assert settled(more) == "settled: 2 higher, 1 lower"


def test_a_difference_is_told_with_its_interval_and_whether_it_is_settled():
    lower, _, undecided = (line for _, line in GAPS.iterrows())
    assert measured(lower) == "−6.0 [−7.0, −5.0]"
    assert measured(undecided) == "+1.0 [−1.0, +3.0] (undecided)"
    few = undecided.copy()
    few["verdict"], few["n"] = "undecided (3 seeds)", 3
    assert measured(few) == "+1.0 [−1.0, +3.0] (3 seeds)"


def test_a_finding_names_what_is_settled_and_what_is_not():
    said = finding(GAPS, "{} {be} above", "{} {be} below", "{} {be} open")
    assert said == "top-5 is above; soft + windows is below; sum is open"
    assert finding(GAPS.assign(verdict="collapsed"), "", "") == \
        "soft + windows, top-5 and sum collapsed"
    assert finding(GAPS.assign(verdict="collapsed"), "", "", collapsed="{} {be} open") == \
        "soft + windows, top-5 and sum are open"


def test_fewer_than_five_seeds_settle_nothing():
    assert finding(GAPS.assign(n=4), "+", "-") == "4 seeds settle nothing (5 are needed)"
    mixed = finding(GAPS.assign(n=[5, 3, 5]), "{} {be} up", "{} {be} down")
    assert mixed.startswith("top-5 is up; ")  # five somewhere: each speaks for itself
    assert finding(GAPS.assign(n=1), "+", "-") == "one seed settles nothing (5 are needed)"


def test_many_names_are_counted():
    assert listed([f"d = {d}" for d in range(7)], 7) == "all 7"
    assert listed([f"d = {d}" for d in range(6)], 7) == "d = 0, 1, 2, 3, 4 and 5"
    assert listed(list("abcd"), 4) == "all 4" and listed(list("abc"), 3) == "a, b and c"
    assert listed(["τ = 0.1", "hardest"], 3) == "τ = 0.1 and hardest"
    assert listed(["VSE++, GRU", "sum", "soft"], 3) == "“VSE++, GRU”, sum and soft"


def test_groups_are_told_apart_and_one_alone_where_they_say_the_same():
    two = pd.concat([GAPS.assign(group="by FR"), GAPS.iloc[1:].assign(group="with a bank")])
    words = ("{} up", "{} down", "{} open")
    assert findings(two, *words) == ("by FR: top-5 up; soft + windows down; sum open;\n"
                                     "with a bank: top-5 up; sum open")
    assert findings(pd.concat([GAPS.assign(group=name) for name in "abc"]), *words) == \
        f"a, b and c: {finding(GAPS, *words)}"


def test_a_standing_names_its_reference_once_in_full():
    beside = GAPS.assign(arm_b="hardest", metric="test_rsum", reference_mean=291.2,
                         level=0.95)
    assert standing(beside) == ("RSUM: top-5 is above hardest (291); soft + windows is below it; "
                                "sum cannot be told apart from it (each at 95 %)")
    assert standing(beside.assign(n=3, verdict="undecided (3 seeds)")) == \
        "RSUM of hardest, soft + windows, top-5 and sum: 3 seeds settle nothing (5 are needed)"
