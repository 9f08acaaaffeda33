"""Pictures of windows over labels, and of many methods by two measures."""

import doctest

import pandas as pd
import pytest
from matplotlib.text import Text

import itr_study.plots.names as naming
import itr_study.plots.shapes as module
from itr_study.plots.claims import trade_off
from itr_study.plots.shapes import sliding_windows, window_table
from itr_study.plots.style import summarise

LABELS = [1.0, 0.55, 0.3, 0.1, -0.05]
ROWS = pd.DataFrame([(method, seed, base + seed, 50 - base / 10 + seed)
                     for method, base in (("sum", 260.0), ("hardest", 290.0), ("ladder", 300.0))
                     for seed in range(3)], columns=["method", "seed", "rsum", "tau"])


def words(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


def test_examples():
    for examined in (module, naming):
        failed, tried = doctest.testmod(examined)
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


def board(beaten=(), rows=ROWS, base="Two-branch"):
    rows = rows.assign(hollow=rows["method"].isin(beaten), base=base)
    figure = trade_off(rows, "rsum", "tau", "Which?", "RSUM →", "Kendall τ →")
    return figure, figure.axes


def marks_of(axes):
    return {tuple(line.get_xydata()[0]): line for line in axes.lines
            if len(line.get_xdata()) == 1 and line.get_marker() not in ("", "None")}


def test_a_board_has_a_mark_at_both_means_and_their_intervals():
    figure, (axes,) = board(beaten=["hardest"])
    marks = marks_of(axes)
    assert set(marks) == {(261, 25), (291, 22), (301, 21)}
    faces = {at[0]: line.get_markerfacecolor() for at, line in marks.items()}
    assert faces[291] == "white" and "white" not in (faces[261], faces[301])
    assert marks[301, 21].get_marker() != marks[291, 22].get_marker()
    half = summarise(ROWS, "method", "rsum").set_index("method").loc["sum"]
    assert any(list(line.get_xdata()) == [half["low"], half["high"]]
               and list(line.get_ydata()) == [25, 25] for line in axes.lines)
    assert {"sum", "hardest", "Ladder", "hollow: another is better by both",
            "3 seeds, 95 % interval"} <= {word.strip() for word in words(figure)}


def test_each_base_model_has_a_panel_and_a_loss_one_look_in_both():
    second = ROWS[ROWS["method"] != "sum"].assign(rsum=ROWS["rsum"] + 40)
    rows = pd.concat([second, ROWS], ignore_index=True)
    figure, (one, other) = board(rows=rows, base=["GRU"] * len(second) + ["Two-branch"] * len(ROWS))
    assert [axes.get_title(loc="left") for axes in (one, other)] == ["GRU", "Two-branch"]
    assert {x for x, _ in marks_of(one)} == {331, 341}
    assert {x for x, _ in marks_of(other)} == {261, 291, 301}
    for here, there in (((331, 22), (291, 22)), ((341, 21), (301, 21))):
        assert marks_of(one)[here].get_color() == marks_of(other)[there].get_color()
    (legend,) = figure.legends
    assert len(legend.get_texts()) == 3
