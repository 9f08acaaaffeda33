"""What parameters may be is checked before anything is trained."""

import re

import pytest

from itr_study.data import DATASETS
from itr_study.lab.studies.nb05_listwise import label_arms
from itr_study.lab.studies.parameters import (
    COUNTS,
    EMPTY_WILL_DO,
    FILE,
    NAMES,
    NUMBERS,
    PROFILES,
    check_parameters,
    choose,
    read_profiles,
)
from itr_study.lab.studies.plans import ARMS, arms_of
from itr_study.lab.studies.study import Study

CELL = {"dataset": "scenes", "profile": "smoke", "data": None, "workers": 0, "figures": None}
NOTEBOOK = {name: notebook for notebook, profiles in read_profiles(FILE).items()
            for name in profiles["smoke"]}  # a parameter -> one that has it


def test_every_list_of_names_is_checked():
    """Papers are by `ledger_arms`, the label sources of notebook 04 by `label_sources`."""
    named = {name for profiles in read_profiles(FILE).values()
             for name, value in profiles["smoke"].items() if isinstance(value, str) or (
                 isinstance(value, list) and all(isinstance(one, str) for one in value))}
    assert named == set(NAMES) | {"papers", "sources"}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_there_is_not_is_refused_with_those_that_there_are(name):
    """`settings=["nope"]` was a bare KeyError, `tuned=["nope"]` trained nothing and said nothing.
    """
    wrong = "hardst" if name == "swept" else ["hardst"]
    with pytest.raises(ValueError, match=f"^{name} must be one of .*; got 'hardst'"):
        Study(NOTEBOOK[name], CELL | {name: wrong})


def refused(notebook, dataset="scenes", profile="smoke", **given) -> str:
    """Why a notebook takes no such parameters."""
    with pytest.raises(ValueError) as caught:
        check_parameters(dataset, choose(notebook, profile, **given))
    return str(caught.value)


LISTS = {name: (notebook, value) for notebook, profiles in read_profiles(FILE).items()
         for name, value in profiles["smoke"].items() if isinstance(value, list)}


@pytest.mark.parametrize("name", LISTS)
def test_lists_need_items_and_hold_none_twice(name):
    """`ks=[]` trained for 43 s, then "attempt to get argmax of an empty sequence"."""
    notebook, value = LISTS[name]
    if name in EMPTY_WILL_DO:
        check_parameters("scenes", choose(notebook, "smoke", **{name: []}))
    else:
        assert refused(notebook, **{name: []}).startswith(f"{name} is empty and needs an item; ")
    if value:
        assert refused(notebook, **{name: [*value, value[0]]}).startswith(
            f"{name} holds {value[0]!r} twice")


def test_empty_lists_and_bounds_are_of_parameters_that_there_are():
    assert set(COUNTS) | set(NUMBERS) <= set(NOTEBOOK)
    assert set(EMPTY_WILL_DO) <= set(LISTS)


@pytest.mark.parametrize("notebook, dataset, given", [
    ("13_when_to_forgive", "flickr8k", {"noises": [0.2, 0.2000001]}),
    ("12_claims", "flickr8k", {"judge_factors": [1.0, 1.0000000001, 2.0]}),
    ("05_listwise", "scenes", {"weights": [1, 1.0000001]}),
    ("06_kendall", "scenes", {"alphas": [0.0, -0.0]})])
def test_two_values_of_one_label_are_refused(notebook, dataset, given):
    """Each would be trained under the name of the other."""
    (name, (first, second, *_)), = given.items()
    message = refused(notebook, dataset, **given)
    assert message.startswith(f"{name} holds {second!r} twice"), message
    assert (f"as {first!r}, whose label is" in message) == (first != second)


@pytest.mark.parametrize("name, value", [
    ("second_losses", [["hardest"]]), ("judge_searched", [1]), ("rates", ["2e-3"]),
    ("noises", ["0.2"])])
def test_items_of_a_list_that_a_profile_leaves_empty_have_a_type_too(name, value):
    """`second_losses=[["hardest"]]` was a TypeError: unhashable."""
    item = re.escape(repr(value[0]))
    with pytest.raises(ValueError, match=f"^{name} must be like .*; got {item}"):
        choose(NOTEBOOK[name], "full", **{name: value})


def test_only_arms_that_are_swept_are_searched_for_the_second_judge():
    """A sweep that leaves "ladder" out was a KeyError."""
    smoke = {"compared": ["hardest", "soft"], "judge_searched": ["soft+kendall", "hardest"]}
    check_parameters("flickr8k", choose("12_claims", "smoke", **smoke))
    assert re.match("judge_searched must be one of sum, hardest, .*; got 'ladder'", refused(
        "12_claims", "flickr8k", **smoke | {"judge_searched": ["ladder"]}))
    both = {"label_sources": ["nope"], "judge_searched": ["sum"]}
    assert refused("12_claims", "flickr8k", "full", **both).startswith("label_sources must be ")


