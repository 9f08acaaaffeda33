"""The second base model: the objectives of the sweeps in another model, each once."""

import pandas as pd
import pytest

from itr_study.lab.ledger.replication import SECOND_BASE
from itr_study.lab.ledger.reported import load_claims
from itr_study.lab.ledger.verdict import named_arms
from itr_study.lab.studies import bases
from itr_study.lab.studies.arms import chosen_rates, rate_table
from itr_study.lab.studies.bases import base
from itr_study.lab.studies.nb12_claims import (
    JUDGED,
    KIN,
    SEARCHED,
    ledger_arms,
    second_base_arms,
    second_base_rate_arms,
    second_base_rates,
    swept_configs,
)
from itr_study.lab.studies.parameters import PROFILES
from itr_study.lab.studies.plans import PLANS, choose

ON = choose("12_claims", "full", second_seeds=5)


@pytest.fixture
def no_rates(tmp_path, monkeypatch):
    """Flickr8k before anybody has searched a learning rate; its base file, to be written to."""
    file = tmp_path / "settings.toml"
    text = (bases.BASES / "settings.toml").read_text(encoding="utf-8")
    file.write_text(text.partition("[rates.")[0], encoding="utf-8")
    monkeypatch.setattr(bases, "BASES", tmp_path)
    return file


@pytest.fixture
def own_rates(no_rates):
    """Flickr8k with learning rates that were searched for the second base model alone."""
    with no_rates.open("a", encoding="utf-8") as file:
        file.write(f"[rates.{SECOND_BASE}]\ntried = [1e-3, 2e-3, 4e-3]\nhardest = 2e-3\n"
                   "bcls = 3e-3\n")


def test_arms_of_five_seeds_each_trained_once():
    runs = second_base_arms("flickr8k", ON)
    assert len(JUDGED) == len(set(JUDGED)) == 23
    assert len({run.config.model_dump_json() for run in runs}) == 23 * 5
    assert {f"{SECOND_BASE}/{arm}" for arm in JUDGED} <= {run.label for run in runs}
    seeds = {}
    for run in runs:
        seeds.setdefault(run.label, []).append(run.config.seed)
    assert set(map(tuple, seeds.values())) == {(0, 1, 2, 3, 4)}


def test_an_arm_has_the_objective_of_the_sweeps_and_all_else_of_the_base():
    swept, start = swept_configs("flickr8k", ON), base("flickr8k", SECOND_BASE)
    for run in second_base_arms("flickr8k", ON):
        objective = swept[run.label.removeprefix(f"{SECOND_BASE}/")].objective
        assert run.config.objective == objective
        assert run.config.with_(objective=start.objective, seed=0, **{
            "settings.learning_rate": start.settings.learning_rate}) == start


def test_labels_of_one_run_in_the_sweeps_are_one_run_here():
    of = {(run.label.removeprefix(f"{SECOND_BASE}/"), run.config.seed): run.config
          for run in second_base_arms("flickr8k", ON)}
    for same, arm in (("k=5", "top5"), ("tau=0.01", "hardest+listwise"), ("gamma=50", "soft"),
                      ("hardest+listwise(sentence)", "hardest+listwise"), ("alpha=0.2", "bcls"),
                      ("beta=0.1", "bcls")):
        assert of[same, 3] == of[arm, 3], same
    assert of["k=1", 3] != of["hardest", 3]  # another loss, the same mathematics
    assert not {label for label, _ in of} & {"k=2", "tau=1", "alpha=0.1", "sigmoid", "listwise"}


def test_claims_that_it_can_judge_are_those_whose_arms_it_has():
    """Sweeps in between keep one judge: at least these claims have two, those of all others not."""
    here = {run.label.removeprefix(f"{SECOND_BASE}/") for run in second_base_arms("flickr8k", ON)}
    named = {claim["id"]: named_arms(claim["arm_a"], claim["arm_b"])
             for claim in load_claims().to_dict("records")}
    judged = {name for name, arms in named.items() if arms and arms <= here}
    assert {"topk-eq8-overstrict", "listwise-tab5-both", "listwise-fig8-drop", "bcls-tab8-order",
            "bcls-tab5-sam", "listwise-people-infonce", "bcls-fig5-sampling"} <= judged
    assert not judged & {"topk-fig6-inside", "bcls-fig5-alpha-rsum", "listwise-tab5-alone"}


def test_it_is_off_in_every_profile_that_does_not_ask_for_it():
    off = choose("12_claims", "full", second_seeds=0, second_searched=[])
    assert second_base_arms("flickr8k", off) == second_base_rate_arms("flickr8k", off) == []
    for profile in PROFILES:
        choose("12_claims", profile, second_seeds=0,
               dataset="scenes" if profile == "quick" else "flickr8k")


