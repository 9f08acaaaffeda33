"""What parameters may be is checked before anything is trained."""

import pytest

from itr_study.data import DATASETS
from itr_study.lab.studies.arms import base_config
from itr_study.lab.studies.nb05_listwise import label_arms
from itr_study.lab.studies.parameters import PROFILES, Parameters
from itr_study.lab.studies.plans import STUDIES, arms_of, choose
from itr_study.lab.studies.study import Study

FIELDS = {(name, field_name): field for name, (parameters, _) in STUDIES.items()
          for field_name, field in parameters.model_fields.items() if field.json_schema_extra}
LISTS = {key: field.json_schema_extra for key, field in FIELDS.items()
         if isinstance(field.json_schema_extra.get("sizes", {}).get("smoke"), list)}


def refused(notebook, dataset="scenes", profile="smoke", **given) -> str:
    """Why a notebook takes no such parameters."""
    with pytest.raises(ValueError) as caught:
        choose(notebook, profile, dataset=dataset, **given)
    return str(caught.value)


def test_the_profile_gives_numbers_and_an_explicit_parameter_wins():
    quick = choose("03_topk", "quick", k_seeds=None, ks=None)
    assert (quick.k_seeds, quick.dims, quick.explicit) == (5, [200, 350, 500, 650, 800], {})
    given = {"k_seeds": 7, "ks": [4], "rates": [0.5], "data_options": {"skip_bad": True}}
    full = choose("03_topk", "full", dataset="flickr8k", workers=3, **given)
    assert {name: vars(full)[name] for name in given} == given == full.explicit
    full.dims.append(900)
    assert choose("03_topk", "full").dims[-1] == 800


@pytest.mark.parametrize("key", [key for key, field in FIELDS.items()
                                 if field.json_schema_extra.get("among")])
def test_a_name_that_there_is_not_is_refused_with_those_that_there_are(key):
    """`settings=["nope"]` was a bare KeyError."""
    notebook, name = key
    wrong = "hardst" if name == "dataset" else ["hardst"]
    assert refused(notebook, **{name: wrong, "dataset": "scenes"} if name != "dataset" else {
        "dataset": wrong}).startswith(f"{name} must be one of ")


@pytest.mark.parametrize("key", LISTS)
def test_lists_need_items_and_hold_none_twice(key):
    """`ks=[]` trained for 43 s, then "attempt to get argmax of an empty sequence"."""
    (notebook, name), extra = key, LISTS[key]
    value = extra["sizes"]["smoke"]
    if extra["empty"]:
        choose(notebook, "smoke", **{name: []})
    else:
        assert refused(notebook, **{name: []}).startswith(f"{name} is empty and needs an item; ")
    if value:
        assert f"{name} holds {value[0]!r} twice" in refused(notebook, **{
            name: [*value, value[0]]})


OUTSIDE = [  # parameters, what each refuses, and what it does not
    ("03_topk", {"epochs"}, (-1, True, 1.5), (0, 3)),
    ("03_topk", {"k_seeds", "dim_seeds", "best_seeds"}, (0, -1, "2"), (1,)),
    ("12_claims", {"exact_seeds", "dvse_seeds"}, (-1,), (0,)),
    ("03_topk", {"ks"}, ([0], [1, "2"], "(1, 2)"), ([1, 127],)),
    ("03_topk", {"dims"}, ([-3],), ([1],)), ("06_kendall", {"batches"}, ([1],), ([2],)),
    ("04_relevance", {"pairs", "resamples"}, (0,), (1,)),
    ("06_kendall", {"alphas"}, ([-0.1], [2.0]), ([0.0, 1.99],)),
    ("06_kendall", {"betas"}, ([0.0], [1.9]), ([1.8],)),
    ("02_pairwise_losses", {"margins"}, ([-0.1], [float("nan")], [10 ** 400]), ([0.0, 3],)),
    ("07_sub_embeddings", {"heads"}, ([0, -1], [0, 65]), ([0, 64],)),
    ("07_sub_embeddings", {"pvse_heads"}, ([0],), ([64],)),
    ("07_sub_embeddings", {"bounds"}, ([-0.1],), ([0.0, 2.0],)),
    ("07_sub_embeddings", {"balances"}, ([0.0], [1.1]), ([0.1, 1.0],)),
    ("08_reranking", {"scales"}, ([0.0, 1.0], [1.0, 1e7]), ([1e-9, 1e3],)),
    ("03_topk", {"rates"}, ([0.0], ["2e-3"], [True]), ([1e-9, 1],)),
    ("13_when_to_forgive", {"levels"}, ([0, 5],), ([0, 4],)),
    ("13_when_to_forgive", {"noises"}, ([0.0, 1.0], ["0.2"]), ([0.0, 0.9],)),
    ("13_when_to_forgive", {"second_losses"}, ([["hardest"]],), ([],)),
    ("03_topk", {"scenes"}, ({"train": 0}, {"val": 5}), ({"train": 1},)),
    ("03_topk", {"profile"}, ("fast",), ()), ("03_topk", {"workers"}, (-1,), (0,)),
    ("03_topk", {"images"}, ("lite9:pooled:flip", 3), ("lite0:pooled:flip", "given"))]


