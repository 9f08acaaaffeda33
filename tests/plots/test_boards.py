"""Pictures of windows over labels, and of many methods by many measures."""

import doctest

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

import itr_study.plots.windows as module
from itr_study.plots.boards import BEST, method_board
from itr_study.plots.windows import sliding_windows, window_table

LABELS = [1.0, 0.55, 0.3, 0.1, -0.05]
ROWS = pd.DataFrame([(method, seed, base + seed, 50 - base / 10 + seed, np.nan)
                     for method, base in (("sum", 260.0), ("hardest", 290.0), ("bcls", 300.0))
                     for seed in range(3)], columns=["method", "seed", "rsum", "tau", "none"])


def words(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


def test_examples():
    failed, tried = doctest.testmod(module)
    assert tried and not failed


@pytest.mark.parametrize("relaxation,stride", [(0.2, 0.1), (0.3, 0.25), (0.0, 0.5)])
def test_every_candidate_is_negative_positive_or_between(relaxation, stride):
    table = window_table(LABELS, relaxation, stride)
    assert (table[["negatives", "between", "positives"]].sum(axis=1) == len(LABELS)).all()
    assert table["positives"].iloc[-1] == 1  # the match is positive in the last window
    assert table["high"].iloc[-1] == pytest.approx(1)


def test_a_window_at_work_is_drawn_with_its_counts():
    figure = sliding_windows(LABELS, chosen=14)  # from 0.4 to 0.6
    assert {"negative: 3", "left out: 1", "positive: 1"} <= set(words(figure))
    assert "window 14: from 0.40 to 0.60" in words(figure)


def test_a_board_sorts_by_its_first_measure_and_marks_the_best_of_each():
    figure = method_board(ROWS, {"rsum": "RSUM", "tau": "Kendall τ"}, "Which?", baseline="hardest")
    first, second = figure.axes
    assert [t.get_text() for t in first.get_yticklabels()] == ["soft + windows", "hardest",
                                                               "sum"]
    best = [[line.get_ydata()[0] for line in axes.lines if line.get_marker() == "D"
             and line.get_color() == BEST] for axes in (first, second)]
    assert best == [[0], [2]]  # bcls by RSUM, sum by tau
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["RSUM", "Kendall τ"]
