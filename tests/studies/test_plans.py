"""Which runs the notebooks share, and that no label stands for two."""

import re

import pandas as pd
import pytest

from itr_study.files.paths import figures_folder
from itr_study.lab.ledger.paired import arms_in
from itr_study.lab.ledger.reported import load_claims, split_list
from itr_study.lab.studies.arms import ArmRun
from itr_study.lab.studies.nb03_topk import k_arms
from itr_study.lab.studies.nb05_listwise import (
    label_arms,
    plug_in_arms,
    tau_arms,
    term_arms,
    weight_arms,
)
from itr_study.lab.studies.nb06_kendall import (
    alpha_arms,
    batch_arms,
    beta_arms,
    branch_arms,
    compared_arms,
    gamma_arms,
    grid_arms,
    grid_ends,
    window_weight_arms,
)
from itr_study.lab.studies.nb07_sub_embeddings import claimed_arms
from itr_study.lab.studies.nb08_reranking import reranked_arms, scale_arms, tuned_arms
from itr_study.lab.studies.nb12_claims import PAPERS, ledger_arms
from itr_study.lab.studies.plans import PLANS, STUDIES, choose

PLACES = (("scenes", "quick"), ("flickr8k", "full"))


@pytest.mark.parametrize("dataset,profile", PLACES)
def test_the_ledger_names_each_run_once_and_trains_nothing_of_its_own(dataset, profile):
    arms = ledger_arms(dataset, choose("12_claims", profile))
    keys = [(arm.label, arm.config.seed) for arm in arms]
    assert len(keys) == len(set(keys))
    others = {(arm.config.model_dump_json(), arm.needs)
              for notebook in ("03_topk", "05_listwise", "06_kendall", "07_sub_embeddings",
                               "08_reranking", "09_stronger_models", "13_when_to_forgive")
              for arm in PLANS[notebook](dataset, profile)}
    assert {(arm.config.model_dump_json(), arm.needs) for arm in arms} <= others


def test_a_label_that_names_two_runs_is_refused(monkeypatch):
    parameters = choose("12_claims", "smoke")
    other = [ArmRun("k=1", arm.config.with_(**{"settings.epochs": 7}))
             for arm in k_arms("scenes", parameters) if arm.label == "k=1"]
    monkeypatch.setitem(PAPERS, "topk", (k_arms, lambda dataset, parameters: other))
    with pytest.raises(ValueError, match="'k=1', seed 0, names two runs"):
        ledger_arms("scenes", parameters)


def test_an_arm_that_is_named_twice_has_all_needs(monkeypatch):
    parameters = choose("12_claims", "smoke", papers=["topk"])  # all else needs nothing
    arms = [arm._replace(needs=("reranked",)) for arm in k_arms("scenes", parameters)[:1]]
    monkeypatch.setitem(PAPERS, "topk", (*PAPERS["topk"], lambda dataset, parameters: arms))
    chosen = ledger_arms("scenes", parameters)
    assert [arm for arm in chosen if arm.needs] == arms and len(chosen) > 1


def test_the_default_temperature_and_label_are_trained_once():
    parameters = choose("05_listwise", "full")
    runs = {(arm.label, arm.config.seed): arm.config for make in (term_arms, tau_arms, label_arms)
            for arm in make("flickr8k", parameters)}
    for seed in range(5):
        listwise = runs["hardest+listwise", seed]
        assert runs["tau=0.01", seed] == runs["hardest+listwise(sentence)", seed] == listwise
    temperatures = [arm.config.objective[1].arguments for arm in tau_arms("flickr8k", parameters)
                    if arm.config.seed == 0]
    assert temperatures == [{} if tau == 0.01 else {"temperature": tau}
                            for tau in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)]


def test_the_defaults_of_bcls_are_trained_once():
    parameters = choose("06_kendall", "full")
    runs = {(arm.label, arm.config.seed): arm.config for make in (
        branch_arms, alpha_arms, beta_arms, gamma_arms) for arm in make("flickr8k", parameters)}
    for seed in range(5):
        assert runs["alpha=0.2", seed] == runs["beta=0.1", seed] == runs["bcls", seed]
        assert runs["gamma=50", seed] == runs["soft", seed]
    windows = runs["alpha=0.4", 0].objective[1]
    assert windows.arguments == {"relaxation": 0.4}
    assert windows.labels == "sentence" and windows.label_arguments == {"scale": "cosine"}