@pytest.mark.parametrize("notebook, dataset, given, message", [
    ("12_claims", "flickr8k", {"judge_searched": ["sum"], "judge_factors": [0.5, 2.0]},
     "judge_factors must hold 3 or more for judge_searched, got .0.5, 2.0.: a best rate at an end"),
    ("12_claims", "flickr8k", {"judge_factors": [1e300]}, "judge_factors must be .*<= 1000000"),
    ("13_when_to_forgive", "flickr8k", {
        "second_losses": ["hardest", "soft"], "noises": [], "left_out": []},
     "second_losses = .'hardest', 'soft'. train nothing by themselves: name noises, too"),
    *((notebook, "flickr8k", {"label_sources": ["cider", "exact"]},
       "label_sources must be one of binary, sentence, .*; got 'exact'")
      for notebook in ("05_listwise", "12_claims"))])
def test_what_could_train_or_choose_nothing_is_refused(notebook, dataset, given, message):
    assert re.match(message, refused(notebook, dataset, "full", **given))


def test_what_trains_something_is_not_refused():
    second = {"second_losses": ["hardest", "soft"]}
    for more in ({"noises": [0.0, 0.4], "left_out": []},
                 {"noises": [], "left_out": ["near_duplicates", "as_many_others"]}):
        check_parameters("flickr8k", choose("13_when_to_forgive", "full", **second | more))
    check_parameters("flickr8k", choose("12_claims", "full", judge_searched=["sum"],
                                        judge_factors=[0.5, 1.0, 2.0]))
    check_parameters("scenes", choose("12_claims", "full", label_sources=["exact"]))


OUTSIDE = {  # a parameter: what is refused, and what is not
    "epochs": ((-1,), (0, 3)), "ks": ((0, -2), (1, 127)), "dims": ((0, -3), (1,)),
    "batches": ((1, 0), (2,)), "pairs": ((0,), (1,)), "resamples": ((0,), (1,)),
    "alphas": ((-0.1, 2.0), (0.0, 1.99)), "grid_alphas": ((-0.1, 2.0), (0.0, 1.4)),
    "betas": ((0.0, 1.9), (1.8,)), "grid_betas": ((0.0, 2.1), (1.6,)),
    "margins": ((-0.1,), (0.0, 3.0)), "heads": ((-1, 65), (1, 64)), "pvse_heads": ((0,), (64,)),
    "bounds": ((-0.1,), (0.0, 2.0)), "balances": ((0.0, 1.1), (0.1, 1.0))} | dict.fromkeys(
        ("rates", "rate_factors", "judge_factors", "taus", "weights", "gammas", "scales"),
        ((0.0, -1.0, 1e7), (1e-9, 1e3)))


@pytest.mark.parametrize("name", [*COUNTS, *NUMBERS])
def test_numbers_outside_their_bounds_are_refused_and_their_ends_are_not(name):
    """`-p dims=[-3]` was a ValidationError of which "why" did not say what was wrong."""
    (notebook, inside), (wrong, right) = LISTS.get(name, (NOTEBOOK[name], None)), OUTSIDE[name]

    def given(value):
        ends = {"grid_ends": []} if name.startswith("grid_") else {}
        beside = 0 if name == "heads" else inside and inside[-1]  # no heads at all: always there
        return ends | {name: value if inside is None else [value, beside]}

    for value in wrong:
        assert re.match(rf"{name} must be .* got {value}$", refused(notebook, **given(value)))
    for value in right:
        check_parameters("scenes", choose(notebook, "smoke", **given(value)))


@pytest.mark.parametrize("notebook, given, message", [
    ("03_topk", {"ks": [5, 500]}, "ks must be below 128, got 500: .* at most 127 negatives"),
    ("03_topk", {"ks": [128]}, "ks must be below 128"),
    ("06_kendall", {"grid_alphas": [1.5], "grid_betas": [0.2, 0.6], "grid_ends": []},
     "grid_betas must be at most 2 - alpha, got 0.6 and alpha 1.5 in grid_alphas"),
    ("08_reranking", {"scales": [25.0]}, "scales must hold two or more"),
    ("03_topk", {"scenes": {"train": 0}}, "scenes: train must be an integer >= 1, got 0"),
    ("01_data_and_judgements", {"scenes": {"val": 5}}, "split must be one of train, dev, test"),
    ("03_topk", {"data_options": {"caption_noise": 2.0}}, "caption_noise must be a share in "),
    ("03_topk", {"data_options": {"noise_seed": -1}}, "noise_seed must be an integer >= 0"),
    ("03_topk", {"data_options": {"vagueness": 9}}, "vagueness must be an integer >= 0 and <= 4"),
    ("03_topk", {"data_options": {"skip_bad": True}}, "argument of dataset 'scenes' must be one "),
    ("02_pairwise_losses", {"epochs": -1}, "epochs must be an integer >= 0, got -1")])
