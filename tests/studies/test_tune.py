"""A learning rate that is searched on the data at hand, kept there, and used from then on."""

import math

import pandas as pd
import pytest

from itr_study.lab.cli import chosen, commands
from itr_study.lab.studies import nb12_claims, nb13_forgive, tune
from itr_study.lab.studies.arms import base_config, reading
from itr_study.lab.studies.bases import base, base_tables, frozen_rates, tuned_rates
from itr_study.lab.studies.nb03_topk import part_arms, rate_arms
from itr_study.lab.studies.nb09_stronger_models import stronger_config
from itr_study.lab.studies.parameters import Parameters
from itr_study.lab.studies.plans import arms_of, choose
from itr_study.lab.studies.study import Study
from itr_study.lab.studies.tune import Search, written
from tests.data import tiny


@pytest.fixture
def root(tmp_path, store):
    tiny.precomputed(tmp_path, "coco")
    return tmp_path


@pytest.fixture
def best(monkeypatch):
    """Trainings whose RSUM on dev falls with the distance from a rate; None diverges."""
    rates, trained = {}, []

    def train(arms, **_):
        trained.append([run.label for run in arms])
        found = [rates[run.factors["loss"]] for run in arms]
        rsum = [math.nan if rate is None else 100 - abs(math.log2(run.factors["rate"] / rate))
                for run, rate in zip(arms, found, strict=True)]
        return pd.DataFrame([run.factors for run in arms]).assign(
            seed=0, status="done", dev_rsum=rsum)

    monkeypatch.setattr(tune.shared, "train_arms", train)
    return rates, trained


def test_the_best_rate_is_kept_and_used_on_these_data_alone(root, best, tmp_path, capsys):
    best[0]["objective"] = 2e-3  # taken over: 1e-3
    assert commands.tune("two_branch", "coco", root, [], plan=True) == 0 and not best[1]
    assert commands.tune("two_branch", "coco", root, []) == 0
    assert len(best[1]) == 2  # 2e-3 was the largest, so that 4e-3 was tried, too
    printed = capsys.readouterr().out
    assert "0.0005, 0.001, 0.002: 3 runs of 10 epochs, 0 of them here" in printed
    lines = [line.split() for line in printed.splitlines()]
    assert ["objective", "0.001", "99", "(taken", "over)"] in lines
    assert ["objective", "0.002", "100", "best"] in lines

    train = chosen.choose("two_branch", "coco")
    config = commands.config_of(train, str(root))
    assert (config.settings.learning_rate, config.images) == (2e-3, "given")
    given = chosen.choose("two_branch", "coco", ["settings.learning_rate=0.5"])
    assert commands.config_of(given, str(root)).settings.learning_rate == 0.5
    assert {run.config.settings.learning_rate for run in arms_of(
        "05_listwise", "coco", "smoke", root)
        if "two_branch" not in run.label and "rate=" not in run.label} == {2e-3}
    report = chosen.configs_report("coco", str(root)).splitlines()
    assert report[1].endswith("tuned here") and report[2].endswith("tuned on flickr8k")
    note = Study("03_topk", {"dataset": "coco", "data": str(root), "profile": "smoke"}).note("k")
    assert note.startswith("coco; learning rates tuned on flickr8k, those of two_branch tuned "
                           "here; profile smoke")

    tiny.precomputed(tmp_path / "other", "coco", texts=3)
    assert commands.config_of(train, str(tmp_path / "other")).settings.learning_rate == 1e-3
    assert commands.config_of(train, None).settings.learning_rate == 1e-3


def test_rates_by_loss_are_searched_in_one_grid_and_notebook_03_shows_it(root, best):
    best[0].update(sum=5e-4, hardest=2.5e-4, top5=1e-3)
    search = Search.make("two_branch+fisher", "coco", root, {})
    assert search.own == "top5" and search.grid() == [2.5e-4, 5e-4, 1e-3, 2e-3]
    search.keep(search.table())
    assert tuned_rates("coco", lambda: search.data) == {}  # those of a network on pictures
    tuned = tuned_rates("coco", lambda: search.data, given=True)
    grid = [1.25e-4, 2.5e-4, 5e-4, 1e-3, 2e-3]
    assert tuned == {"two_branch+fisher": {"learning_rate": 1e-3, "given": True, "rates": {
        "tried": grid, "sum": 5e-4, "hardest": 2.5e-4, "top5": 1e-3}}}
    assert base("coco", "two_branch+fisher", tuned).settings.learning_rate == 1e-3
    others = frozen_rates("coco", tuned)
    assert others.pop("two_branch+fisher") == {"sum": 5e-4, "hardest": 2.5e-4, "top5": 1e-3}
    assert others == {k: v for k, v in frozen_rates("flickr8k").items() if k in others}
    parameters = choose("03_topk", "smoke", dataset="coco", rates=[]).with_rates(tuned)
    tried = [run.factors["rate"] for run in rate_arms("coco", parameters)
             if run.factors["setting"] == "two_branch+fisher" and run.factors["loss"] == "sum"]
    assert tried == grid


