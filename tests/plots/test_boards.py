"""Pictures of windows over labels, and of many methods by two measures."""

import doctest

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

import itr_study.plots.claims as boards
import itr_study.plots.names as naming
import itr_study.plots.shapes as module
from itr_study.plots.claims import trade_off
from itr_study.plots.shapes import sliding_windows, window_table
from itr_study.plots.style import summarise

LABELS = [1.0, 0.55, 0.3, 0.1, -0.05]
ROWS = pd.DataFrame([(method, seed, base + seed, 50 - base / 10 + seed)
                     for method, base in (("sum", 260.0), ("hardest", 290.0), ("bcls", 300.0))
                     for seed in range(3)], columns=["method", "seed", "rsum", "tau"])


def words(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


def test_examples():
    for examined in (module, boards, naming):
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


KINDS = ["matches", "graded"]


def square(beaten=(), rows=ROWS, judge="first", fewest=2):
    kind = rows["method"].map({"bcls": "graded"}).fillna("matches")
    rows = rows.assign(kind=kind, hollow=rows["method"].isin(beaten), judge=judge)
    figure = trade_off(rows, "rsum", "tau", "Which?", "RSUM", "Kendall τ", KINDS, fewest)
    return figure, figure.axes[0]


def test_a_square_has_a_mark_at_both_means_and_their_intervals():
    _, axes = square(beaten=["hardest"])
    marks = {tuple(line.get_xydata()[0]): line for line in axes.lines
             if len(line.get_xdata()) == 1 and line.get_marker() not in ("", "None")}
    assert set(marks) == {(261, 25), (291, 22), (301, 21)}
    faces = {at[0]: line.get_markerfacecolor() for at, line in marks.items()}
    assert faces[291] == "white" and "white" not in (faces[261], faces[301])
    assert marks[301, 21].get_marker() != marks[291, 22].get_marker()
    assert min(text.get_fontsize() for text in axes.findobj(Text)) >= 8
    half = summarise(ROWS, "method", "rsum").set_index("method").loc["sum"]
    assert any(list(line.get_xdata()) == [half["low"], half["high"]]
               and list(line.get_ydata()) == [25, 25] for line in axes.lines)


def test_its_front_leaves_out_what_another_exceeds_by_both():
    worse = ROWS[ROWS["method"] == "sum"].assign(method="soft")
    worse[["rsum", "tau"]] -= 5
    _, axes = square(rows=pd.concat([ROWS, worse]))
    (front,) = [line for line in axes.lines if line.get_label().startswith("front")]
    assert list(front.get_xdata()) == [261, 291, 301]


def test_each_judge_has_a_front_and_marks_of_its_own():
    """A loss of the second judge stands beside that of the first, and is not averaged with it."""
    second = ROWS.assign(rsum=ROWS["rsum"] + 40)
    rows = pd.concat([ROWS, second], ignore_index=True)
    _, axes = square(rows=rows, judge=["first"] * len(ROWS) + ["second"] * len(ROWS))
    fronts = {line.get_label(): list(line.get_xdata()) for line in axes.lines
              if line.get_label().startswith("front")}
    assert {label.rpartition("(")[2]: at for label, at in fronts.items()} == {
        "first)": [261, 291, 301], "second)": [301, 331, 341]}
    assert sorted(text.get_text() for text in axes.texts) == sorted(2 * ["sum", "hardest", "bcls"])


def test_a_judge_of_few_seeds_has_no_front():
    second = ROWS[ROWS["seed"] == 0].assign(rsum=ROWS["rsum"] + 40)
    rows = pd.concat([ROWS, second], ignore_index=True)
    judge = ["first"] * len(ROWS) + ["second"] * len(second)
    for fewest, fronts in ((2, ["first)"]), (4, [])):
        _, axes = square(rows=rows, judge=judge, fewest=fewest)
        assert [line.get_label().rpartition("(")[2] for line in axes.lines
                if line.get_label().startswith("front")] == fronts


def test_a_kind_keeps_its_colour_whichever_others_are_there():
    alone = ROWS[ROWS["method"] == "bcls"]  # the graded one
    colours = {line.get_color() for rows in (ROWS, alone) for line in square(rows=rows)[1].lines
               if line.get_label() == "graded"}
    assert len(colours) == 1 and colours != {boards.KIND_LOOKS[0][0]}


@pytest.mark.slow
def test_no_name_covers_a_mark_or_another_name():
    """Also where methods stand on top of each other."""
    noise = np.random.default_rng(0).normal(size=(12, 3, 2))
    rows = pd.DataFrame([(f"a loss named {n}", seed, 280 + 4 * x, 47 + y / 2)
                         for n, part in enumerate(noise) for seed, (x, y) in enumerate(part)],
                        columns=["method", "seed", "rsum", "tau"])
    figure, axes = square(rows=rows)
    figure.canvas.draw()
    boxes = [Text.get_window_extent(note) for note in axes.texts]
    means = rows.groupby("method")[["rsum", "tau"]].mean()
    marks = axes.transData.transform(means)
    assert len(boxes) == 12 and not any(box.contains(*mark) for box in boxes for mark in marks)
    assert not any(one.overlaps(other) for n, one in enumerate(boxes) for other in boxes[:n])


def test_names_of_marks_far_apart_cover_no_interval():
    """Intervals are looked for where they are drawn: the layout is settled before."""
    _, axes = square()
    axes.figure.canvas.draw()
    bars = [axes.transData.transform(line.get_xydata()) for line in axes.lines
            if len(line.get_xdata()) == 2 and not line.get_label().startswith("front")]
    for note in axes.texts:
        box = Text.get_window_extent(note)
        assert not any(box.contains(*(start + part * (end - start)))
                       for start, end in bars for part in np.linspace(0, 1, 99))
