"""The arms of notebook 13, what a loss gains over the hardest negative, and predictions."""

import doctest
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from itr_study.data.scenes.styles import USUAL
from itr_study.lab.runs.published import keeps_rows
from itr_study.lab.studies import bases, nb13_forgive
from itr_study.lab.studies.arms import in_one_model
from itr_study.lab.studies.nb06_kendall import compared_arms
from itr_study.lab.studies.nb13_forgive import (
    FORGIVING,
    WHOLE,
    against,
    between,
    gains,
    near_duplicate_arms,
    noise_arms,
    outcomes,
    refusal_rows,
    refusing_arms,
    rising,
    scene_arms,
    second_arms,
    vague_levels,
    vagueness_arms,
    within,
)
from itr_study.lab.studies.plans import choose
from itr_study.lab.studies.study import Study

SMALL = choose("13_when_to_forgive", "quick", seeds=2, levels=[0, 1, 2, 3, 4],
               scenes={"train": 40, "dev": 5, "test": 5}, noises=[0.0, 0.2, 0.4],
               left_out=["near_duplicates", "as_many_others"], tolerant=list(FORGIVING))


def test_examples_in_docstrings():
    result = doctest.testmod(nb13_forgive)
    assert result.attempted and not result.failed


def test_every_loss_at_every_level_over_the_same_seeds():
    arms = vagueness_arms("scenes", SMALL)
    assert len(arms) == 5 * 6 * 2 and len({(arm.label, arm.config.seed) for arm in arms}) == 60
    assert {arm.label for arm in arms} == {
        f"{loss}, vagueness={level}" for loss in FORGIVING for level in range(5)}
    for arm in arms:
        assert f"vagueness={arm.config.data_options['vagueness']}" in arm.label
        assert arm.config.data_options["train"] == 40 and arm.config.model == "two_branch"
    losses = {arm.label: [term.loss for term in arm.config.objective] for arm in arms}
    assert losses["hardest+listwise, vagueness=0"] == ["triplet_hardest", "smooth_ndcg"]


@pytest.mark.parametrize("make, dataset, knob", [
    (vagueness_arms, "scenes", f"vagueness={USUAL}"), (noise_arms, "flickr8k", "noise=0"),
    (noise_arms, "scenes", "noise=0")])
def test_the_data_as_it_is_takes_the_runs_that_are_there(make, dataset, knob):
    """Ids leave defaults out: these runs are those of other notebooks, and their rows serve."""
    plain = {(arm.label, arm.config.seed): arm.config.differing()
             for arm in in_one_model(dataset, SMALL, 2, FORGIVING)}
    same = {(arm.label.removesuffix(f", {knob}"), arm.config.seed): arm.config.differing()
            for arm in make(dataset, SMALL) if arm.label.endswith(f", {knob}")}
    assert same == plain


def test_photographs():
    noise, fewer = noise_arms("flickr8k", SMALL), near_duplicate_arms("flickr8k", SMALL)
    assert len(noise) == 3 * 6 * 2 and len(fewer) == 2 * 6 * 2
    assert noise[-1].label == "hardest+listwise, noise=0.4"
    assert noise[-1].config.data_options == {"caption_noise": 0.4}
    assert fewer[0].label == "hardest, without near_duplicates"
    assert fewer[-1].config.data_options == {"leave_out": "as_many_others"}


def test_a_data_set_without_the_option_has_no_such_arms():
    assert vagueness_arms("flickr8k", SMALL) == near_duplicate_arms("scenes", SMALL) == []
    assert noise_arms("coco", SMALL) == []


def test_the_vaguer_the_more_false_negatives_and_ambiguous_texts():
    found = vague_levels("scenes", SMALL)
    assert list(found) == [0, 1, 2, 3, 4] and found[0].pairs.cells == 128 * 127
    assert found[4].pairs.share > 50 * found[0].pairs.share
    assert found[4].ambiguous > found[0].ambiguous
    assert all(len(level.captions) == 3 for level in found.values())
    assert found[0].captions != found[4].captions
    photographs = SMALL.model_copy(update={"data_options": {"skip_bad": True}})
    assert vague_levels("flickr8k", photographs) == found  # whose options are not the generator's


def test_another_data_set_gives_the_scenes_nothing_but_its_name():
    """Its options are none of the generator's, and in profile full their rows are kept."""
    full = choose("13_when_to_forgive", "full", dataset="flickr8k", levels=WHOLE["levels"],
                  data_options={"skip_bad": True})
    runs = scene_arms("flickr8k", full)
    assert len(runs) == 5 * 6 * 5 and all(keeps_rows(run.config) for run in runs)
    assert {run.config.dataset for run in runs} == {"scenes"}
    assert runs == vagueness_arms("scenes", choose("13_when_to_forgive", "full",
                                                   levels=WHOLE["levels"]))
    assert not any(keeps_rows(run.config) for run in scene_arms("scenes", SMALL))


