"""Steps to Clean GRU: one at a time, for both losses, without a leak."""

from pathlib import Path

import pandas as pd
import pytest
import torch

from itr_study.data.batches import InputSpec
from itr_study.lab.studies import nb09_stronger_models
from itr_study.lab.studies.bases import base
from itr_study.lab.studies.nb09_stronger_models import (
    STEP_LOSSES,
    TO_CLEAN_GRU,
    clean_gru_arms,
    step_config,
)
from itr_study.lab.studies.plans import choose
from itr_study.models import MODELS

PARAMETERS = choose("09_stronger_models", "full", clean_gru_seeds=2)
ROOT = Path(__file__).resolve().parents[2]
START = base("flickr8k", nb09_stronger_models.START)


def flat(values, prefix=""):
    """Dotted path -> value of a config, as `RunConfig.with_` takes them."""
    if not isinstance(values, dict):
        return {prefix.rstrip("."): values}
    return {path: value for name, inner in values.items()
            for path, value in flat(inner, f"{prefix}{name}.").items()}


def values(config):
    return flat({k: v for k, v in config.model_dump(mode="json").items() if k != "objective"})


@pytest.mark.parametrize("name", TO_CLEAN_GRU)
def test_a_step_changes_what_it_says_of_the_one_below_and_nothing_else(name):
    step = TO_CLEAN_GRU[name]
    below = step_config("flickr8k", step.below, PARAMETERS) if step.below else START
    here, before = values(step_config("flickr8k", name, PARAMETERS)), values(below)
    changed = {path: value for path, value in here.items() if before.get(path) != value}
    assert changed == step.changes and before.keys() <= here.keys()


def test_every_config_with_both_losses_over_paired_seeds():
    arms = clean_gru_arms("flickr8k", PARAMETERS)
    assert len(arms) == len(TO_CLEAN_GRU) * len(STEP_LOSSES) * 2
    assert len({arm.config.model_dump_json() for arm in arms}) == len(arms)
    of = {(arm.label, arm.config.seed): arm.config for arm in arms}
    for (label, seed), config in of.items():
        other = of[f"{label.partition('/')[0]}/sum", seed]
        assert other.with_(objective=config.objective) == config
    assert {config.objective[0].loss for config in of.values()} == {"triplet_sum",
                                                                    "triplet_hardest"}
    assert {seed for _, seed in of} == {0, 1}


@pytest.mark.parametrize("name", TO_CLEAN_GRU)
def test_no_part_has_seen_a_caption_and_every_model_can_be_built(name):
    config = step_config("flickr8k", name, PARAMETERS)
    assert config.tokens in ("words", "glove") and config.sentences is None
    assert all(part.startswith("lite") for part in config.images.split("+"))
    assert all(term.labels == "binary" for term in config.terms)
    vectors = torch.zeros(9, 50) if config.tokens == "glove" else None
    MODELS[config.model](InputSpec(7, 9, 0, vectors), **config.model_arguments)


def test_the_base_warms_up_by_the_sum_for_some_epochs_and_not_for_all():
    assert [term.loss for term in START.warmup_objective] == ["triplet_sum"]
    assert 4 <= START.settings.warmup_epochs < START.settings.epochs


def test_a_profile_sizes_every_step_but_the_one_that_is_about_length():
    sized = PARAMETERS.model_copy(update={"epochs": 11})
    epochs = {arm.label.partition("/")[0]: arm.config.settings.epochs
              for arm in clean_gru_arms("flickr8k", sized)}
    assert epochs == dict.fromkeys(TO_CLEAN_GRU, 11) | {"twice as long": 24,
                                                        "three times as long": 36}
    short = step_config("flickr8k", "mean of 3 epochs' weights", PARAMETERS.model_copy(
        update={"epochs": 2}))
    assert short.settings.average == 2  # of fewer epochs there is no mean of three


def test_the_second_judge_is_one_of_the_steps():
    judge = base("flickr8k", "clean_gru")
    assert judge == step_config("flickr8k", "twice as long", PARAMETERS)
    assert judge.settings.warmup_epochs < judge.settings.epochs


@pytest.mark.parametrize("name", ["epochs", "batch_size"])
def test_what_the_second_judge_takes_lies_inside_what_was_tried(name):
    table = pd.read_csv(ROOT / "figures/flickr8k/09_stronger_models__clean_gru.csv")
    assert {*table["group"]} == {*STEP_LOSSES}
    for _, rows in table.groupby("group"):  # its first line stands on the lowest step
        tried = {getattr(step_config("flickr8k", step, PARAMETERS).settings, name)
                 for step in ("first guess", *rows["label"])}
        assert min(tried) < getattr(base("flickr8k", "clean_gru").settings, name) < max(tried)


def test_a_step_stands_on_one_that_is_there():
    names = list(TO_CLEAN_GRU)
    for name, step in nb09_stronger_models.TO_CLEAN_GRU.items():
        assert not step.below or names.index(step.below) < names.index(name)


def test_the_worth_of_a_step_is_paired_by_seed_with_the_step_below():
    rows = pd.DataFrame([
        ("first guess/sum", 0, 290.0, 2.0), ("first guess/sum", 1, 280.0, 2.0),
        ("one image network/sum", 1, 283.0, 3.0), ("one image network/sum", 0, 295.0, 3.0),
        ("first guess/hardest", 0, 288.0, 2.0), ("one image network/hardest", 0, 287.0, 3.0)],
        columns=["arm", "seed", "dev_rsum", "minutes"])
    steps = nb09_stronger_models.worth(rows)
    assert [*steps.drop(columns=["dev_rsum", "minutes"]).itertuples(index=False, name=None)] == [
        ("sum", "one image network", 4.0, 3.0, 5.0, 2),
        ("hardest", "one image network", -1.0, -1.0, -1.0, 1)]
