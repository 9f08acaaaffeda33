"""The ladder to best_clean: one step at a time above the second judge, on dev, without a leak."""

from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from itr_study.data.batches import InputSpec
from itr_study.evaluation.evaluate import evaluate_scores
from itr_study.evaluation.search import Searcher
from itr_study.features.specs import image_parts, tuned_stages
from itr_study.models.network import TunesNetwork
from itr_study.runs.data import dataset_of, encoded_data
from itr_study.runs.run import build_model, weights
from itr_study.studies import best_clean
from itr_study.studies.arms import train_arms
from itr_study.studies.bases import base
from itr_study.studies.best_clean import (
    FISHER,
    LADDERS,
    TOGETHER,
    best_clean_arms,
    best_clean_config,
    steps,
    why_none,
)
from itr_study.studies.forecast import expected_minutes, kinds_of
from itr_study.studies.judges import judge_arms
from itr_study.studies.ladder import LOSSES, rung_config
from itr_study.studies.profiles import choose
from itr_study.studies.topk import setting_arms
from tests.studies.test_ladder import values

PARAMETERS = SimpleNamespace(epochs=0, scenes={}, data_options={}, best_clean_seeds=2)
RUNGS = [(dataset, name) for dataset, ladder in LADDERS.items() for name in ladder.rungs]


@pytest.mark.parametrize("dataset, name", RUNGS)
def test_a_rung_changes_what_it_says_of_the_one_below_and_nothing_else(dataset, name):
    ladder = LADDERS[dataset]
    rung, names = ladder.rungs[name], list(ladder.rungs)
    assert not rung.below or names.index(rung.below) < names.index(name)
    below = rung_config(dataset, rung.below, PARAMETERS, ladder) if rung.below else \
        base(dataset, ladder.start)
    here, before = (values(config) for config in (
        rung_config(dataset, name, PARAMETERS, ladder), below))
    changed = {path: value for path, value in here.items() if before.get(path) != value}
    said = {path: value for path, value in rung.changes.items()
            if path != "settings.learning_rate_factors"}
    factors = rung.changes.get("settings.learning_rate_factors", {})
    assert changed == said | {f"settings.learning_rate_factors.{k}": v for k, v in factors.items()}
    assert before.keys() <= here.keys()


@pytest.mark.parametrize("dataset", LADDERS)
def test_every_rung_and_the_fisher_vectors_have_their_losses_over_paired_seeds(dataset):
    """Both; the hardest negative alone where a network is trained, for that is dear."""
    arms = best_clean_arms(dataset, PARAMETERS)
    names = [*LADDERS[dataset].rungs, FISHER]
    assert [(arm.label, arm.config.seed) for arm in arms] == [
        (f"{name}/{loss}", seed) for name in names
        for loss in (["hardest"] if "last stages" in name else LOSSES) for seed in (0, 1)]
    assert len({arm.config.model_dump_json() for arm in arms}) == len(arms)
    for arm in arms:
        assert not tuned_stages(arm.config.images) or \
            arm.config.settings.learning_rate_factors == {"network": 0.01}


def test_the_start_and_the_fisher_vectors_are_runs_that_other_notebooks_have():
    """So that they are trained once: the second judge at its searched rate, and Table IV."""
    known = {arm.config.model_dump_json() for arm in (
        *judge_arms("flickr8k", choose("12_claims", "full")),
        *setting_arms("flickr8k", choose("03_topk", "full")))}
    for name in ("clean_gru", FISHER):
        for loss in LOSSES:
            config = best_clean_config("flickr8k", name, PARAMETERS, loss)
            assert config.model_dump_json() in known, (name, loss)


@pytest.mark.parametrize("name", LADDERS["flickr8k"].rungs)
def test_no_part_has_seen_a_caption_and_every_model_can_be_built(name):
    config = best_clean_config("flickr8k", name, PARAMETERS, "hardest")
    parts, vectors = image_parts(config.images), torch.zeros(9, 50)
    assert config.tokens == "glove" and config.sentences is None
    assert {part.encoder for part in parts} <= {"lite0", "lite2"}
    assert all(term.labels == "binary" for term in config.terms)
    stages = tuned_stages(config.images)
    model = build_model(config, InputSpec(0 if stages else 7, 9, 0, vectors, stages=stages))
    assert isinstance(model, TunesNetwork) and (model.network is not None) == bool(stages)
    assert len(parts) == 1 or {part.kind for part in parts} == {"pooled"}  # others do not join


