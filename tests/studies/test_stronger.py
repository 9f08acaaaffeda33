"""Arms of the stronger models: labels of the claims, one rate a model, ensembles worked by hand."""

import re

import numpy as np
import pandas as pd
import pytest
import torch

from itr_study.files.paths import figures_folder
from itr_study.lab.ledger.paired import arms_in
from itr_study.lab.ledger.reported import load_claims, reported, split_list
from itr_study.lab.studies import bases
from itr_study.lab.studies.ensembles import pairs_of
from itr_study.lab.studies.nb06_kendall import COMPARED
from itr_study.lab.studies.nb09_stronger_models import (
    BASES,
    SEARCHED,
    claimed_stronger_arms,
    printed_gains,
    shown_arms,
    stronger_arms,
    stronger_config,
    stronger_rate_arms,
    stronger_rates,
    with_printed,
)
from itr_study.lab.studies.plans import choose
from itr_study.lab.studies.timing import model_costs
from itr_study.losses import LOSSES
from itr_study.plots.names import name_of

NOTEBOOK = "09_stronger_models"
PLACES = (("scenes", "quick"), ("flickr8k", "full"))
OURS = re.compile("(saf|sgr|sgraf|vse_infinity|dan|dspe)/")


@pytest.mark.parametrize("dataset, profile", PLACES)
def test_every_arm_of_a_stronger_model_that_a_claim_names_is_trained_or_made_of_two(
        dataset, profile):
    parameters = choose(NOTEBOOK, profile)
    runs = stronger_arms(dataset, parameters)
    made = {run.label for run in runs} | {
        label for label, _ in pairs_of(runs, parameters.ensemble_seeds, parameters.two_run_seeds)}
    waiting = ("", "model") if dataset == "scenes" else ("",)  # for runs, on photographs
    named = {inner for claim in load_claims().to_dict("records") if claim["waits_for"] in waiting
             for arm in split_list(claim["arm_a"]) + split_list(claim["arm_b"])
             for inner in arms_in(arm) if OURS.match(inner)}
    assert named and named <= made, sorted(named - made)
    assert {run.needs for run in runs} == {("reranked",)}  # FR on top


def test_a_loss_takes_the_place_of_the_first_term_and_nothing_else_changes():
    parameters = choose(NOTEBOOK, "full")
    for label, losses in {"saf/bcls": ["triplet_soft", "kendall_window"],
                          "vse_infinity/hardest+listwise": ["triplet_hardest", "smooth_ndcg"],
                          "dspe/top5": ["topk", "structure"]}.items():
        config = stronger_config(label, "flickr8k", parameters)
        start = bases.base("flickr8k", {"dspe": "structure"}.get(
            label.partition("/")[0], label.partition("/")[0]))
        assert [term.loss for term in config.objective] == losses
        rate = bases.own_rates("flickr8k", "structure")["top5"] if "top5" in label \
            else start.settings.learning_rate
        assert config == start.with_(**{"settings.learning_rate": rate},
                                     objective=config.objective)
        weights = {term.loss: term.weight for term in start.objective[1:]}
        assert {term.loss: term.weight for term in config.objective[len(losses) - len(weights):]
                } == dict.fromkeys(weights, 0.2)
    assert stronger_config("dspe/sum", "flickr8k", parameters) == bases.base(
        "flickr8k", "structure")
    assert stronger_config("saf/hardest", "flickr8k", parameters) == bases.base("flickr8k", "saf")


@pytest.mark.parametrize("dataset", ["flickr8k", "scenes"])
def test_top5_and_the_sum_hold_the_same_share_beside_the_structure(dataset):
    """Of a batch whose scores are all alike: a sum of 126 hinges, or one."""
    parameters = choose(NOTEBOOK, "full")
    by_sum, by_top5 = (stronger_config(f"dspe/{loss}", dataset, parameters)
                       for loss in ("sum", "top5"))
    assert (by_sum.settings.batch_size, by_sum.settings.texts_per_image) == (128, 2)
    scores, match = torch.zeros(128, 128), torch.kron(torch.eye(64), torch.ones(2, 2))
    shares = [LOSSES[term.loss](**term.arguments)(scores, match).item() / beside.weight
              for term, beside in (by_sum.objective, by_top5.objective)]
    assert shares[0] == pytest.approx(shares[1], rel=0.02) and shares[0] > 1


@pytest.mark.parametrize("dataset", ["flickr8k", "scenes"])
def test_what_a_base_says_of_a_loss_is_of_one_that_there_is(dataset):
    for name, table in bases.base_tables(dataset).items():
        named = {*bases.own_rates(dataset, name), *bases.side_weights(dataset, name)}
        assert named <= set(COMPARED), f"{name}: {sorted(named - set(COMPARED))} is no loss"
        assert not bases.side_weights(dataset, name) or len(table["objective"]) > 1, name


def test_all_losses_of_a_model_have_the_rate_of_its_base_but_those_that_were_searched():
    parameters = choose(NOTEBOOK, "full")
    rates = {run.label: run.config.settings.learning_rate
             for run in stronger_arms("flickr8k", parameters)}
    chosen = stronger_rates("flickr8k", parameters)
    assert {model: tuple(losses) for model, losses in chosen.items()} == {
        model: SEARCHED[model] for model in parameters.rate_models}
    for label, rate in rates.items():
        model, _, loss = label.partition("/")
        own = bases.own_rates("flickr8k", BASES[model])
        assert {*own} <= {*SEARCHED[model][1:]}  # the rate of the first is that of the base
        usual = bases.base("flickr8k", BASES[model]).settings.learning_rate
        assert rate == own.get(loss, usual) == chosen[model].get(loss, usual)