@pytest.mark.parametrize("rate, told", [
    (1.0, "two_branch/objective at 0.064, the largest of 0.0005, .* dev may be too small"),
    (None, "for two_branch/objective: all runs diverged")])
def test_a_rate_at_an_end_is_not_kept(rate, told, root, best, store):
    best[0]["objective"] = rate
    search = Search.make("two_branch", "coco", root, {})
    with pytest.raises(ValueError, match=told):
        search.keep(search.table())
    assert not (store / "tuned").exists()


def test_a_search_that_was_stopped_says_how_to_go_on(root, best, monkeypatch, capsys):
    def stopped(arms, **_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tune.shared, "train_arms", stopped)
    assert commands.tune("two_branch", "coco", root, []) == 130
    assert "The same command goes on" in capsys.readouterr().err


def test_what_was_tuned_on_a_data_set_itself_is_not_searched_again():
    with pytest.raises(ValueError, match="of two_branch were tuned on flickr8k"):
        Search.make("two_branch", "flickr8k", None, {})
    with pytest.raises(ValueError, match="base config of coco must be one of"):
        Search.make("nope", "coco", None, {})
    with pytest.raises(ValueError, match="notebook 14 searches the rates of text_frozen"):
        Search.make("text_frozen", "coco", None, {})


@pytest.mark.parametrize("notebook, makes", [
    ("13_when_to_forgive", nb13_forgive.scene_arms), ("12_claims", nb12_claims.exact_arms)])
def test_what_was_tuned_here_changes_no_run_on_generated_data(notebook, makes):
    given = choose(notebook, "smoke", dataset="coco")
    tuned = given.with_rates({"two_branch": {"learning_rate": 0.07}})
    assert makes("coco", tuned) == makes("coco", given) != []


def test_options_of_data_mean_what_they_say(root):
    dev = Parameters.of(profile="quick", dataset="cub", data_options={"dev": "images"})
    assert base_config("cub", "two_branch", dev).data_options == {"dev": "images"}
    half = choose("03_topk", "quick", dataset="flickr8k", data_options={"leave_out": "half"})
    assert part_arms("flickr8k", half) == []
    for options, images in (({}, "given"), ({"features": "precomputed"}, "given"),
                            ({"features": None}, None)):
        assert reading(Parameters.of(profile="quick", dataset="coco", data_options=options),
                       root).images == images
    structure = choose("12_claims", "smoke", dataset="coco").with_rates(
        {"structure": {"learning_rate": 0.03}})
    for label in ("dspe/sum", "dspe/top5"):
        assert stronger_config(label, "coco", structure).settings.learning_rate == 0.03


@pytest.mark.parametrize("dataset", ["scenes", "flickr8k"])
def test_configs_of_published_rows_stay_as_they_were(dataset, store):
    for name in base_tables(dataset):
        found = commands.config_of(chosen.choose(name, dataset), None)
        assert found == base(dataset, name), name


@pytest.mark.slow
def test_an_accident_is_said_as_it_is(root):
    with pytest.raises(ValueError, match="failed: ValueError: k = 5, but a query has only 4"):
        Search.make("two_branch", "coco", root, {}).table(device="cpu")


@pytest.mark.slow
def test_a_real_search_keeps_its_runs(tmp_path, store, monkeypatch):
    """Started again, it takes its runs from the store."""
    tiny.precomputed(tmp_path, "flickr30k")
    monkeypatch.setattr(tune, "WIDENED", 0)
    search = Search.make("structure", "flickr30k", tmp_path, {})
    table = search.table(device="cpu")
    assert "RSUM on dev" in written(table)
    monkeypatch.setattr("itr_study.lab.runs.sweeps._train", lambda *_: pytest.fail("trains"))
    pd.testing.assert_frame_equal(search.table(), table)
