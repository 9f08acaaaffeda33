"""What parameters may be is checked before anything is trained."""

import pytest

from itr_study.studies.parameters import NAMES, check_parameters
from itr_study.studies.plans import ARMS, arms_of
from itr_study.studies.profiles import FILE, PROFILES, choose, read_profiles
from itr_study.studies.study import Study

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


@pytest.mark.parametrize("notebook, seeds", [
    ("03_topk", {"k_seeds": 0}), ("03_topk", {"dim_seeds": -1}),
    ("08_reranking", {"swept_seeds": 0}), ("12_claims", {"exact_seeds": -1})])
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


def test_a_plan_checks_its_parameters_too(monkeypatch):
    monkeypatch.setattr("itr_study.studies.plans.choose",
                        lambda *names, **given: choose(*names, k_seeds=0, **given))
    with pytest.raises(ValueError, match="k_seeds must be an integer >= 1, got 0"):
        arms_of("03_topk", "scenes", "smoke")


def test_settings_of_data_without_searched_rates_are_left_to_who_looks_them_up():
    for notebook in ("03_topk", "08_reranking"):
        check_parameters("flickr30k", choose(notebook, "full"))
        with pytest.raises(ValueError, match="nobody has searched the learning rates of flickr30k"):
            arms_of(notebook, "flickr30k", "full")