def test_no_noise_is_the_comparison_of_section_1():
    """Nothing is trained twice."""
    full = choose("13_when_to_forgive", "full", second_losses=[])
    known = {(arm.label, arm.config.seed): arm.config.differing()
             for arm in compared_arms("flickr8k", full)}
    plain = [arm for arm in noise_arms("flickr8k", full) if arm.label.endswith(", noise=0")]
    assert len(plain) == len(full.tolerant) * full.seeds
    for arm in plain:
        assert known[arm.label.removesuffix(", noise=0"), arm.config.seed] == arm.config.differing()


def test_the_second_base_model_has_labels_and_factors_of_its_own():
    both = SMALL.model_copy(update={"second_losses": ["hardest", "soft"]})
    second = [arm for arm in noise_arms("flickr8k", both) if arm.label.startswith("clean_gru/")]
    assert [arm.label for arm in second if not arm.config.seed] == [  # the ends of three noises
        f"clean_gru/{loss}, noise={share}" for share in (0, 0.4) for loss in ("hardest", "soft")]
    assert len(second) == 2 * 2 * 2 and len(SMALL.noises) == 3
    assert {arm.config.tokens for arm in second} == {"glove"}
    assert dict(second[-1].factors) == {"setting": "clean_gru", "loss": "soft", "noise": 0.4}
    assert len(noise_arms("scenes", both)) == len(noise_arms("scenes", SMALL)) + len(second)


def test_a_rate_that_was_searched_for_a_loss_is_taken(monkeypatch):
    both = {"soft": ("soft",), "sum": ("sum",)}
    for searched, rates in (({}, (4e-3, 4e-3)), ({"soft": 2e-3, "hardest": 1e-3}, (2e-3, 1e-3))):
        monkeypatch.setattr(bases, "searched_rates", lambda _, __, found=searched: {
            "clean_gru": found})
        runs = nb13_forgive.in_base("flickr8k", "clean_gru", SMALL, both)
        assert {run.label: run.config.settings.learning_rate for run in runs} == dict(
            zip(("clean_gru/soft", "clean_gru/sum"), rates, strict=True))


def made_up(values):
    """Rows of arms: {(base model, loss, noise): value by seed}, with names of their runs."""
    return pd.DataFrame([
        {"arm": f"{setting}/{loss}, noise={noise}", "setting": setting, "loss": loss,
         "noise": noise, "seed": seed, "dataset": "flickr8k", "model": "m", "test_rsum": value,
         "run": f"{setting}/{loss}, noise={noise} {seed}"}
        for (setting, loss, noise), by_seed in values.items()
        for seed, value in enumerate(by_seed)])


ROWS = made_up({("two", "hardest", 0): [10, 20], ("two", "soft", 0): [11, 23],
                ("two", "hardest", 0.4): [1, 2], ("two", "soft", 0.4): [5, 9],
                ("gru", "hardest", 0): [100, 100], ("gru", "soft", 0): [90, 80]})


COLLAPSED = dict.fromkeys(ROWS.run, "") | {"two/hardest, noise=0 1": "scores drew together"}


def test_a_gain_is_over_the_hardest_negative_of_the_same_base_model_setting_and_seed():
    found = gains(ROWS, "noise", ["test_rsum"], {}).set_index(["setting", "noise", "seed"])
    assert found.test_rsum.to_dict() == {
        ("two", 0, 0): 1, ("two", 0, 1): 3, ("two", 0.4, 0): 4, ("two", 0.4, 1): 7,
        ("gru", 0, 0): -10, ("gru", 0, 1): -20}
    assert against(ROWS, "noise") == [
        (arm, arm.replace("soft", "hardest")) for arm in dict.fromkeys(ROWS.arm) if "soft" in arm]
    assert against(ROWS, "noise", reference="soft") == [
        pair[::-1] for pair in against(ROWS, "noise")]
    other = gains(ROWS, "noise", ["test_rsum"], {}, "soft")
    assert (other.test_rsum.to_numpy() == -found.test_rsum.to_numpy()).all()


def test_a_gain_over_a_collapsed_run_says_so():
    found = gains(ROWS, "noise", ["test_rsum"], COLLAPSED).set_index(["arm", "seed"]).run
    assert found["two/soft, noise=0", 1] == "two/hardest, noise=0 1"
    assert found["two/soft, noise=0", 0] == "two/soft, noise=0 0"


def test_a_collapsed_loss_with_a_sound_hardest_negative_decides_nothing():
    """`Study.collapsed` holds every run, with no reason if it is sound: all gains went by the
    name of the hardest negative's run, and a loss's own collapse was forgotten."""
    study = Study("13_when_to_forgive", CELL)
    for fallen, verdict in (("two/soft, noise=0.4 1", "collapsed"), ("", "undecided (2 seeds)")):
        study.collapsed = dict.fromkeys(ROWS.run, "") | {fallen: "scores drew together"}
        gained = gains(ROWS, "noise", ["test_rsum"], study.collapsed)
        moved = study.compare(gained, between(gained, "noise", 0.4, 0))
        assert moved.verdict.tolist() == [verdict]
        assert moved[["setting", "loss", "noise", "noise_b"]].values.tolist() == [
            ["two", "soft", 0.4, 0]]


