"""Bars of the ledger: every claim is counted, in the bar of its group."""

import pandas as pd
import pytest

from itr_study.plots import verdict_bars

TABLE = pd.DataFrame({"section": ["figures", "figures", "equations", "figures"],
                      "outcome": ["undecided", "reproduced", "undecided", "undecided"]})


def test_bars_count_the_claims_of_each_group():
    (axes,) = verdict_bars(TABLE, "Two of four").axes
    widths = {(group, box.get_label().split(" (")[0]): bar.get_width()
              for box in axes.containers for bar, group in zip(box, ["figures", "equations"],
                                                           strict=True)}
    assert {key: width for key, width in widths.items() if width} == {
        ("figures", "reproduced"): 1, ("figures", "undecided"): 2, ("equations", "undecided"): 1}
    starts = [bar.get_x() for box in axes.containers for bar in box if bar.get_width()]
    assert sorted(starts) == [0, 0, 1]  # the two undecided figures begin where the first bar ends


def test_an_unknown_outcome_is_refused():
    with pytest.raises(ValueError, match="got 'maybe'"):
        verdict_bars(TABLE.assign(outcome="maybe"), "x")
