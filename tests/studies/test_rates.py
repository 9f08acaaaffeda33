"""Learning rates chosen on dev."""

import re

import numpy as np
import pandas as pd
import pytest

from itr_study.data import DATASETS
from itr_study.lab.studies.arms import chosen_rates, rate_table, rates_verdict
from itr_study.lab.studies.bases import frozen_rates, tried_rates
from itr_study.lab.studies.nb03_topk import rate_arms
from itr_study.lab.studies.plans import choose

SEARCH = pd.DataFrame([("gru", "sum", 0.001, 0, 200.0), ("gru", "sum", 0.002, 0, 210.0),
                       ("gru", "top5", 0.001, 0, 230.0), ("gru", "top5", 0.002, 0, 230.0)],
                      columns=["setting", "loss", "rate", "seed", "dev_rsum"])


def test_the_best_rate_on_dev_is_compared_with_the_frozen_one():
    table = rate_table(SEARCH, {"gru": {"sum": 2e-3, "top5": 1e-3}})
    assert table["best"].tolist() == [False, True, True, False]  # of equals the smaller rate
    assert table["frozen"].tolist() == [False, True, True, False]
    assert rates_verdict(table).startswith("All 2 frozen learning rates are the best")


def test_the_order_of_rows_changes_nothing():
    """Of equals the smaller rate is the best, wherever it stands."""
    frozen = {"gru": {"sum": 2e-3, "top5": 1e-3}}
    pd.testing.assert_frame_equal(rate_table(SEARCH[::-1], frozen), rate_table(SEARCH, frozen))


def test_a_frozen_rate_that_is_not_the_best_is_named():
    table = rate_table(SEARCH, {"gru": {"sum": 1e-3, "top5": 1e-3}})
    assert rates_verdict(table).splitlines() == [
        "1 of 2 frozen learning rates are the best of this search on dev; these are not:",
        "  gru/sum: 0.002 is best here",
        "2 of 2 best rates lie at the edge of what was tried: a better one may lie beyond."]


def test_a_run_that_diverged_is_never_the_best():
    rows = SEARCH.assign(dev_rsum=[np.nan, 210.0, np.nan, np.nan])
    table = rate_table(rows, {"gru": {"sum": 2e-3, "top5": 1e-3}})
    assert table["best"].tolist() == [False, True, False, False]
    assert rates_verdict(table).startswith("1 of 2 frozen")


def test_a_rate_that_diverged_was_tried():
    """So the best below it lies inside its grid; where all diverged none is chosen."""
    table = search(sum=(10.0, 20.0, 30.0, np.nan), top5=(0.0, 1.0, 2.0, 1.5))
    assert chosen_rates(table) == {"gru": {"sum": 3.0, "top5": 3.0}}
    lost = search(sum=(np.nan, np.nan), top5=(0.0, 1.0, 0.5))
    assert rates_verdict(lost).splitlines()[:2] == [
        "1 of 2 frozen learning rates are the best of this search on dev; these are not:",
        "  gru/sum: all runs diverged"]
    with pytest.raises(ValueError, match="chosen for gru/sum: all runs diverged; try smaller"):
        chosen_rates(lost)


def search(**dev: tuple) -> pd.DataFrame:
    """One loss per keyword, with its RSUM on dev at 1, 2, 3 and 4."""
    return rate_table(pd.DataFrame(
        [("gru", loss, float(rate), 0, value) for loss, values in dev.items()
         for rate, value in enumerate(values, 1)], columns=SEARCH.columns),
        {"gru": dict.fromkeys(dev, 2)})


def test_a_best_rate_inside_its_grid_is_chosen():
    table = search(sum=(10.0, 30.0, 20.0, 0.0), top5=(0.0, 1.0, 2.0, 1.5))
    assert chosen_rates(table) == {"gru": {"sum": 2.0, "top5": 3.0}}
    assert table["edge"].tolist() == ["smallest", "", "", "largest"] * 2
    assert "edge" not in rates_verdict(table)


@pytest.mark.parametrize("dev, named", [
    ((10.0, 20.0, 30.0, 40.0), "gru/sum at 4, the largest of 1, 2, 3, 4"),
    ((40.0, 30.0, 20.0, 10.0), "gru/sum at 1, the smallest of 1, 2, 3, 4"),
    ((40.0, 40.0, 40.0, 40.0), "gru/sum at 1, the smallest"),  # of equals the smaller
    ((5.0,), "gru/sum at 1, the smallest of 1")])
def test_a_best_rate_at_the_edge_of_its_grid_is_refused(dev, named):
    message = re.escape(f"a learning rate at the edge of its grid is not chosen: {named}") + \
        ".*; widen the grid .* until every best lies inside"
    with pytest.raises(ValueError, match=message):
        chosen_rates(search(sum=dev, top5=(0.0, 1.0, 2.0, 1.5)))


@pytest.mark.parametrize("dataset, profile", [("flickr8k", "full"), ("scenes", "quick")])
def test_the_grid_of_the_frozen_rates_is_that_of_their_search(dataset, profile):
    """And each lies inside it."""
    grids: dict[tuple, set] = {}
    for run in rate_arms(dataset, choose("03_topk", profile)):
        setting, loss, rate = (run.factors[name] for name in ("setting", "loss", "rate"))
        grids.setdefault((setting, loss), set()).add(rate)
    for (setting, loss), grid in grids.items():
        assert grid == set(tried_rates(dataset)[setting]), (setting, loss)
        assert min(grid) < frozen_rates(dataset)[setting][loss] < max(grid), (setting, loss)


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_frozen_rate_lies_inside_its_grid(dataset):
    for setting, rates in frozen_rates(dataset).items():
        tried = tried_rates(dataset)[setting]
        assert all(min(tried) < rate < max(tried) for rate in rates.values()), setting


def test_rates_that_are_given_replace_the_grid_of_every_setting():
    parameters = choose("03_topk", "full", rates=[1e-3], settings=["two_branch+fisher"])
    runs = {run.label: run.config for run in rate_arms("flickr8k", parameters)}
    assert list(runs) == [f"two_branch+fisher/{loss}/0.001" for loss in ("sum", "hardest", "top5")]
    assert {config.settings.learning_rate for config in runs.values()} == {1e-3}
