"""Pictures of label sources and judges: all is named, nothing leaves the page."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from itr_study.plots.judged import agreement_dots, rating_bars, relevance_by_rating

DOTS = pd.DataFrame(
    [("Flickr8k, experts", "Kendall τ-c", "sentence, max", rated, value, value - 2, value + 2,
      False) for rated, value in (("own captions left out", 55.2), ("all pairs", 59.0))]
    + [("Flickr8k, experts", "Kendall τ-c", "CLIP-S", "own captions left out", 51.2, np.nan, np.nan,
        True),
       ("CxC, images and texts", "Pearson", "cider, mean", "all pairs", 73.7, 73.0, 74.0, False)],
    columns=["judge", "statistic", "source", "rated", "value", "low", "high", "reported"])
LEVELS = pd.DataFrame({"source": ["sentence"] * 8 + ["cider"] * 8, "rating": [1, 2, 3, 4] * 4,
                       "relevance": np.linspace(0, 1, 16)})
SHARES = pd.DataFrame([(judge, level, own, 25.0, 5) for judge in ("experts", "crowd")
                       for level in "1234" for own in (True, False)],
                      columns=["judge", "rating", "own", "share", "pairs"])


@cache
def pictures() -> dict:
    return {"dots": agreement_dots(DOTS, "People agree", "note"),
            "levels": relevance_by_rating(LEVELS, "It rises", "rating", "note"),
            "bars": rating_bars(SHARES, "They differ", "note")}


@pytest.mark.parametrize("name", ["dots", "levels", "bars"])
def test_texts_can_be_read_and_stay_on_the_page(name):
    figure = pictures()[name]
    figure.canvas.draw()
    page = figure.bbox.padded(2)
    beyond = {label for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)
              for tick in axis.get_major_ticks() for label in (tick.label1, tick.label2)
              if not min(axis.get_view_interval()) <= tick.get_loc() <= max(
                  axis.get_view_interval())}
    shown = [t for t in set(figure.findobj(Text)) - beyond if t.get_text() and t.get_visible()]
    assert len(shown) > 8
    for text in shown:
        box = text.get_window_extent()
        assert text.get_fontsize() >= 8, text.get_text()
        assert not box.width or (page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0
                                 and box.y1 <= page.y1), text.get_text()


def words(name) -> list[str]:
    return [text.get_text() for text in pictures()[name].findobj(Text)]


def test_printed_numbers_stand_apart_and_each_judge_has_its_statistic():
    figure = pictures()["dots"]
    assert {"Kendall τ-c × 100", "Pearson × 100", "reported", "all pairs"} <= set(words("dots"))
    labels = figure.axes[0].get_yticklabels()
    assert [(t.get_text(), t.get_fontstyle()) for t in labels] == [("sentence, max", "normal"),
                                                                  ("CLIP-S", "italic")]
    marks = [line for line in figure.axes[0].lines if line.get_marker() in "oDs"]
    assert sorted(float(x) for m in marks for x in m.get_xdata()) == [51.2, 55.2, 59.0]
    assert "reported" not in [t.get_text() for t in agreement_dots(
        DOTS[~DOTS["reported"]], "No squares").findobj(Text)]


def test_every_level_says_how_many_pairs_it_has():
    assert [t.get_text() for t in pictures()["levels"].axes[1].get_xticklabels()] == [
        f"{level}\nn = 2" for level in (1, 2, 3, 4)] and "cider" in words("levels")
    heights = [patch.get_height() for patch in pictures()["bars"].axes[0].patches]
    assert heights[:8] == [25.0] * 8 and "across images" in words("bars")
