"""Steps to best_clean, above the second base model, on dev, without a leak."""


import pytest
import torch

from itr_study.data.batches import InputSpec
from itr_study.evaluation.evaluate import evaluate_scores
from itr_study.evaluation.search import Searcher
from itr_study.features.specs import image_parts, tuned_stages
from itr_study.lab.runs.data import dataset_of, encoded_data
from itr_study.lab.runs.run import build_model, weights
from itr_study.lab.studies.arms import train_arms
from itr_study.lab.studies.bases import base
from itr_study.lab.studies.ensembles import ensemble_rows
from itr_study.lab.studies.nb03_topk import setting_arms
from itr_study.lab.studies.nb09_stronger_models import (
    ALL,
    BEST_CLEAN,
    FISHER,
    TOGETHER,
    best_clean_arms,
    best_clean_config,
    put_together,
    step_config,
    why_none,
    worth,
)
from itr_study.lab.studies.nb12_claims import second_base_arms
from itr_study.lab.studies.plans import choose, expected_minutes, kinds_of
from itr_study.models.image import TunesNetwork
from tests.studies.test_clean_gru import values

PARAMETERS = choose("09_stronger_models", "full", best_clean_seeds=2, dear_seeds=1)
STEPS = [(dataset, name) for dataset, steps in BEST_CLEAN.items() for name in steps.steps]


@pytest.mark.parametrize("dataset, name", STEPS)
def test_a_step_changes_what_it_says_of_the_one_below_and_nothing_else(dataset, name):
    steps = BEST_CLEAN[dataset]
    step, names = steps.steps[name], list(steps.steps)
    assert not step.below or names.index(step.below) < names.index(name)
    below = step_config(dataset, step.below, PARAMETERS, steps) if step.below else \
        base(dataset, steps.start)
    here, before = (values(config) for config in (
        step_config(dataset, name, PARAMETERS, steps), below))
    changed = {path: value for path, value in here.items() if before.get(path) != value}
    said = {path: value for path, value in step.changes.items()
            if path != "settings.learning_rate_factors"}
    factors = step.changes.get("settings.learning_rate_factors", {})
    assert changed == said | {f"settings.learning_rate_factors.{k}": v for k, v in factors.items()}
    assert before.keys() <= here.keys()


@pytest.mark.parametrize("dataset", BEST_CLEAN)
def test_every_step_and_the_fisher_vectors_are_trained_over_paired_seeds(dataset):
    """Dear ones over seeds of their own, and a network that is trained at a rate of its own."""
    steps = BEST_CLEAN[dataset].steps
    for dear, least in ((1, 1), (0, 0)):
        arms = best_clean_arms(dataset, PARAMETERS.model_copy(update={"dear_seeds": dear}))
        assert [(arm.label, arm.config.seed) for arm in arms] == [
            (f"{name}/hardest", seed) for name in [*steps, FISHER]
            for seed in range(least if name in steps and steps[name].dear else 2)]
        assert len({arm.config.model_dump_json() for arm in arms}) == len(arms)
    for name, step in steps.items():
        config = best_clean_config(dataset, name, PARAMETERS)
        assert bool(tuned_stages(config.images)) == (
            config.settings.learning_rate_factors == {"network": 0.01})
        if "grid" in config.images or "stage" in config.images:
            assert step.dear


def test_the_start_and_the_fisher_vectors_are_runs_that_other_notebooks_have():
    """So that they are trained once: the second base model at its searched rate, and Table IV."""
    known = {arm.config.model_dump_json() for arm in (
        *second_base_arms("flickr8k", choose("12_claims", "full")),
        *setting_arms("flickr8k", choose("03_topk", "full")))}
    for name in ("clean_gru", FISHER):
        config = best_clean_config("flickr8k", name, PARAMETERS)
        assert config.model_dump_json() in known, name


@pytest.mark.parametrize("name", BEST_CLEAN["flickr8k"].steps)
def test_no_part_has_seen_a_caption_and_every_model_can_be_built(name):
    config = best_clean_config("flickr8k", name, PARAMETERS)
    parts, vectors = image_parts(config.images), torch.zeros(9, 50)
    assert config.tokens == "glove" and config.sentences is None
    assert {part.encoder for part in parts} <= {"lite0", "lite1", "lite2"}
    assert all(term.labels == "binary" for term in config.terms)
    stages = tuned_stages(config.images)
    model = build_model(config, InputSpec(0 if stages else 7, 9, 0, vectors, stages=stages))
    assert isinstance(model, TunesNetwork) and (model.network is not None) == bool(stages)
    assert len(parts) == 1 or {part.kind for part in parts} == {"pooled"}  # others do not join