@pytest.mark.parametrize("notebook,make,both", [
    ("05_listwise", weight_arms, "hardest+listwise"), ("06_kendall", window_weight_arms, "bcls")])
def test_the_weight_is_that_of_the_second_term_and_one_is_trained_once(notebook, make, both):
    parameters = choose(notebook, "full", weights=[0.3, 1.0])
    arms = {(arm.label, arm.config.seed): arm.config for arm in make("flickr8k", parameters)}
    usual = {(arm.label, arm.config.seed): arm.config
             for plan in (term_arms if make is weight_arms else branch_arms,)
             for arm in plan("flickr8k", parameters)}
    first, second = [term.loss for term in usual[both, 0].objective]
    terms = {"triplet_hardest": "hardest", "smooth_ndcg": "listwise", "triplet_soft": "soft",
             "kendall_window": "windows"}
    label = f"{terms[first]}+{{}}×{terms[second]}"
    for seed in range(5):
        assert arms[label.format(1), seed] == usual[both, seed]
        less = arms[label.format(0.3), seed]
        assert [term.weight for term in less.objective] == [1, 0.3]
        assert less.with_(**{"objective.1.weight": 1.0}) == usual[both, seed]


def test_a_grid_shares_its_axes_and_trains_its_ends_with_all_seeds():
    parameters = choose("06_kendall", "full", grid_ends=["alpha=0.6,beta=0.05"])
    grid = grid_arms("flickr8k", parameters)
    seeds = {arm.label: [] for arm in grid}
    for arm in grid:
        seeds[arm.label].append(arm.config.seed)
    assert seeds.pop("alpha=0.6,beta=0.05") == [0, 1, 2, 3, 4]
    assert len(seeds) == 6 * 5 - 1 and set(map(tuple, seeds.values())) == {(0,)}
    axes = {arm.label: arm.config for make in (alpha_arms, beta_arms)
            for arm in make("flickr8k", parameters) if arm.config.seed == 0}
    cells = {arm.label: arm.config for arm in grid}
    assert {f"alpha={arm.factors['alpha']:g},beta={arm.factors['beta']:g}" for arm in grid} == set(
        cells)
    assert cells["alpha=0.3,beta=0.1"] == axes["alpha=0.3"]
    assert cells["alpha=0.2,beta=0.6"] == axes["beta=0.6"]


def test_the_ends_of_a_grid_are_best_and_worst_on_dev_by_seed_0():
    rows = pd.DataFrame([("a", 0, 280.0), ("b", 0, 282.0), ("c", 0, 281.0), ("a", 1, 290.0),
                         ("c", 1, 200.0)], columns=["arm", "seed", "dev_rsum"])
    assert grid_ends(rows) == grid_ends(rows[::-1]) == ("b", "a")  # whichever seed stands first


def test_only_the_batch_changes_with_its_size():
    parameters = choose("06_kendall", "full", batches=[64])
    usual = {(arm.label, arm.config.seed): arm.config
             for arm in compared_arms("flickr8k", choose("13_when_to_forgive", "full"))}
    arms = batch_arms("flickr8k", parameters)
    assert len(arms) == 2 * 5 * len(parameters.batch_losses)
    for arm in arms:
        loss, size = arm.label.split("@batch=")
        assert arm.config.settings.batch_size == int(size)
        assert arm.factors == {"loss": loss, "batch": int(size)}
        assert arm.config.with_(**{"settings.batch_size": 128}) == usual[loss, arm.config.seed]


def test_a_gain_is_measured_with_everything_else_equal():
    arms = plug_in_arms("flickr8k", choose("05_listwise", "full"))
    alone, both = arms[0].config, arms[5].config
    assert arms[5].label == arms[0].label + "+listwise"
    assert both.with_(objective=alone.objective) == alone and alone.seed == both.seed
    assert [term.loss for term in both.objective] == ["triplet_hardest", "smooth_ndcg"]
    assert [term.labels for term in both.objective] == ["binary", "sentence"]


