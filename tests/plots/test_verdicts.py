"""Bars of the ledger: every claim is counted, in the bar of its group."""

import pandas as pd
import pytest

from itr_study.lab.ledger.verdict import OUTCOMES
from itr_study.plots import verdict_bars
from itr_study.plots.claims import LOOKS

TABLE = pd.DataFrame({"section": ["figures", "figures", "equations", "figures"],
                      "outcome": ["undecided", "reproduced", "undecided", "undecided"]})


def test_bars_count_the_claims_of_each_group():
    (axes,) = verdict_bars(TABLE, "Two of four").axes
    widths = {(group, box.get_label()): bar.get_width()
              for box in axes.containers for bar, group in zip(box, ["figures", "equations"],
                                                           strict=True)}
    assert {key: width for key, width in widths.items() if width} == {
        ("figures", "reproduced"): 1, ("figures", "undecided"): 2, ("equations", "undecided"): 1}
    starts = [bar.get_x() for box in axes.containers for bar in box if bar.get_width()]
    assert sorted(starts) == [0, 0, 1]  # the two undecided figures begin where the first bar ends


def test_an_unknown_outcome_is_refused():
    with pytest.raises(ValueError, match="got 'maybe'"):
        verdict_bars(TABLE.assign(outcome="maybe"), "x")


def test_claims_of_papers_and_checks_of_ours_are_never_one_bar():
    table = TABLE.assign(origin=["claims", "claims", "claims", "ours"])
    figure = verdict_bars(table, "Two of four", panel="origin")
    assert [axes.get_title("left") for axes in figure.axes] == ["claims (3)", "ours (1)"]
    sums = [sum(bar.get_width() for box in axes.containers for bar in box) for axes in figure.axes]
    assert sums == [3, 1]
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["reproduced",
                                                                          "undecided"]


def test_every_outcome_of_the_ledger_has_a_look():
    assert set(LOOKS) == set(OUTCOMES)