def test_what_a_part_would_refuse_after_minutes_is_refused_at_once(notebook, given, message):
    with pytest.raises(ValueError, match=message):
        Study(notebook, CELL | given)


@pytest.mark.parametrize("options, message", [
    ({"leave_out": "near_duplicate"}, "leave_out must be one of nothing, near_duplicates, "),
    ({"skip_bad": 2}, "skip_bad must be one of True, False; got 2"),
    ({"as_published": "no"}, "as_published must be one of True, False; got 'no'")])
def test_options_of_real_data_are_refused_before_it_is_read(options, message):
    assert refused("03_topk", "flickr8k", "full", data_options=options).startswith(message)


@pytest.mark.parametrize("notebook, given, remedy", [
    ("13_when_to_forgive", {"compared": ["hardest"]},
     "compared .* no 'sum', .* set rate_losses, too, "),
    ("08_reranking", {"reranked": ["hardest"]}, "reranked .* no 'sum', .*: set tuned, too, to "),
    ("08_reranking", {"reranked": ["sum"], "tuned": ["sum"]}, "reranked .* set swept, too, to "),
    ("06_kendall", {"grid_alphas": [0.1]}, "grid_alphas as given leave no .* set grid_ends, too")])
def test_who_leaves_names_behind_is_told_which_parameter_to_set(notebook, given, remedy):
    """"rate_losses must be one of hardest; got 'sum'" blamed what the user had not set."""
    message = refused(notebook, "flickr8k", "full", **given)
    assert re.match(remedy, message), message


def test_who_sets_both_to_what_does_not_fit_is_told_which_is_wrong():
    assert refused("13_when_to_forgive", compared=["hardest"], rate_losses=["sum"]) == (
        "rate_losses must be one of hardest; got 'sum'")
    check_parameters("scenes", choose("13_when_to_forgive", "smoke", compared=["hardest"],
                                      rate_losses=["hardest"]))


@pytest.mark.parametrize("notebook, seeds", [
    ("03_topk", {"k_seeds": 0}), ("03_topk", {"dim_seeds": -1}),
    ("08_reranking", {"compared_seeds": 0}), ("12_claims", {"exact_seeds": -1}),
    ("12_claims", {"dvse_seeds": -1})])
def test_numbers_of_seeds_that_train_nothing_are_refused(notebook, seeds):
    (name,) = seeds
    with pytest.raises(ValueError, match=f"{name} must be an integer >= [01], got"):
        Study(notebook, CELL | seeds)


def test_an_unknown_data_set_is_refused_with_those_that_there_are():
    with pytest.raises(ValueError, match="dataset must be one of scenes, flickr8k"):
        Study("03_topk", CELL | {"dataset": "flickr9k"})


def test_no_runs_are_no_success():
    study = Study("12_claims", CELL | {"exact_seeds": 0})  # claims about exact relevance left out
    for empty in ([], lambda dataset, parameters: []):
        with pytest.raises(ValueError, match="no run to train: .* 12_claims .*1 or more"):
            study.train(empty)


@pytest.mark.parametrize("dataset", ["flickr8k", "scenes"])
@pytest.mark.parametrize("profile", PROFILES)
def test_the_profiles_themselves_are_sound(dataset, profile):
    for notebook in ARMS:
        check_parameters(dataset, choose(notebook, profile))


def test_exact_labels_of_a_profile_are_left_out_where_nobody_knows_them():
    quick = choose("05_listwise", "quick")
    assert "exact" in quick.label_sources
    for dataset, known in (("scenes", True), ("flickr8k", False)):
        labels = {arm.label for arm in label_arms(dataset, quick)}
        assert ("hardest+listwise(exact)" in labels) == known
        assert "hardest+listwise(cider)" in labels


def test_a_plan_checks_its_parameters_too(monkeypatch):
    monkeypatch.setattr("itr_study.lab.studies.plans.choose",
                        lambda *names, **given: choose(*names, k_seeds=0, **given))
    with pytest.raises(ValueError, match="k_seeds must be an integer >= 1, got 0"):
        arms_of("03_topk", "scenes", "smoke")


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_notebook_has_arms_on_every_data_set(dataset):
    for notebook, makers in ARMS.items():
        assert arms_of(notebook, dataset, "full") or not makers
