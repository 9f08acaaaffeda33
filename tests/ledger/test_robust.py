"""How far a verdict can be trusted: p and q, looks, other images, the rate of the baseline."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

from itr_study.lab.ledger.paired import NoRanks, Sample
from itr_study.lab.ledger.report import fragile
from itr_study.lab.ledger.verdict import judge, q_values
from tests.ledger.test_judge import NOISE, claim, runs

pytestmark = pytest.mark.usefixtures("no_margins")


@pytest.mark.parametrize("lift", [1.0, 0.21, 0.196, 0.195, 0.0, -0.195, -0.197])
def test_the_p_value_is_below_five_percent_if_and_only_if_the_verdict_is_decided(lift):
    verdict = judge(claim(), runs(a=lift, b=0))
    assert (verdict.p < 0.05) == (verdict.outcome != "undecided")
    t = abs(lift) / (NOISE.std(ddof=1) / 5**0.5)
    assert verdict.p == pytest.approx(2 * student.sf(t, 4))  # one difference: the usual one


def test_the_p_value_of_many_parts_is_that_of_the_weakest_or_of_the_strongest_against():
    two = claim(arm_a="a;c", arm_b="b;b")
    t = 1 / (NOISE.std(ddof=1) / 5**0.5)
    assert judge(two, runs(a=1, c=9, b=0)).p == pytest.approx(2 * student.sf(t, 4))
    assert judge(two, runs(a=-1, c=9, b=0)).p == pytest.approx(4 * student.sf(t, 4))  # 2 places
    inside = judge(claim("equivalence", margin="2"), runs(a=1, b=0))  # 1 below the margin
    assert inside.p == pytest.approx(2 * student.sf(t, 4))
    assert Sample(np.zeros(5), 0.95).p_value() == 1 > Sample(np.ones(5), 0.95).p_value() == 0
    assert Sample(np.ones(4), 0.95).p_value() == 1


@pytest.mark.parametrize("looks, expected", [("", "reproduced"), ("2", "undecided")])
def test_more_than_five_pairs_share_the_five_percent_among_looks(looks, expected):
    """Ten pairs, sd 0.149: half width 0.107 at 95 %, 0.127 at 97.5 %."""
    rows = pd.DataFrame([{"arm": arm, "seed": seed, "dataset": "d", "model": "m",
                          "test_rsum": (arm == "a") * (0.115 + NOISE[seed % 5])}
                         for arm in "ab" for seed in range(10)])
    verdict = judge(claim() | {"looks": looks}, rows)
    assert verdict.outcome == expected and verdict.levels == ("97.5 %" if looks else "95 %")
    five = judge(claim() | {"looks": "3"}, runs(a=0.2, b=0))
    assert five.outcome == "reproduced" and five.levels == "95 %"  # the first look is one


def test_q_values_are_those_worked_by_hand_in_families():
    """p x m / rank, from the largest down: 0.04 x 3 / 2 = 0.06 is below 0.9."""
    table = pd.DataFrame({"origin": ["claim"] * 4 + ["composite"],
                          "p": [0.04, 0.01, np.nan, 0.9, 0.04]})
    np.testing.assert_allclose(q_values(table, "origin"), [0.06, 0.03, np.nan, 0.9, 0.04])
    table = table.assign(id=list("abcde"), outcome="reproduced", q=q_values(table, "origin"),
                         ours="", images_ours="", images_outcome=["", "", "", "", "undecided"])
    assert fragile(table)["claim"].tolist() == ["a", "d", "e"]


def named_runs(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(run=[f"{row.arm}{row.seed}" for row in rows.itertuples()])


@pytest.mark.parametrize("error, expected", [(0.0, "reproduced"), (0.4, "reproduced"),
                                             (0.6, "undecided")])
def test_other_images_widen_an_interval_and_can_only_open_a_verdict(error, expected):
    """Half widths 0.196 over seeds; 0.784 and 1.176 over images."""
    asked = []

    def error_of(part, runs_a, runs_b):
        asked.append((part.metric, runs_a[0], runs_b[-1]))
        return error

    verdict = judge(claim(), named_runs(runs(a=1, b=0)), error_of=error_of)
    assert (verdict.outcome, verdict.crossed_outcome) == ("reproduced", expected)
    low, high = verdict.crossed[0].interval()
    assert (high - low) / 2 == pytest.approx(np.hypot(0.1963, 1.96 * error), abs=1e-3)
    assert verdict.parts[0].interval() == judge(claim(), runs(a=1, b=0)).parts[0].interval()
    assert asked == [("test_rsum", "a0", "b4")]


def test_without_ranks_or_arms_of_their_own_there_is_no_verdict_over_images():
    def none(part, runs_a, runs_b):
        raise NoRanks(part.metric)

    def known(part, runs_a, runs_b):
        return 0.1

    rows = named_runs(runs(a=1, b=0))
    unlike = [(claim(), rows, none), (claim(), runs(a=1, b=0), known),
              (claim(arm_a="mean(a|a)"), rows, known), (claim(arm_b="zero"), rows, known)]
    for claimed, some, error_of in unlike:
        verdict = judge(claimed, some, error_of=error_of)
        assert verdict.outcome == "reproduced"
        assert (verdict.crossed_outcome, verdict.crossed) == ("", ())
    assert judge(claim(), named_runs(runs(a=0.1, b=0)), error_of=known).crossed == ()  # undecided


def test_a_plug_in_says_that_it_has_the_rate_of_its_baseline():
    config = '{"settings": {"learning_rate": %s}}'
    names = {"saf/hardest+listwise": 1, "saf/hardest": 0}
    rows = runs(**names).assign(config=config % 0.001)
    plug_in = claim(arm_a="saf/hardest+listwise", arm_b="saf/hardest")
    assert "learning rate 0.001 (the baseline's), n = 5" in judge(plug_in, rows).sentence
    rows.loc[rows["arm"] == "saf/hardest", "config"] = config % 0.002
    assert "learning rates 0.001 to 0.002, n = 5" in judge(plug_in, rows).sentence
    searched = runs(**{f"clean_gru{name[3:]}": lift for name, lift in names.items()})
    searched = searched.assign(config=config % 0.001)
    own = claim(arm_a="clean_gru/hardest+listwise", arm_b="clean_gru/hardest")
    assert "learning rate 0.001, n = 5" in judge(own, searched).sentence
    rows = runs(**{"saf/bcls@fast": 1, "saf/bcls": 0}).assign(config=config % 0.001)
    again = claim(arm_a="saf/bcls@fast", arm_b="saf/bcls")  # what re-ranking adds is no plug-in
    assert "learning rate 0.001, n = 5" in judge(again, rows).sentence