def test_settings_are_compared_within_a_base_model_and_a_loss():
    assert between(ROWS, "noise", 0.4, 0) == [
        ("two/hardest, noise=0.4", "two/hardest, noise=0"),
        ("two/soft, noise=0.4", "two/soft, noise=0")]


def test_a_difference_is_small_where_its_interval_lies_inside_the_margin():
    table = pd.DataFrame({"low": [-4, -6, 6, -9, 1], "high": [4, 4, 9, -6, 2],
                          "verdict": ["undecided", "undecided", "higher", "lower",
                                      "undecided (3 seeds)"]})
    assert list(within(table, 5).verdict) == ["higher", "undecided", "lower", "lower",
                                              "undecided (3 seeds)"]
    assert within(table.assign(verdict="collapsed"), 5).verdict.eq("collapsed").all()


@pytest.mark.parametrize("predicted, happened", [
    ("higher", ["as predicted", "against it", "open", "open"]),
    ("lower", ["against it", "as predicted", "open", "open"])])
def test_only_decided_differences_are_for_or_against_a_prediction(predicted, happened):
    differences = pd.DataFrame({"verdict": ["higher", "lower", "undecided (3 seeds)", "collapsed"],
                                "metric": "test_rsum", "setting": "clean_gru", "loss": "top5"})
    table = outcomes(differences, predicted)
    assert table["what happened"].tolist() == happened
    assert table.iloc[0].tolist() == ["RSUM", "Clean GRU", "top-5", happened[0]]


def test_a_loss_rises_if_all_its_crossings_do():
    gain = pd.DataFrame({"metric": "test_rsum", "loss": ["top5", "top5", "soft", "sum"],
                         "verdict": "higher", "setting": "two_branch"})
    crossed = pd.DataFrame({"metric": "test_rsum", "loss": ["top5", "soft", "soft"],
                            "rising": [True, True, False]})
    found = rising(gain, crossed).set_index("loss").verdict
    assert found.to_dict() == {"top5": "higher", "soft": "lower", "sum": "undecided"}
    assert set(rising(gain, crossed.head(0)).verdict) == {"undecided"}


CELL = {"dataset": "scenes", "profile": "smoke", "data": None, "workers": 0, "figures": None}


def test_fewer_captions_than_the_noise_shuffles():
    study = Study("13_when_to_forgive", CELL | {
        "noises": [0.0, 0.2], "scenes": {"train": 1, "dev": 1, "test": 1}})
    with pytest.raises(ValueError, match="caption_noise=0.2 of 5 training captions .*too few"):
        study.train(noise_arms)


@pytest.mark.parametrize("dataset", ["scenes", "flickr8k"])
def test_models_that_refuse_are_runs_of_the_comparison(dataset):
    parameters = choose("13_when_to_forgive", "full")
    known = [(arm.label, arm.config) for make in (compared_arms, second_arms)
             for arm in make(dataset, parameters)]
    runs = refusing_arms(dataset, parameters)
    assert all((arm.label, arm.config) in known for arm in runs)
    both = [*parameters.refusing, *(f"clean_gru/{loss}" for loss in parameters.refusing_second)]
    assert len(both) == 8 and Counter(run.label for run in runs) == dict.fromkeys(both, 5)
    few = {"compared": ["hardest", "sum"], "rate_losses": ["hardest"]}
    assert {run.label for run in refusing_arms(dataset, choose(
        "13_when_to_forgive", "quick", **few))} == {"hardest", "sum"}
    with pytest.raises(ValueError, match="refusing"):
        choose("13_when_to_forgive", "quick", refusing=["hardest", "soft"], **few)


def test_captions_of_dev_give_the_level_above_which_those_of_test_are_answered(monkeypatch):
    random = np.random.default_rng(0)
    scores, owner = random.normal(size=(6, 30)), np.arange(30) % 6
    scores[owner, np.arange(30)] += 1
    asked = random.normal(size=(6, 19))
    monkeypatch.setattr(nb13_forgive, "encode_texts", lambda model, split: split)
    monkeypatch.setattr(nb13_forgive, "score",
                        lambda model, images, texts: torch.tensor(asked))
    one = SimpleNamespace(scores=scores, split=SimpleNamespace(image_of_text=owner), model=None,
                          images=None, data=SimpleNamespace(splits={"dev": None}))
    run = refusing_arms("scenes", SMALL)[0]
    (line,) = refusal_rows([(run, one)]).to_dict("records")
    level = sorted(max(asked[:, t]) for t in range(19))[-2]  # of twenty, two may be above it
    found = [max(scores[:, t]) for t in range(30)]
    missing = [max(scores[i, t] for i in range(6) if i != owner[t]) for t in range(30)]
    assert line == {
        "arm": run.label, "seed": run.config.seed,
        "auroc": pytest.approx(100 * np.mean([
            (a > b) + (a == b) / 2 for a in found for b in missing])),
        "answered": pytest.approx(100 * np.mean([a > level for a in found])),
        "wrongly_answered": pytest.approx(100 * np.mean([b > level for b in missing]))}
