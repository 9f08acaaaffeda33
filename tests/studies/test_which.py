"""Which loss: who is above whom, which labels leak, and rates."""

from itertools import permutations

import pandas as pd
import pytest

from itr_study.lab.studies.nb06_kendall import COMPARED, compared_arms
from itr_study.lab.studies.nb13_forgive import (
    EXACT,
    GRADED,
    MATCHES,
    SEEN,
    compared_rate_arms,
    every_pair,
    level_of,
    rate_table,
    second_arms,
    times_exceeded,
    trained_on,
    with_enough_seeds,
)
from itr_study.lab.studies.plans import choose
from itr_study.lab.studies.results import CAPTIONS, EXACTLY, PEOPLE, fair_columns, fair_judge


def verdicts(pairs, n=5):
    """{(arm_a, arm_b): verdict in RSUM and in agreement}, the other way round by symmetry."""
    turned = {"higher": "lower", "lower": "higher"}
    both = pairs | {(b, a): tuple(turned.get(word, word) for word in words)
                    for (a, b), words in pairs.items()}
    return pd.DataFrame([(*pair, metric, n, verdict) for pair, words in both.items()
                         for metric, verdict in zip(("rsum", "tau"), words,
                                                    strict=True)],
                        columns=["arm_a", "arm_b", "metric", "n", "verdict"])


FOUR = verdicts({("soft", "sum"): ("higher", "higher"), ("soft", "hardest"): (
    "higher", "undecided"), ("sum", "hardest"): ("lower", "higher"),
    ("windows", "hardest"): ("undecided", "higher"), ("windows", "soft"): ("lower", "higher"),
    ("windows", "sum"): ("lower", "higher")})


def test_arms_above_an_arm_are_counted_by_each_metric_and_by_all():
    counted = times_exceeded(FOUR)
    assert counted.loc["sum"].to_dict() == {"rsum": 2, "tau": 2, "both": 1}  # soft, by both
    assert counted.loc["soft"].to_dict() == {"rsum": 0, "tau": 1, "both": 0}
    assert counted.loc["windows"].to_dict() == {"rsum": 2, "tau": 0, "both": 0}
    assert times_exceeded(FOUR.head(0)).empty


def test_the_fair_measure_of_a_data_set():
    assert [fair_judge(name) for name in ("scenes", "flickr8k", "coco")] == [
        EXACTLY, PEOPLE, CAPTIONS]
    assert fair_columns("scenes") == EXACT
    assert PEOPLE.metric in fair_columns("flickr8k")


def test_what_leaks_depends_on_the_model_too():
    """MiniLM made the labels: a leak if the model reads MiniLM, not with Fisher or a GRU."""
    def kinds(dataset, make):
        return {arm.label: trained_on(arm.config.model_dump_json())
                for arm in make(dataset, choose("13_when_to_forgive", "full", seeds=1))}

    alone = {"sum", "hardest", "soft", "top5", "info_nce", "sigmoid", "recall_at_k",
             "hardest+recall_at_k"}
    photographs, scenes = kinds("flickr8k", compared_arms), kinds("scenes", compared_arms)
    assert {arm for arm, kind in photographs.items() if kind == MATCHES} == alone
    assert {arm for arm, kind in photographs.items() if kind == GRADED} == {"hardest+sam"}
    assert set(photographs.values()) == {MATCHES, GRADED, SEEN}
    assert {arm for arm, kind in scenes.items() if kind == GRADED} == set(COMPARED) - alone
    second = kinds("flickr8k", second_arms)
    assert set(second.values()) == {MATCHES, GRADED} and len(second) == len(COMPARED)


def test_every_pair_is_compared_at_a_level_for_their_number():
    rows = pd.DataFrame({"arm": ["a", "b", "c", "a"], "run": ["1", "2", "3", "4"]})
    assert every_pair(rows, dict.fromkeys("1234", "")) == list(permutations("abc", 2))
    assert level_of(rows) == pytest.approx(1 - 0.05 / 2)


def test_a_collapsed_loss_is_compared_with_none():
    rows = pd.DataFrame({"arm": ["a", "b", "c", "a"], "run": ["1", "2", "3", "4"]})
    fallen = dict.fromkeys("123", "") | {"4": "scores drew together"}
    assert every_pair(rows, fallen) == [("b", "c"), ("c", "b")]


def test_arms_of_few_runs_are_left_out():
    rows = pd.DataFrame({"arm": ["a"] * 5 + ["b"] * 4, "seed": [*range(5), *range(4)]})
    assert with_enough_seeds(rows)["arm"].unique().tolist() == ["a"]
    assert with_enough_seeds(rows[:0]).empty


def test_rates_are_those_of_seed_0_and_their_multiples():
    same = pd.DataFrame({"loss": ["sum", "sum", "soft"], "seed": [0, 1, 0],
                         "dev_rsum": [200.0, 999.0, 210.0]})
    other = pd.DataFrame({"loss": ["sum", "soft"], "rate": 0.5, "seed": 0,
                          "dev_rsum": [190.0, 220.0]})
    table = rate_table(same, other)
    assert table.loc["sum"].to_dict() == {0.5: 190.0, 1.0: 200.0}
    assert table.loc["soft"].to_dict() == {0.5: 220.0, 1.0: 210.0}


def test_a_multiple_of_the_rate_is_a_factor():
    parameters = choose("13_when_to_forgive", "smoke")
    (one, other) = compared_rate_arms("scenes", parameters)
    assert (one.label, dict(one.factors)) == ("hardest@2", {"loss": "hardest", "rate": 2.0})
    usual = compared_arms("scenes", parameters)[0].config.settings.learning_rate
    assert one.config.settings.learning_rate == 2 * usual and other.label == "bcls@2"