@pytest.mark.parametrize("dataset", BEST_CLEAN)
def test_the_base_is_the_step_that_is_taken(dataset):
    steps = BEST_CLEAN[dataset]
    assert steps.best in steps.steps and not steps.steps[steps.best].dear
    if dataset == "flickr8k":
        assert base(dataset, "best_clean") == best_clean_config(dataset, steps.best, PARAMETERS)


def test_no_seeds_or_data_without_steps_train_nothing_and_say_why():
    none = PARAMETERS.model_copy(update={"best_clean_seeds": 0})
    for dataset, told in (("flickr8k", f"4 steps and {FISHER}, with dear_seeds = 1 9 others, too"),
                          ("scenes", f"5 steps and {FISHER}")):
        assert best_clean_arms(dataset, none) == []
        assert why_none(dataset, none) == ("none of these steps is trained: best_clean_seeds is "
                                           f"0. With 1 it trains {told}")
    assert {run.config.images for run in best_clean_arms("cub", PARAMETERS)} == {
        "lite0:pooled:flip"}  # on other data the steps of scenes, which change no images
    seeds = [choose("09_stronger_models", profile).best_clean_seeds
             for profile in ("smoke", "quick", "full")]
    assert seeds == [1, 0, 3]


def test_the_best_step_goes_together_with_the_fisher_vectors_seed_by_seed_and_all_of_them():
    runs = best_clean_arms("flickr8k", PARAMETERS)
    made = {key: [(run.label, run.config.seed) for run in members]
            for key, members in put_together("flickr8k", runs).items()}
    best, fisher = f"{BEST_CLEAN['flickr8k'].best}/hardest", f"{FISHER}/hardest"
    assert made == {(TOGETHER, 0): [(best, 0), (fisher, 0)],
                    (TOGETHER, 1): [(best, 1), (fisher, 1)],
                    (ALL, 0): [(best, 0), (best, 1), (fisher, 0), (fisher, 1)]}
    alone = [run for run in runs if run.config.seed == 0]
    assert [*put_together("flickr8k", alone)] == [(TOGETHER, 0)]  # all of one are no more


def test_on_generated_data_it_trains_and_averages_models():
    parameters = choose("09_stronger_models", "smoke", scenes={"train": 12, "dev": 6, "test": 6})
    wanted = [f"{name}/hardest" for name in (BEST_CLEAN["scenes"].best, FISHER, "learnt pool")]
    runs = [run for run in best_clean_arms("scenes", parameters) if run.label in wanted]

    def searcher(run):
        return Searcher(weights(run.config), dataset_of(run.config), encoded_data(run.config),
                        "test")

    rows = train_arms(runs, workers=0)
    table = worth(rows, BEST_CLEAN["scenes"].steps)
    assert [*table["label"]] == ["learnt pool"] and table["difference"].notna().all()
    pairs = put_together("scenes", runs)
    made = ensemble_rows(rows, pairs, searcher)
    one, other = (searcher(run).scores for run in pairs[TOGETHER, 0])
    mean = evaluate_scores((one + other) / 2, encoded_data(runs[0].config).splits["test"])[0]
    assert made["test_rsum"].iloc[0] == pytest.approx(mean["rsum"])


def test_the_length_of_a_run_on_a_grid_or_with_a_network_is_not_that_of_another():
    assert kinds_of("lite0:pooled:flip+lite2:pooled:ten") == {"pooled"}
    assert kinds_of("lite0:nanodet:36") == {"nanodet", "36"} and kinds_of("pixels:lite0") == {
        "pixels"}
    config = best_clean_config("flickr8k", "last stages trained", PARAMETERS)
    row = {"model": config.model, "minutes": 6.0, "images": "lite0:pooled:one", "sentences": None,
           "tokens": config.tokens, "config": base("flickr8k", "clean_gru").model_dump_json()}
    assert expected_minutes(config, {"a": row}) is None
    assert expected_minutes(config.with_(images="lite0:grid:one"), {"a": row}) is None
    assert expected_minutes(config.with_(images="lite2:pooled:ten"), {"a": row}) == 6.0
    own = row | {"images": config.images, "config": config.model_dump_json(), "minutes": 30.0}
    assert expected_minutes(config, {"a": row, "b": own}) == 30.0
