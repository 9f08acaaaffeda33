"""The provenance of a figure."""

import pytest

from itr_study.plots.figures import full_record
from itr_study.studies.arms import Arm, train_arms
from itr_study.studies.profiles import choose
from itr_study.studies.provenance import made_with
from tests.small_runs import SMALL


@pytest.fixture(scope="module")
def rows():
    arms = [Arm("a", SMALL), Arm("a", SMALL.with_(seed=1))]
    return train_arms(arms, workers=0)


def test_provenance_is_what_a_figure_asks_for(rows):
    knobs = choose("03_topk", "smoke", seeds=2)
    record = full_record("42_small__curve", "scenes", "It rises.", made_with(knobs, rows, k=3))
    assert record["seeds"] == [0, 1] and record["run_ids"] == sorted(rows.run)
    assert record["data"] == rows.data[0] and record["k"] == 3
    assert record["profile"] == "smoke" and record["knobs"] == {"seeds": 2}
    assert made_with(choose("03_topk", "quick")) == {"profile": "quick", "knobs": {}, "seeds": []}