def test_the_base_is_a_rung_that_nobody_has_trained():
    assert base("flickr8k", "best_clean") == best_clean_config(
        "flickr8k", "last stages trained", PARAMETERS, "hardest")


def test_no_seeds_or_data_without_a_ladder_train_nothing_and_say_why():
    none = SimpleNamespace(**vars(PARAMETERS) | {"best_clean_seeds": 0})
    for dataset in LADDERS:
        assert best_clean_arms(dataset, none) == []
        assert why_none(dataset, none).startswith("nothing of this ladder is trained: ")
    assert best_clean_arms("cub", PARAMETERS) == []
    assert why_none("cub", PARAMETERS) == "cub has no such ladder; there is one of flickr8k and " \
        "scenes"
    seeds = [choose("09_stronger_models", profile).best_clean_seeds
             for profile in ("smoke", "quick", "full")]
    assert seeds == [1, 0, 2]


def test_two_models_are_a_rung_of_the_mean_of_their_scores_on_dev(monkeypatch):
    made = []

    def searcher(run, split):
        made.append((run.label, run.config.seed, split))

    def fake(members, measures):
        return SimpleNamespace(table={"rsum": 310.0 if "vsepp+gru/sum" in members else 320.0})

    monkeypatch.setattr(best_clean, "ensemble", fake)
    start = LADDERS["scenes"].start
    runs = best_clean_arms("scenes", PARAMETERS)
    rows = pd.DataFrame([(run.label, run.config.seed, 300.0 + run.config.seed, 2.0)
                         for run in runs if run.config.seed == 0 or FISHER not in run.label],
                        columns=["arm", "seed", "dev_rsum", "minutes"])
    table = steps("scenes", rows, runs, searcher)
    both = table[table["label"] == TOGETHER].set_index("group")
    assert both["difference"].to_dict() == {"sum": 10.0, "hardest": 20.0}
    assert both["n"].tolist() == [1, 1] and both["minutes"].tolist() == [4.0, 4.0]
    assert made == [(f"{name}/{loss}", 0, "dev") for loss in LOSSES for name in (start, FISHER)]
    assert {*table["label"]} == {*LADDERS["scenes"].rungs, TOGETHER} - {start}


def test_on_generated_data_it_trains_and_holds_two_models_against_one():
    parameters = choose("09_stronger_models", "smoke", scenes={"train": 12, "dev": 6, "test": 6})
    wanted = ("vsepp+gru/sum", f"{FISHER}/sum", "learnt pool/sum")
    runs = [run for run in best_clean_arms("scenes", parameters) if run.label in wanted]

    def searcher(run, split):
        return Searcher(weights(run.config), dataset_of(run.config), encoded_data(run.config),
                        split)

    rows = train_arms(runs, workers=1)
    table = steps("scenes", rows, runs, searcher)
    assert [*table["label"]] == ["learnt pool", TOGETHER] and table["difference"].notna().all()
    one, other = (searcher(run, "dev").scores for run in runs if run.label in wanted[:2])
    mean = evaluate_scores((one + other) / 2, encoded_data(runs[0].config).splits["dev"])[0]
    assert table["dev_rsum"].iloc[1] == pytest.approx(mean["rsum"])


def test_the_length_of_a_run_on_a_grid_or_with_a_network_is_not_that_of_another():
    assert kinds_of("lite0:pooled:flip+lite2:pooled:ten") == {"pooled"}
    assert kinds_of("lite0:nanodet:36") == {"nanodet", "36"} and kinds_of("pixels:lite0") == {
        "pixels"}
    config = base("flickr8k", "best_clean")
    row = {"model": config.model, "minutes": 6.0, "images": "lite0:pooled:one", "sentences": None,
           "tokens": config.tokens, "config": base("flickr8k", "clean_gru").model_dump_json()}
    assert expected_minutes(config, {"a": row}) is None
    assert expected_minutes(config.with_(images="lite0:grid:one"), {"a": row}) is None
    assert expected_minutes(config.with_(images="lite2:pooled:ten"), {"a": row}) == 6.0
    own = row | {"images": config.images, "config": config.model_dump_json(), "minutes": 30.0}
    assert expected_minutes(config, {"a": row, "b": own}) == 30.0