@pytest.mark.parametrize("notebook, names, wrong, right", OUTSIDE)
def test_values_outside_their_bounds_are_refused_and_their_ends_are_not(
        notebook, names, wrong, right):
    """`-p dims=[-3]` was a ValidationError of which "why" did not say what was wrong."""
    parameters, _ = STUDIES[notebook]
    for name in names:
        for value in wrong:
            with pytest.raises(ValueError, match=r"must be .*got"):
                parameters.of(**{"profile": "smoke", name: value})
        for value in right:
            assert vars(parameters.of(**{"profile": "smoke", name: value}))[name] == value


@pytest.mark.parametrize("notebook, dataset, profile, given, message", [
    ("03_topk", "scenes", "smoke", {"k_sees": 1},
     "parameter of 03_topk must be one of profile, .*; got 'k_sees'; did you mean 'k_seeds'"),
    ("03_topk", "scenes", "smoke", {"ks": [0]}, "ks.0 must be greater than 0, got 0$"),
    ("13_when_to_forgive", "flickr8k", "smoke", {"noises": [0.2, 0.2000001]},
     "noises holds 0.2000001 twice .as 0.2, whose label is"),
    ("06_kendall", "scenes", "smoke", {"alphas": [0.0, -0.0]}, "alphas holds -0.0 twice"),
    ("03_topk", "scenes", "smoke", {"ks": [5, 500]},
     "ks must be below 128, got 500: .* at most 127 negatives"),
    ("06_kendall", "scenes", "smoke", {"grid_alphas": [1.5], "grid_ends": []},
     "grid_betas must be at most 2 - alpha, got 0.6 and alpha 1.5 in grid_alphas"),
    ("08_reranking", "scenes", "smoke", {"scales": [25.0]}, "scales must hold two or more"),
    ("04_relevance", "scenes", "smoke", {"sources": ["cidr/max"]}, ".*did you mean 'cider'"),
    ("03_topk", "scenes", "smoke", {"data_options": {"caption_noise": 2.0}},
     "caption_noise must be a share in "),
    ("03_topk", "coco", "smoke", {"data_options": {"splits": ["train", "dev"]}},
     "splits must be train, dev, test, all of which a run reads; got"),
    ("03_topk", "scenes", "smoke", {"data_options": {"noise_seed": -1}},
     "noise_seed must be an integer >= 0"),
    ("03_topk", "scenes", "smoke", {"data_options": {"vagueness": 9}},
     "vagueness must be an integer >= 0 and <= 4"),
    ("03_topk", "scenes", "smoke", {"data_options": {"skip_bad": True}},
     "argument of dataset 'scenes' must be one "),
    ("03_topk", "flickr8k", "full", {"data_options": {"leave_out": "near_duplicate"}},
     "leave_out must be one of nothing, near_duplicates, "),
    ("03_topk", "flickr8k", "full", {"data_options": {"skip_bad": 2}},
     "skip_bad of dataset .flickr8k. must be true or false, got 2"),
    # who leaves names of the profile behind is told which parameter to set
    ("13_when_to_forgive", "flickr8k", "full", {"compared": ["hardest"]},
     "compared .* no 'sum', .* set rate_losses, too, "),
    ("08_reranking", "flickr8k", "full", {"reranked": ["hardest"]},
     "reranked .* no 'sum', .*: set tuned, too, to "),
    ("08_reranking", "flickr8k", "full", {"reranked": ["sum"], "tuned": ["sum"]},
     "reranked .* set swept, too, to "),
    ("06_kendall", "flickr8k", "full", {"grid_alphas": [0.1]},
     "grid_alphas as given leave no .* set grid_ends, too"),
    ("13_when_to_forgive", "scenes", "smoke", {"compared": ["hardest"], "rate_losses": ["sum"]},
     "rate_losses must be one of hardest; got 'sum'"),
    # what could train or choose nothing, or is held against nothing
    ("12_claims", "flickr8k", "full", {"second_searched": ["sum"], "second_factors": [0.5, 2.0]},
     "second_factors must hold 3 or more for second_searched, got .0.5, 2.0.: a best rate at "),
    ("12_claims", "flickr8k", "smoke", {"compared": ["hardest"], "second_searched": ["ladder"]},
     "second_searched must be one of sum, hardest, .*; got 'ladder'"),
    ("12_claims", "flickr8k", "full", {"label_sources": ["nope"], "second_searched": ["sum"]},
     "label_sources must be "),
    ("12_claims", "flickr8k", "full", {"label_sources": ["cider", "exact"]},
     "label_sources must be one of binary, sentence, .*; got 'exact'"),
    ("13_when_to_forgive", "flickr8k", "full",
     {"second_losses": ["hardest", "soft"], "noises": [], "left_out": []},
     "second_losses = .'hardest', 'soft'. train nothing by themselves: name noises, too"),
    ("13_when_to_forgive", "scenes", "smoke", {"noises": [0.4]}, ".*name another, too, such as "),
    ("13_when_to_forgive", "scenes", "smoke", {"left_out": ["near_duplicates"]},
     "left_out = .* such as 'as_many_others'"),
    ("13_when_to_forgive", "scenes", "smoke", {"tolerant": ["hardest"]},
     "tolerant = ..hardest.. has nothing to be compared with: .* such as 'top5'"),
    ("13_when_to_forgive", "scenes", "smoke", {"tolerant": ["top5", "soft"]},
     "tolerant must hold hardest, with which the others are compared; got .'top5', 'soft'.")])
