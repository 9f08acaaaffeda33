"""The arms of notebook 05: one that goes by two names."""

import pandas as pd
import pytest

from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.published import Published
from itr_study.lab.studies.nb05_listwise import (
    SAME_ARM,
    alternative_arms,
    longer_steps,
    one_arm,
    tau_arms,
)
from itr_study.lab.studies.plans import choose

ROWS = pd.DataFrame({"arm": ["tau=0.1", "hardest+approx_ndcg", "hardest+approx_ndcg", "hardest"],
                     "seed": [0, 0, 1, 0], "test_rsum": [274.0, 274.0, 275.0, 291.0]})


def test_an_arm_under_two_names_is_one():
    table = one_arm(ROWS)
    assert list(zip(table.arm, table.seed, table.test_rsum, strict=True)) == [
        ("tau=0.1", 0, 274.0), ("tau=0.1", 1, 275.0), ("hardest", 0, 291.0)]


def test_two_names_with_two_numbers_are_refused():
    with pytest.raises(ValueError, match=r"tau=0.1, seed 0, has RSUM \[274.0, 273.9\] under its"):
        one_arm(ROWS.assign(test_rsum=[274.0, 273.9, 275.0, 291.0]))


@pytest.mark.evidence
def test_the_published_runs_of_both_names_are_equal_in_every_number():
    """To the last bit, over five seeds: the loss differs by a constant, its gradient does not."""
    parameters, table = choose("05_listwise", "full"), Published("flickr8k").table.read()
    (second, first), = SAME_ARM.items()
    by_name = {name: {run.config.seed: table[identify(run.config).id]
                      for run in make("flickr8k", parameters) if run.label == name}
               for name, make in ((first, tau_arms), (second, alternative_arms))}
    assert by_name[first].keys() == by_name[second].keys() == set(range(5))
    for seed, row in by_name[first].items():
        other = by_name[second][seed]
        measured = [name for name in row if name.startswith(("dev_", "test_", "train_"))]
        assert len(measured) > 40 and row["run"] != other["run"]
        assert all(row[name] == other[name] for name in measured)


def test_steps_are_compared_round_by_round_in_percent():
    """A machine that is twice as slow in some rounds changes nothing."""
    slow = [1.0, 2.0, 1.0, 2.0, 1.0]
    rows = pd.DataFrame([(arm, number, 100 * factor * speed)
                         for number, speed in enumerate(slow)
                         for arm, factor in (("hardest", 1.0), ("both", 1.05 + number / 1000))],
                        columns=["arm", "seed", "step_milliseconds"])
    (line,) = longer_steps(rows, [("both", "hardest"), ("never", "hardest")]).to_dict("records")
    assert line["difference"] == pytest.approx(5.2) and line["n"] == 5
    assert line["verdict"] == "higher" and 5 < line["low"] < line["high"] < 5.4
    (few,) = longer_steps(rows[rows.seed < 3], [("both", "hardest")]).to_dict("records")
    assert few["verdict"] == "undecided (3 seeds)"
    nearer = rows.assign(step_milliseconds=rows.step_milliseconds.where(
        rows.arm == "hardest", 0.98 * rows.step_milliseconds))  # 3.1 % longer
    (near,) = longer_steps(nearer, [("both", "hardest")]).to_dict("records")
    assert near["verdict"] == "same" and near["low"] > 0 and near["margin"] == 5
