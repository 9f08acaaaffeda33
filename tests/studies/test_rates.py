"""Learning rates chosen on dev."""

import numpy as np
import pandas as pd

from itr_study.studies.rates import rate_table, rates_verdict

SEARCH = pd.DataFrame([("gru/sum/0.001", 0, 200.0), ("gru/sum/0.002", 0, 210.0),
                       ("gru/top5/0.001", 0, 230.0), ("gru/top5/0.002", 0, 230.0)],
                      columns=["arm", "seed", "dev_rsum"])


def test_the_best_rate_on_dev_is_compared_with_the_frozen_one():
    table = rate_table(SEARCH, {"gru": {"sum": 2e-3, "top5": 1e-3}})
    assert table["best"].tolist() == [False, True, True, False]  # of equals the smaller rate
    assert table["frozen"].tolist() == [False, True, True, False]
    assert rates_verdict(table).startswith("All 2 frozen learning rates are the best")


def test_a_frozen_rate_that_is_not_the_best_is_named():
    table = rate_table(SEARCH, {"gru": {"sum": 1e-3, "top5": 1e-3}})
    assert rates_verdict(table).splitlines() == [
        "1 of 2 frozen learning rates are the best of this search on dev; these are not:",
        "  gru/sum: 0.002 is best here"]


def test_a_run_that_diverged_is_never_the_best():
    rows = SEARCH.assign(dev_rsum=[np.nan, 210.0, np.nan, np.nan])
    table = rate_table(rows, {"gru": {"sum": 2e-3, "top5": 1e-3}})
    assert table["best"].tolist() == [False, True, False, False]
    assert rates_verdict(table).startswith("1 of 2 frozen")