def test_re_ranking_asks_for_runs_of_other_notebooks_re_ranked():
    """On real data 08 trains nothing of its own: labels and configs are those of today's plans."""
    runs = reranked_arms("flickr8k", choose("08_reranking", "full"))
    assert len(runs) == 8 * 12 + 4 * 5 and {run.needs for run in runs} == {
        ("reranked",)}
    others = {(arm.label, arm.config.model_dump_json()): arm.needs
              for notebook in ("03_topk", "05_listwise", "06_kendall", "13_when_to_forgive")
              for make in STUDIES[notebook][1]
              for arm in make("flickr8k", choose(notebook, "full"))}
    assert {others[run.label, run.config.model_dump_json()] for run in runs} == {()}


def test_seeds_of_the_sweeps_model_of_others_and_of_those_tuned_have_numbers_of_their_own():
    parameters = choose("08_reranking", "full", seeds=4, compared_seeds=2, tuned_seeds=3)
    seeds = {(run.label, run.config.seed) for run in tuned_arms("flickr8k", parameters)}
    assert seeds == {("vsepp+gru/hardest", seed) for seed in range(3)} | {
        (arm, seed) for arm in ("hardest", "sum", "listwise") for seed in range(2)}
    assert [run.config.seed for run in scale_arms("flickr8k", parameters)] == [0, 1]


@pytest.mark.parametrize("paper", ["topk", "listwise", "bcls", "dvse"])
def test_every_arm_that_a_claim_names_is_trained(paper):
    trained = {arm.label for dataset, profile in PLACES
               for arm in ledger_arms(dataset, choose("12_claims", profile))}
    for claim in load_claims(paper).to_dict("records"):
        named = {inner.partition("@")[0]  # what is re-ranked: "hardest" of "hardest@fast"
                 for arm in split_list(claim["arm_a"]) + split_list(claim["arm_b"])
                 for inner in arms_in(arm)}
        assert named <= trained or claim["needs"], (claim["id"], sorted(named - trained))


def test_every_sub_embedding_arm_that_a_claim_names_is_there_once_asked_for():
    """With the lists of profile full; what leaves them out is the number of seeds alone."""
    asked = claimed_arms("scenes", choose("12_claims", "full", dvse_seeds=2))
    named = {inner.partition("@")[0] for claim in load_claims("dvse").to_dict("records")
             for arm in split_list(claim["arm_a"]) + split_list(claim["arm_b"])
             for inner in arms_in(arm)}
    of_subs = {arm for arm in named if re.match(r"dvse[/+]|pvse/|K=|bound=|balance=", arm)}
    later = {"bound=0.8"}  # trained after the rules of the claims were set
    assert of_subs | later == {run.label for run in asked} and not of_subs & later
    assert all([run.config.seed for run in asked if run.label == label] == [0, 1]
               for label in of_subs)
    assert {run.needs for run in asked} == {("reranked",)}  # FR on top
    configs = {run.label: run.config for run in asked if run.config.seed == 0}
    assert configs["K=none"] == configs["dvse/single"]
    for label, config in configs.items():  # all log how alike heads are (Fig. 6); these train on it
        weight = {term.loss: term.weight for term in config.objective}.get("orthogonality")
        trained = not label.endswith("single") and label not in (
            "dvse/heads", "dvse/mask+var", "K=none", "balance=1")
        assert label.startswith("pvse/") or (weight > 0) == trained, label
    assert (configs["K=6"] == configs["bound=0.4"] == configs["balance=0.6"]
            == configs["dvse/mask+var+ort"])


@pytest.mark.parametrize("dataset", ["flickr8k", "flickr30k", "scenes"])
def test_without_seeds_no_sub_embeddings_are_planned_on_any_data(dataset):
    none = choose("12_claims", "full", dvse_seeds=0)
    assert claimed_arms(dataset, none) == []
    assert claimed_arms("scenes", choose("12_claims", "smoke"))


def test_plans_hold_for_options_of_the_data():
    """Real data with broken pictures could not even be planned."""
    options = {"skip_bad": True}
    arms = PLANS["03_topk"]("flickr8k", "full", data_options=options)
    plain = PLANS["03_topk"]("flickr8k", "full")
    assert plain and arms == [arm._replace(config=arm.config.with_(
        data_options=arm.config.data_options | options)) for arm in plain]


@pytest.mark.evidence
def test_the_ends_in_the_profile_are_those_of_the_committed_table():
    kept = pd.read_csv(figures_folder() / "flickr8k" / "06_kendall__alpha_beta.csv")
    assert list(grid_ends(kept)) == choose("06_kendall", "full").grid_ends
