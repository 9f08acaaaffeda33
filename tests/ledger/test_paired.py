"""Paired differences, against what was counted by hand."""

import numpy as np
import pandas as pd
import pytest

from itr_study.lab.ledger.paired import differences, sign


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
