"""The differences behind claims: units apart, the words of each claim, nothing flattened."""

import doctest

import numpy as np
import pandas as pd
from matplotlib.text import Text

from itr_study.plots import claims as module
from itr_study.plots.claims import LETTERS, claim_dots, rows_of

LONG = " ".join(["a claim of many words"] * 9)
ROWS = pd.DataFrame([
    ("points of RSUM", "k = 5 is best (topk, Fig. 6)", "contradicted", "RSUM: top-5 − sum", "for",
     3.0, 2.0, 4.0),
    ("points of RSUM", "k = 5 is best (topk, Fig. 6)", "contradicted", "RSUM: top-5 − hardest",
     "against", -2.0, -3.0, -1.0),
    ("points of RSUM", LONG, "undecided", "RSUM: soft − hardest", "open", 1.0, -1.0, 3.0),
    ("points of RSUM", "windows need a companion", "reproduced", "RSUM: hardest − windows", "for",
     98.0, 92.4, 103.6),
    ("points of RSUM", "one pair", "undecided", "RSUM: sum − soft", "open", 2.0, np.nan, np.nan),
    ("seconds", "FR is fast", "reproduced", "seconds: RR − FR", "for", 0.2, 0.1, 0.3)],
    columns=["unit", "claim", "verdict", "label", "standing", "difference", "low", "high"]
    ).assign(margin=[np.nan, np.nan, 5.0, np.nan, np.nan, np.nan])


def words(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


def test_examples():
    failed, tried = doctest.testmod(module)
    assert tried and not failed


def test_no_type_is_smaller_than_eight_points():
    assert min(text.get_fontsize() for text in claim_dots(ROWS, "Claims").findobj(Text)) >= 8


def test_each_unit_has_its_own_axis():
    figure = claim_dots(ROWS, "Claims")
    first, second = figure.axes
    assert [axes.get_xlabel() for axes in figure.axes] == ["points of RSUM", "seconds"]
    assert [t.get_text() for t in second.get_yticklabels()] == ["seconds: RR − FR"]
    assert len(first.get_yticklabels()) == 5


def test_a_claim_stands_above_its_differences_in_words_and_once():
    figure = claim_dots(ROWS, "Claims")
    shown = words(figure)
    assert shown.count("k = 5 is best (topk, Fig. 6)") == 1 and shown.count("contradicted") == 1
    heights = rows_of(ROWS.head(3))
    lines = -(-len(LONG) // LETTERS)
    assert lines > 1 and list(heights) == [1, 2, 3 + lines, 4 + lines]


def test_what_would_flatten_the_rest_stands_at_the_edge_with_its_numbers():
    figure = claim_dots(ROWS, "Claims")
    first, _ = figure.axes
    assert first.get_xlim() == (-8, 8)  # twice what four fifths of the intervals need
    assert "+98.0 [+92.4, +103.6] →" in words(figure)
    marks = {line.get_xdata()[0] for line in first.lines if len(line.get_xdata()) == 1}
    assert {3.0, -2.0, 1.0} <= marks and 98.0 not in marks


def test_an_interval_that_leaves_the_axis_stands_at_the_edge_though_its_mean_does_not():
    rows = ROWS.head(5).assign(low=[2.0, -3, -1, -103.6, np.nan], high=[4.0, -1, 3, 5, np.nan],
                               difference=[3.0, -2, 1, -7.9, 2])
    (axes,) = claim_dots(rows, "Claims").axes
    (words_at_edge,) = (text for text in axes.texts if text.get_text().startswith("−7.9"))
    assert words_at_edge.get_text() == "−7.9 [−103.6, +5.0] ←"
    assert words_at_edge.get_ha() == "left" and words_at_edge.xy[0] < -7
    (right,) = (text for text in claim_dots(ROWS, "").axes[0].texts if "→" in text.get_text())
    assert right.get_ha() == "right" and right.xy[0] > 7  # inwards, from either edge


def test_a_verdict_is_written_in_its_own_colour():
    said = {text.get_text(): text.get_color() for text in claim_dots(ROWS, "").axes[0].texts}
    assert said["contradicted"] == module.LOOKS["contradicted"][0]
    assert said["reproduced"] == module.LOOKS["reproduced"][0] != said["contradicted"]
    assert said["undecided"] == module.GREY


def test_the_margin_of_an_equivalence_is_a_zone_around_zero():
    (first, second) = claim_dots(ROWS, "Claims").axes
    (zone,) = first.patches
    assert (zone.get_x(), zone.get_width()) == (-5, 10) and not second.patches


def test_the_colour_is_that_of_the_difference_and_not_of_its_claim():
    (first, _), looks = claim_dots(ROWS, "Claims").axes, module.OUTCOME_LOOKS
    colours = {line.get_xdata()[0]: line.get_color() for line in first.lines
               if len(line.get_xdata()) == 1}
    assert (colours[3.0], colours[-2.0]) == (looks["for"][0], looks["against"][0])
    assert {"for the claim", "against it", "undecided"} <= set(
        words(claim_dots(ROWS, "Claims")))