@pytest.mark.evidence
def test_the_committed_search_chose_these_rates_inside_what_it_tried():
    chosen = stronger_rates("flickr8k", choose(NOTEBOOK, "full"))
    found = pd.read_csv(figures_folder() / "flickr8k" / f"{NOTEBOOK}__rates.csv",
                        keep_default_na=False)
    best = found[found["best"]]
    assert set(best["edge"]) == {""}
    assert {model: of_model.set_index("loss")["rate"].to_dict()
            for model, of_model in best.groupby("setting")} == chosen


def test_what_is_trained_on_photographs_has_a_rate_that_was_searched():
    parameters = choose(NOTEBOOK, "full")
    assert {label.partition("/")[0] for label in parameters.stronger} <= {*parameters.rate_models}


def test_rates_are_searched_around_that_of_each_loss():
    parameters = choose(NOTEBOOK, "full", rate_models=["dan", "saf"], rate_factors=[0.5, 1.0, 2.0])
    runs = stronger_rate_arms("flickr8k", parameters)
    arms = ("dan/sum", "dan/top5", "saf/hardest")
    usual = {arm: stronger_config(arm, "flickr8k", parameters).settings.learning_rate
             for arm in arms}
    assert [run.label for run in runs] == [
        f"{arm}/{usual[arm] * times:g}" for arm in arms for times in (0.5, 1, 2)]
    for run in runs:
        label, _, rate = run.label.rpartition("/")
        assert run.config.settings.learning_rate == float(rate) and run.config.seed == 0
        config = stronger_config(label, "flickr8k", parameters)
        assert run.config == config.with_(**{"settings.learning_rate": float(rate)})


@pytest.mark.parametrize("dataset, profile, epochs", [(*PLACES[0], (8, 5)), (*PLACES[1], (5, 3))])
def test_two_losses_of_saf_or_sgr_differ_in_a_few_epochs_as_notebook_09_says(dataset, profile,
                                                                             epochs):
    for model in ("saf", "sgr"):
        settings = stronger_config(f"{model}/hardest", dataset, choose(NOTEBOOK, profile)).settings
        assert (settings.epochs, settings.warmup_epochs) == epochs


def test_what_is_shown_has_one_seed():
    for dataset, profile in (("scenes", "smoke"), *PLACES):
        parameters = choose(NOTEBOOK, profile)
        assert parameters.shown and {run.config.seed for run in shown_arms(
            dataset, parameters)} == {0}
        assert profile == "smoke" or parameters.shown == ["sgr/ladder", "sgr/hardest+sam"]


def test_the_ledger_trains_nothing_on_scenes_and_on_photographs_what_notebook_09_has():
    for profile in ("smoke", "quick"):
        assert claimed_stronger_arms("scenes", choose("12_claims", profile)) == []
    assert claimed_stronger_arms("flickr8k", choose("12_claims", "full")) == stronger_arms(
        "flickr8k", choose(NOTEBOOK, "full"))


def test_a_dev_split_that_is_smaller_than_the_part_looked_at_is_looked_at_whole():
    def part(dev):
        sized = choose(NOTEBOOK, "smoke", scenes={"train": 60, "dev": dev, "test": 30})
        return stronger_config("saf/hardest", "scenes", sized).settings.dev_images

    assert (part(20), part(100), part(101)) == (0, 0, 100)


def test_a_label_that_there_is_not_is_refused_with_those_that_there_are():
    with pytest.raises(ValueError, match="stronger models must be one of saf/sum"):
        stronger_config("saf/nope", "scenes", choose(NOTEBOOK, "smoke"))
    assert stronger_config("dspe/top5", "cub", choose(NOTEBOOK, "smoke")).dataset == "cub"


def test_names_of_these_arms():
    assert name_of("sgraf/hardest+listwise") == "SGRAF: hardest + Smooth-NDCG"
    assert name_of("dspe/top5") == "DSPE: top-5" and name_of("dspe") == "DSPE"
    assert name_of("vse_infinity/hardest+listwise*") == (
        "VSE∞: hardest + Smooth-NDCG, two runs")
    assert name_of("sgraf/bcls@fast") == "SGRAF: soft + windows, FR"


def test_what_the_papers_print_stands_beside_ours():
    printed = printed_gains({"saf/hardest+listwise", "saf/hardest", "dan/top5", "dan/sum"})
    printed = printed.set_index("arm_a")
    table = reported("listwise", "II")
    saf = table[(table["method"] == "SAF") & (table["metric"] == "RSUM")].set_index("variant")
    assert printed.loc["saf/hardest+listwise", "reported"] == pytest.approx(
        saf.loc["+ Listwise", "value"] - saf.loc["baseline", "value"], abs=0.11)
    assert printed.loc["dan/top5", "place"] == "topk, Table IV" and set(printed.index) == {
        "saf/hardest+listwise", "dan/top5"}
    assert printed_gains({"saf/bcls", "saf/hardest"})["place"].tolist() == ["bcls, Table III"]
    ours = pd.DataFrame({"arm_a": ["dan/top5", "saf/bcls"], "arm_b": ["dan/sum", "saf/bcls"],
                         "metric": "test_rsum", "difference": [1.0, 0.0]})
    beside = with_printed(pd.concat([ours, ours.assign(metric="minutes")]))
    assert beside["reported"].iloc[0] == printed.loc["dan/top5", "reported"]
    assert len(beside) == 2 and np.isnan(beside["reported"].iloc[1])


def test_costs_that_are_no_table_of_the_benchmark_are_refused(evidence):
    assert model_costs("scenes").empty
    path = evidence / "scenes" / "models.csv"
    path.parent.mkdir(parents=True)
    path.write_text("arm,parameters\nsaf,1\n")
    with pytest.raises(ValueError, match="lacks the columns memory_mb, score_seconds; measure"):
        model_costs("scenes")
