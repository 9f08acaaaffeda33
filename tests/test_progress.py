import io
import sys
import time

from itr_study.progress import counting, progress


def test_items_come_through_and_short_loops_say_nothing(capsys):
    assert list(progress([3, 1, 2], "sorting")) == [3, 1, 2]
    assert list(progress(iter("ab"), "letters", total=2)) == ["a", "b"]
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err == ""


def test_headless_loop_prints_one_line_per_interval(capsys, monkeypatch):
    clock = iter(range(0, 1000, 20))  # 20 s pass between looks at the clock
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    assert list(progress(range(4), "encoding pictures")) == [0, 1, 2, 3]
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["encoding pictures: 2 of 4, 40 s, about 40 s left",
                     "encoding pictures: 4 of 4, 80 s, about 0 s left"]


def test_an_early_stop_is_allowed():
    for item in progress(range(10), "stop"):
        if item == 3:
            break
    assert item == 3


class Terminal(io.StringIO):
    def isatty(self):
        return True


def on_terminal(monkeypatch) -> Terminal:
    """stderr as a terminal; what is drawn on it. (A fixture would be too early: pytest sets stderr
    before each call.)"""
    monkeypatch.delenv("ITR_STUDY_HEADLESS", raising=False)
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def test_on_a_terminal_a_bar_says_how_far_how_long_and_what_came_out(monkeypatch):
    terminal = on_terminal(monkeypatch)
    with counting("training", 4, "epochs") as show:
        show(0.5, "")
        time.sleep(0.15)  # tqdm draws ten times a second
        show(2.7, "loss 0.412, dev RSUM 285.1")
    drawn = terminal.getvalue().split("\r")
    assert any("training:  68 %" in line and "2 of 4 epochs" in line and "left" in line
               and "dev RSUM 285.1" in line for line in drawn), drawn
    assert not drawn[-2].strip() and not drawn[-1]  # the line is empty again


def test_nothing_to_do_draws_nothing(monkeypatch):
    terminal = on_terminal(monkeypatch)
    assert list(progress([], "reading")) == []
    assert terminal.getvalue() == ""
