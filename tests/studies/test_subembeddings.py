"""The arms of notebook 07: that each is what its label says, and that nonsense is refused early."""

from collections import Counter

import pytest

from itr_study.lab.studies.nb07_sub_embeddings import (
    ARMS,
    CHOICES,
    COMPONENTS,
    SINGLE,
    WHOLE,
    balance_arms,
    bound_arms,
    choice_arms,
    component_arms,
    dense_arms,
    head_arms,
    pvse_arms,
    reading_arms,
)
from itr_study.lab.studies.plans import choose

FULL = choose("07_sub_embeddings", "full")


def varied(make, factor):
    """A factor of the runs of seed 0, in order."""
    return [run.factors[factor] for run in make("scenes", FULL) if run.config.seed == 0]


def first(make, dataset="scenes"):
    """Config of the first run of each label."""
    return {run.label: run.config for run in make(dataset, FULL) if run.config.seed == 0}


def weight(config, loss):
    return sum(term.weight for term in config.objective if term.loss == loss)


@pytest.mark.parametrize("dataset", ["scenes", "flickr8k"])
def test_components_are_what_their_names_say(dataset):
    configs = first(component_arms, dataset)
    assert list(configs) == list(COMPONENTS)
    for label, config in configs.items():
        parts = set(label.removeprefix("dvse/").split("+"))
        single = parts == {"single"}
        assert config.model_arguments["heads"] == (0 if single else 6)
        if not single:
            off = config.model_arguments.get("mask", "residual") == "off"
            assert off == ("mask" not in parts)
        assert (config.objective[0].arguments.get("weights") == "equal") == ("var" not in parts)
        assert (weight(config, "orthogonality") > 0) == ("ort" in parts)
        assert weight(config, "variance_weighted") == 0.6


def test_all_arms_differ_but_for_the_settings_that_several_sweeps_share():
    configs = {}
    for make in ARMS:
        for label, config in first(make).items():
            configs.setdefault(config.model_dump_json(), []).append(label)
    shared = [labels for labels in configs.values() if len(labels) > 1]
    assert {frozenset(labels) for labels in shared} == {
        frozenset({WHOLE, "K=6", "bound=0.4", "balance=0.6"}),
        frozenset({"dvse/single", "K=none"}),
        frozenset({"dvse+sigmoid/mask+var+ort", "dvse/s=sigmoid"}),
        frozenset({"dvse+last/mask+var+ort", "dvse/text=last"})}


def test_a_sweep_changes_what_it_is_named_after():
    heads = first(head_arms)
    assert {label: config.model_arguments["heads"] for label, config in heads.items()} == {
        "K=none": 0} | {f"K={k}": k for k in (2, 4, 6, 8, 10, 12)}
    bounds = first(bound_arms)
    assert {label: config.objective[1].arguments.get("bound", 0.4)
            for label, config in bounds.items()} == {f"bound={b:g}": b for b in FULL.bounds}
    balances = first(balance_arms)
    assert list(balances) == [f"balance={b:g}" for b in FULL.balances]
    for balance, config in zip(FULL.balances, balances.values(), strict=True):
        assert weight(config, "variance_weighted") == balance
        assert weight(config, "orthogonality") == pytest.approx(1 - balance)
    pvse = {label: config.model_arguments["heads"] for label, config in first(pvse_arms).items()}
    assert pvse == {"pvse/K=1": 1, "pvse/K=2": 2, "pvse/K=4": 4}
    assert varied(head_arms, "heads") == FULL.heads and varied(bound_arms, "bound") == FULL.bounds
    assert varied(balance_arms, "balance") == FULL.balances
    assert varied(pvse_arms, "heads") == FULL.pvse_heads