def test_the_second_base_model_runs_on_every_data_set_at_the_rates_of_flickr8k():
    assert second_base_rates("coco", ON) == second_base_rates("flickr8k", ON)
    assert len(second_base_arms("coco", ON)) == len(second_base_arms("flickr8k", ON))


def test_a_search_of_what_is_not_swept_is_refused():
    for wrong in ("hardst", "alpha=0"):
        with pytest.raises(ValueError, match=f"second_searched must be one of .*; got '{wrong}'"):
            choose("12_claims", "full", dataset="flickr8k", second_searched=[wrong])


def test_a_profile_that_sweeps_less_has_fewer_arms():
    smoke = choose("12_claims", "smoke", second_seeds=1)
    labels = {run.label for run in second_base_arms("flickr8k", smoke)}
    assert f"{SECOND_BASE}/k=1" in labels and f"{SECOND_BASE}/k=3" not in labels
    assert {run.config.settings.epochs for run in second_base_arms("flickr8k", smoke)} == {1}


def test_no_label_of_the_judge_is_one_of_the_sweeps():
    swept = {run.label for run in ledger_arms("flickr8k", ON)}
    assert not swept & {run.label for run in second_base_arms("flickr8k", ON)}


def test_without_a_search_every_arm_takes_the_rate_of_the_base(no_rates):
    usual = base("flickr8k", SECOND_BASE).settings.learning_rate
    assert second_base_rates("flickr8k", ON) == dict.fromkeys(JUDGED, usual)


def test_a_searched_rate_is_that_of_its_arm_under_every_label(own_rates):
    rates = {run.label.removeprefix(f"{SECOND_BASE}/"): run.config.settings.learning_rate
             for run in second_base_arms("flickr8k", ON)}
    assert rates["bcls"] == rates["alpha=0.2"] == 3e-3
    assert rates["sum"] == rates["hardest"] == rates["k=1"] == rates["gamma=10"] == 2e-3


def test_the_values_of_a_sweep_share_the_rate_of_what_they_vary(own_rates):
    rates = second_base_rates("flickr8k", ON)
    assert rates["alpha=0"] == rates["alpha=0.6"] == rates["bcls"] != rates["hardest"]
    assert {*KIN} | {*SEARCHED} == {*JUDGED} and {*KIN.values()} <= {*SEARCHED}


def test_the_search_of_rates_holds_the_base_inside_and_refuses_its_edge(own_rates):
    asked = ON.model_copy(update={"second_searched": ["bcls", "hardest+listwise"],
                                  "second_factors": [0.25, 0.5, 1.0, 2.0, 4.0]})
    usual = base("flickr8k", SECOND_BASE).settings.learning_rate
    runs = second_base_rate_arms("flickr8k", asked)
    assert [run.label for run in runs[:5]] == [
        f"{SECOND_BASE}/bcls/{times * usual:g}" for times in (0.25, 0.5, 1, 2, 4)]
    assert len(runs) == 10 and {run.config.seed for run in runs} == {0}
    for run in runs:
        assert float(run.label.rpartition("/")[2]) == run.config.settings.learning_rate
    rows = pd.DataFrame([{"seed": 0, **run.factors} for run in runs])
    used = {SECOND_BASE: second_base_rates("flickr8k", asked)}
    inside = rate_table(rows.assign(dev_rsum=[1, 2, 3, 2, 1, 1, 2, 3, 2, 1]), used)
    assert chosen_rates(inside) == {SECOND_BASE: {"bcls": usual, "hardest+listwise": usual}}
    edge = rate_table(rows.assign(dev_rsum=range(10)), used)
    with pytest.raises(ValueError,
                       match=f"{SECOND_BASE}/bcls at .*, the largest of .*second_factors"):
        chosen_rates(edge)


def test_a_search_is_wider_where_the_best_of_all_lay_at_an_end(own_rates):
    usual = base("flickr8k", SECOND_BASE).settings.learning_rate
    for factors in ([1.0, 2.0, 4.0], [0.5, 1.0, 2.0, 4.0]):  # none is tried twice
        asked = ON.model_copy(update={"second_factors": factors,
                                      "second_searched": ["sum", "windows"]})
        labels = [run.label for run in second_base_rate_arms("flickr8k", asked)]
        assert labels == [f"{SECOND_BASE}/sum/{times * usual:g}" for times in factors] + [
            f"{SECOND_BASE}/windows/{times * usual:g}" for times in (0.5, 1, 2, 4)]


def test_the_plan_of_the_ledger_holds_what_is_asked_for():
    labels = [run.label for run in PLANS["12_claims"]("flickr8k", "full", second_seeds=2,
                                                      second_searched=["sum"])]
    assert labels.count(f"{SECOND_BASE}/ladder") == 2
    assert sum(label.startswith(f"{SECOND_BASE}/sum/") for label in labels) == 3