def test_what_a_part_would_refuse_after_minutes_is_refused_at_once(
        notebook, dataset, profile, given, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        choose(notebook, profile, dataset=dataset, **given)


@pytest.mark.parametrize("notebook, dataset, given", [
    ("13_when_to_forgive", "flickr8k", {"second_losses": ["hardest", "soft"], "left_out": []}),
    ("13_when_to_forgive", "flickr8k", {"second_losses": ["hardest", "soft"], "noises": []}),
    ("13_when_to_forgive", "scenes", {"compared": ["hardest"], "rate_losses": ["hardest"]}),
    ("12_claims", "flickr8k", {"second_searched": ["sum"], "second_factors": [0.5, 1.0, 2.0]}),
    ("12_claims", "flickr8k", {"compared": ["hardest", "soft"], "second_searched": ["hardest"]}),
    ("12_claims", "scenes", {"label_sources": ["exact"], "second_searched": []}),
    ("03_topk", "flickr30k", {"data_options": {
        "features": "precomputed", "splits": ["train", "dev", "test"]}})])
def test_what_trains_something_is_not_refused(notebook, dataset, given):
    assert given.items() <= choose(notebook, "full", dataset=dataset, **given).explicit.items()


@pytest.mark.parametrize("dataset", ["flickr8k", "scenes"])
@pytest.mark.parametrize("profile", PROFILES)
def test_the_profiles_themselves_are_sound(dataset, profile):
    for notebook in STUDIES:
        assert choose(notebook, profile, dataset=dataset).explicit == {}


def test_no_runs_are_no_success():
    study = Study("12_claims", {"profile": "smoke", "exact_seeds": 0})
    for empty in ([], lambda dataset, parameters: []):
        with pytest.raises(ValueError, match="no run to train: .* 12_claims .*1 or more"):
            study.train(empty)


def test_image_features_are_those_of_every_run():
    runs = arms_of("03_topk", "flickr8k", "smoke", images="lite0:pooled:flip")
    assert {run.config.images for run in runs} == {"lite0:pooled:flip"}


def test_exact_labels_of_a_profile_are_left_out_where_nobody_knows_them():
    quick = choose("05_listwise", "quick")
    assert "exact" in quick.label_sources
    for dataset, known in (("scenes", True), ("flickr8k", False)):
        labels = {arm.label for arm in label_arms(dataset, quick)}
        assert ("hardest+listwise(exact)" in labels) == known
        assert "hardest+listwise(cider)" in labels


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_notebook_has_arms_on_every_data_set(dataset):
    for notebook, (_, makers) in STUDIES.items():
        assert arms_of(notebook, dataset, "full") or not makers


def test_given_images_are_those_of_data_that_have_features():
    assert base_config("coco", "dvse", Parameters.of(images="given")).images == "given"
    with pytest.raises(ValueError, match="with flickr30k and coco, and folder has none: leave "):
        base_config("folder", "dvse", Parameters.of(images="given"))


@pytest.mark.parametrize("notebook", STUDIES)
def test_every_notebook_has_arms_of_one_epoch(notebook):
    """None is all warm-up: -p epochs=1."""
    arms = arms_of(notebook, "scenes", "quick", epochs=1)
    assert all(not arm.config.settings.warmup_epochs for arm in arms)


def test_of_few_epochs_the_last_trains_the_loss_itself():
    usual = base_config("folder", "vsepp+bigru-glove", Parameters.of(epochs=9)).settings
    assert (usual.epochs, usual.warmup_epochs) == (9, 4)
    few = base_config("folder", "vsepp+bigru-glove", Parameters.of(epochs=4))
    assert few.settings.warmup_epochs == 3 and few.warmup_objective
    once = base_config("folder", "vsepp+bigru-glove", Parameters.of(epochs=1))
    assert once.settings.warmup_epochs == 0 and not once.warmup_objective
