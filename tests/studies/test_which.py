"""Which loss: who is settled to be behind another, what is a leak, and the line of advice."""

import doctest
from itertools import permutations

import pandas as pd
import pytest

from itr_study.lab.studies import which
from itr_study.lab.studies.nb06_kendall import COMPARED, compared_arms
from itr_study.lab.studies.plans import choose
from itr_study.lab.studies.which import (
    EXPERTS,
    FINDING,
    GRADED,
    LEAK,
    MATCHES,
    advice,
    exceeded,
    level_of,
    rate_table,
    second_arms,
    settled_arms,
    trained_on,
    unbeaten,
)


def test_examples_in_docstrings():
    result = doctest.testmod(which)
    assert result.attempted and not result.failed


def verdicts(pairs, n=5):
    """{(arm_a, arm_b): verdict in RSUM and in agreement}, the other way round by symmetry."""
    turned = {"higher": "lower", "lower": "higher"}
    both = pairs | {(b, a): tuple(turned.get(word, word) for word in words)
                    for (a, b), words in pairs.items()}
    return pd.DataFrame([(*pair, metric, n, verdict) for pair, words in both.items()
                         for metric, verdict in zip((FINDING.metric, EXPERTS.metric), words,
                                                    strict=True)],
                        columns=["arm_a", "arm_b", "metric", "n", "verdict"])


FOUR = verdicts({("soft", "sum"): ("higher", "higher"), ("soft", "hardest"): (
    "higher", "undecided"), ("sum", "hardest"): ("lower", "higher"),
    ("windows", "hardest"): ("undecided", "higher"), ("windows", "soft"): ("lower", "higher"),
    ("windows", "sum"): ("lower", "higher")})


def test_an_arm_is_exceeded_only_where_one_other_is_above_it_by_every_metric():
    assert exceeded(FOUR) == ["sum"]


def test_unbeaten_is_who_is_settled_to_be_behind_none():
    assert unbeaten(FOUR, FINDING.metric) == ["soft"]
    assert unbeaten(FOUR, EXPERTS.metric) == ["windows"]
    open_ones = verdicts({("soft", "sum"): ("undecided", "higher")})
    assert sorted(unbeaten(open_ones, FINDING.metric)) == ["soft", "sum"]


def test_advice_names_all_that_are_not_told_apart_and_who_of_them_has_more_of_the_other():
    table = verdicts({("soft", "sum"): ("undecided", "higher"),
                      ("windows", "sum"): ("lower", "higher"),
                      ("windows", "soft"): ("lower", "higher")})
    assert advice(table, (FINDING, EXPERTS)) == (
        "To find the match: sum or soft; of these, to agree with experts, too: soft. "
        "To agree with experts: windows.")


def test_where_the_second_purpose_sorts_out_nobody_nothing_is_said_of_it():
    table = verdicts({("soft", "sum"): ("undecided", "undecided"),
                      ("windows", "sum"): ("lower", "higher"),
                      ("windows", "soft"): ("lower", "higher")})
    assert advice(table, (FINDING, EXPERTS)) == (
        "To find the match: sum or soft. To agree with experts: windows.")


@pytest.mark.parametrize("n, said", [(3, "3 seeds settle nothing"), (1, "one seed settles nothin")])
def test_few_seeds_advise_nothing(n, said):
    assert advice(verdicts({("soft", "sum"): ("higher", "higher")}, n),
                  (FINDING, EXPERTS)).startswith(said)


def test_what_leaks_depends_on_the_model_too():
    """MiniLM made the labels: a leak where the model reads MiniLM, not beside Fisher or a GRU."""
    def kinds(dataset, make):
        return {arm.label: trained_on(arm.config.model_dump_json())
                for arm in make(dataset, choose("13_when_to_forgive", "full", seeds=1))}

    alone = {"sum", "hardest", "soft", "top5", "info_nce", "sigmoid"}
    photographs, scenes = kinds("flickr8k", compared_arms), kinds("scenes", compared_arms)
    assert {arm for arm, kind in photographs.items() if kind == MATCHES} == alone
    assert {arm for arm, kind in photographs.items() if kind == GRADED} == {"hardest+sam"}
    assert set(photographs.values()) == {MATCHES, GRADED, LEAK}
    assert {arm for arm, kind in scenes.items() if kind == GRADED} == set(COMPARED) - alone
    second = kinds("flickr8k", second_arms)
    assert set(second.values()) == {MATCHES, GRADED} and len(second) == len(COMPARED)


def test_every_pair_is_held_at_a_level_for_their_number():
    rows = pd.DataFrame({"arm": ["a", "b", "c", "a"], "run": ["1", "2", "3", "4"]})
    assert which.every_pair(rows, dict.fromkeys("1234", "")) == list(permutations("abc", 2))
    assert level_of(rows) == pytest.approx(1 - 0.05 / 2)


def test_a_collapsed_loss_is_not_advised():
    """No interval settles that it is behind another: it was advised beside the best."""
    rows = pd.DataFrame({"arm": ["a", "b", "c", "a"], "run": ["1", "2", "3", "4"]})
    fallen = dict.fromkeys("123", "") | {"4": "scores drew together"}
    assert which.every_pair(rows, fallen) == [("b", "c"), ("c", "b")]



def test_arms_of_few_runs_are_not_held_against_others():
    rows = pd.DataFrame({"arm": ["a"] * 5 + ["b"] * 4, "seed": [*range(5), *range(4)]})
    assert settled_arms(rows)["arm"].unique().tolist() == ["a"]
    assert settled_arms(rows[:0]).empty


def test_rates_are_those_of_seed_0_beside_multiples():
    same = pd.DataFrame({"arm": ["sum", "sum", "soft"], "seed": [0, 1, 0],
                         "dev_rsum": [200.0, 999.0, 210.0]})
    other = pd.DataFrame({"arm": ["sum@0.5", "soft@0.5"], "seed": 0, "dev_rsum": [190.0, 220.0]})
    table = rate_table(same, other)
    assert table.loc["sum"].to_dict() == {0.5: 190.0, 1.0: 200.0}
    assert table.loc["soft"].to_dict() == {0.5: 220.0, 1.0: 210.0}
