"""Paired differences, against what was counted by hand."""

import numpy as np
import pandas as pd
import pytest

from itr_study.lab.ledger.paired import differences, over_models, sign


def test_differences_are_paired_by_seed():
    values = pd.DataFrame({"arm": ["a"] * 3 + ["b"] * 3, "seed": [0, 1, 2, 2, 1, 0],
                           "dataset": "d", "model": "m", "x": [1.0, 2, 3, 10, 20, 30]})
    (row,) = differences(values, [("b", "a")], ["x"]).to_dict("records")
    assert row["difference"] == pytest.approx(np.mean([29, 18, 7])) and row["n"] == 3
    assert row["low"] < row["difference"] < row["high"]
    (one,) = differences(values[values.seed == 0], [("b", "a")], ["x"]).to_dict("records")
    assert one["difference"] == 29 and sign(one["low"], one["high"], one["n"]) == \
        "undecided (one seed)"
    (narrow,) = differences(values, [("b", "a")], ["x"], level=0.5).to_dict("records")
    assert row["low"] < narrow["low"] < 18 < narrow["high"] < row["high"]


def test_fewer_than_five_pairs_settle_nothing():
    assert sign(1.0, 2.0, pairs=4) == "undecided (4 seeds)"
    assert sign(1.0, 2.0, pairs=5) == sign(1.0, 2.0) == "higher"


def test_a_comparison_is_summed_up_over_the_models_that_have_five_pairs():
    lifts = {"": 0.0, "saf/": 4.0, "sgr/": 2.0, "dan/": 9.0}  # dan: four pairs alone
    noise = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    rows = pd.DataFrame([
        {"arm": model + arm, "seed": seed, "dataset": "d", "model": model, "x": value}
        for model, lift in lifts.items() for seed in range(4 if model == "dan/" else 5)
        for arm, value in (("a", lift + noise[seed]), ("b", 0.0))])
    table = over_models(rows, [("a", "b"), ("a", "c")], ["x"])
    assert table["model"].tolist() == ["", "saf", "sgr", "all"]
    assert table["n"].tolist() == [5, 5, 5, 3]
    assert table["difference"].tolist() == pytest.approx([0, 4, 2, 2])
    # errors 0.5 ** 0.5; Q = 16, C = 6 - 12 / 6: between ** 2 = (16 - 2) / 4
    assert table["between"].iloc[-1] == pytest.approx(3.5**0.5)
    assert over_models(rows, [("a", "c")], ["x"]).empty