def test_a_reading_is_that_of_the_whole_and_of_the_single_model():
    """Five seeds of each, as of what it is compared with."""
    found, chosen, parts = first(reading_arms), first(choice_arms), first(component_arms)
    assert found["dvse+last/single"] == parts[SINGLE].with_(
        **{"model_arguments.text_attention": False})
    assert found["dvse+sigmoid/single"] == parts[SINGLE].with_(
        **{"model_arguments.activation": "sigmoid"})
    assert found["dvse+last/mask+var+ort"] == chosen["dvse/text=last"]
    assert found["dvse+sigmoid/mask+var+ort"] == chosen["dvse/s=sigmoid"] and len(found) == 4
    runs = [run.label for make in (reading_arms, choice_arms) for run in make("flickr8k", FULL)]
    assert all(runs.count(label) == 5 for label in (*found, "dvse/s=sigmoid", "dvse/text=last"))
    assert not reading_arms("scenes", choose("07_sub_embeddings", "quick"))


def test_captions_of_an_image_are_together_and_joined_where_the_name_says_so():
    quick = choose("07_sub_embeddings", "quick", dense_seeds=2)
    runs = dense_arms("scenes", quick)
    found = {run.label: run.config for run in runs if run.config.seed == 0}
    parts = {run.label: run.config for run in component_arms("scenes", quick)
             if run.config.seed == 0}
    assert len(runs) == 6 and {config.settings.texts_per_image for config in found.values()} == {5}
    apart = {label: config.with_(**{"settings.texts_per_image": 1})
             for label, config in found.items()}
    assert apart["dvse+five/single"] == parts[SINGLE]
    assert apart["dvse+five/mask+var+ort"] == parts[WHOLE]
    joined = apart["dvse+five/single+joined"]
    assert [term.loss for term in joined.objective] == ["variance_weighted", "dense_to_sparse"]
    assert joined.objective[1].weight == 10 and joined == parts[SINGLE].with_(
        **{"objective.1": joined.objective[1].model_dump()})
    assert not dense_arms("flickr8k", FULL)


def test_a_choice_changes_what_it_names_and_nothing_else():
    whole, found = first(component_arms)[WHOLE], first(choice_arms)
    arguments, ranking, ort = whole.model_arguments, *(t.arguments for t in whole.objective)
    wanted = {"s=sigmoid": ({"activation": "sigmoid"}, {}, {}),
              "s=identity": ({"activation": "identity"}, {}, {}),
              "mask=loss": ({"mask": "loss"}, {}, {}),
              "score=mean": ({"aggregate": "mean"}, {}, {}),
              "text=last": ({"text_attention": False}, {}, {}),
              "sigma=gradient": ({}, {"detach": False}, {}),
              "sigma=softmax": ({}, {"spread": "softmax"}, {}),
              "ort=mean": ({}, {}, {"over": "mean"}), "ort=pair": ({}, {}, {"over": "pair"})}
    assert list(CHOICES) == list(wanted)
    assert list(found) == [f"dvse/{choice}" for choice in wanted]
    for (model, first_, second), config in zip(wanted.values(), found.values(), strict=True):
        assert config == whole.with_(**{
            "model_arguments": arguments | model, "objective.0.arguments": ranking | first_,
            "objective.1.arguments": ort | second})


def test_choices_that_claims_name_have_five_seeds_and_the_others_three():
    count = Counter(run.label for run in choice_arms("scenes", FULL))
    assert {label for label, n in count.items() if n == 5} == {"dvse/s=sigmoid", "dvse/text=last"}
    assert set(count.values()) == {3, 5}
    assert set(Counter(run.label for run in head_arms("scenes", FULL)).values()) == {5}


def test_a_bound_is_one_run_however_it_is_written():
    """A run is found again by its config, in which 0, 0.0 and -0.0 would be three."""
    written = [bound_arms("scenes", choose("07_sub_embeddings", "quick", bounds=[bound]))
               for bound in (0.0, 0, -0.0)]
    assert [runs[0].label for runs in written] == ["bound=0"] * 3
    assert len({runs[0].config.model_dump_json() for runs in written}) == 1


@pytest.mark.parametrize(("given", "message"), [
    ({"components": ["dvse/heads"]}, "hold dvse/mask.var.ort and dvse/single, with "),
    ({"components": [WHOLE]}, "must hold dvse/single, "), ({"heads": [2, 6]}, "must hold 0, ")])
def test_what_cannot_be_drawn_is_refused_before_anything_is_trained(given, message):
    with pytest.raises(ValueError, match=message):
        choose("07_sub_embeddings", "quick", **given)
