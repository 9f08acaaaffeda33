"""What notebook 06 asks of its losses."""

import pandas as pd

from itr_study.studies.bcls import COMPARED, exceeded, trained_on


def test_an_arm_is_exceeded_only_where_one_other_is_above_it_by_every_metric():
    verdicts = {("a", "b"): ("higher", "higher"), ("a", "c"): ("higher", "undecided"),
                ("b", "c"): ("lower", "higher"), ("d", "c"): ("undecided", "higher"),
                ("b", "a"): ("lower", "lower"), ("c", "a"): ("lower", "undecided")}
    table = pd.DataFrame([(*pair, metric, verdict) for pair, both in verdicts.items()
                          for metric, verdict in zip(("x", "y"), both, strict=True)],
                         columns=["arm_a", "arm_b", "metric", "verdict"])
    assert exceeded(table) == ["b"]


def test_which_losses_are_trained_on_graded_labels():
    graded = {arm for arm in COMPARED if trained_on(arm) == "also trained on graded labels"}
    assert set(COMPARED) - graded == {"sum", "hardest", "soft", "top5", "info_nce", "sigmoid"}
