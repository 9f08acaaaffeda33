"""The look of every picture."""

import warnings

import pandas as pd
import pytest
from matplotlib.text import Text

from itr_study.plots import sweep_curve
from itr_study.plots.style import canvas, finish, png_bytes, styled


def test_a_long_headline_stays_inside_the_picture():
    rows = pd.DataFrame({"k": [1, 2], "test_rsum": [1.0, 2.0], "seed": [0, 0]})
    long = "Four percent of the texts fit more than ten images: R@10 cannot be 100 % for anybody"
    figure = sweep_curve(rows, "k", ["test_rsum"], long, "k", "RSUM")
    box = figure._suptitle.get_window_extent()
    assert long.split() == figure.get_suptitle().split()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1


def test_a_note_does_not_end_in_a_separator():
    figure = finish(canvas()[0], "A title", "flickr8k; hollow: printed; ")
    assert figure.get_supxlabel() == "flickr8k; hollow: printed"


def test_letters_that_our_font_lacks_come_from_another_or_are_warned_of():
    @styled
    def drawn(text):
        figure, (axes,) = canvas()
        axes.set_title(text)
        return finish(figure, "A title")

    with warnings.catch_warnings(action="error"):
        figure = drawn("caf\u00e9 \u2192 \u210a")  # a letter of STIX, which comes with matplotlib
        png_bytes(figure)
    (families,) = {tuple(text.get_fontfamily()) for text in figure.findobj(Text)}
    assert families[0] == "DejaVu Sans" and len(families) == 2  # any font here that has the letter
    with pytest.warns(UserWarning) as told:
        png_bytes(drawn("\ua992\ua9b8 \U00012000"))
    assert [str(one.message).partition(", which")[0] for one in told] == [
        "no font here has letters of CUNEIFORM, JAVANESE"]
