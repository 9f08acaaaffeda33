"""The look of every picture."""

import pandas as pd

from itr_study.plots import sweep_curve
from itr_study.plots.style import canvas, caption


def test_a_long_headline_stays_inside_the_picture():
    rows = pd.DataFrame({"k": [1, 2], "test_rsum": [1.0, 2.0], "seed": [0, 0]})
    long = "Four percent of the texts fit more than ten images: R@10 cannot be 100 % for anybody"
    figure = sweep_curve(rows, "k", ["test_rsum"], long, "k", "RSUM")
    box = figure._suptitle.get_window_extent()
    assert long.split() == figure.get_suptitle().split()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1


def test_a_note_does_not_end_in_a_separator():
    figure, _ = canvas()
    caption(figure, "flickr8k; hollow: printed; ")
    assert figure.get_supxlabel() == "flickr8k; hollow: printed"
