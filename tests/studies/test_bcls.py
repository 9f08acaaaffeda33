"""What notebook 06 asks of its losses."""

import pandas as pd

from itr_study.studies.bcls import COMPARED, exceeded, span_of_singles, trained_on


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


def test_the_span_of_single_runs_stands_beside_what_seeds_alone_would_make():
    """Three pairs; another of five seeds has a variance of 2.5: three draws span 1.6926 sd."""
    rows = pd.DataFrame([("a", 0, 280.0), ("b", 0, 291.0), ("c", 0, 284.0), ("c", 1, 999.0)],
                        columns=["arm", "seed", "dev_rsum"])
    repeated = pd.DataFrame({"arm": "d", "dev_rsum": [280.0 + seed for seed in range(5)]})
    assert span_of_singles(rows, repeated) == (
        "3 single runs span 11.0 points of RSUM on dev, seeds alone about 2.7")
    assert span_of_singles(rows, repeated.head(1)).endswith("11.0 points of RSUM on dev")
