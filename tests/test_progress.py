import io
import sys
import threading
import time

import nbformat
import pytest
from nbclient import NotebookClient

from itr_study.progress import counting, counting_if_slow, in_lines, progress
from tests.posix import posix_only


def test_items_come_through_and_short_loops_say_nothing(capsys):
    assert list(progress([3, 1, 2], "sorting")) == [3, 1, 2]
    assert list(progress(iter("ab"), "letters", total=2)) == ["a", "b"]
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err == ""


def test_no_line_is_so_long_that_a_page_breaks_it_in_a_word():
    words = ["undecided", "0.073", "a-long-name", "(one seed)"] * 20 + ["x" * 130]
    lines = in_lines("first line\n" + " ".join(words)).splitlines()
    assert lines[0] == "first line" and " ".join(lines[1:]).split() == " ".join(words).split()
    assert all(len(line) <= 100 for line in lines[:-1]) and lines[-1] == "x" * 130


def test_headless_loop_prints_one_line_per_interval(capsys, monkeypatch):
    clock = iter(range(0, 1000, 20))  # 20 s pass between looks at the clock
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    assert list(progress(range(4), "encoding pictures")) == [0, 1, 2, 3]
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["encoding pictures: 2 of 4, 40 s, about 40 s left",
                     "encoding pictures: 4 of 4, 80 s, about 0 s left"]


def test_a_thread_draws_below_no_cell(monkeypatch, capsys):
    """It would be another's: of the cell that is being run meanwhile."""
    drawn = []
    monkeypatch.setattr("itr_study.progress.in_notebook", lambda: True)
    monkeypatch.setattr("itr_study.progress.OutputLine", lambda: drawn.append(1) or io.StringIO())
    assert list(progress([1, 2], "here")) == [1, 2] and drawn
    drawn.clear()
    thread = threading.Thread(target=lambda: list(progress([1, 2], "beside")))
    thread.start()
    thread.join()
    assert not drawn and capsys.readouterr().err == ""


def test_what_is_done_within_seconds_is_not_counted(capsys, monkeypatch):
    """Of what takes longer the time before the first look counts, too."""
    monkeypatch.delenv("ITR_STUDY_HEADLESS", raising=False)
    for pause, lines in ((0.5, []), (20, ["scoring: 3 of 5 pairs, 60 s, about 40 s left",
                                          "scoring: 5 of 5 pairs, 100 s, about 0 s left"])):
        now = [0.0]
        monkeypatch.setattr(time, "monotonic", lambda now=now: now[0])
        with counting_if_slow("scoring", 5, "pairs") as show:
            for done in range(1, 6):
                now[0] += pause
                show(done)
        assert capsys.readouterr().err.splitlines() == lines


def test_a_bar_that_opens_late_knows_when_it_began(monkeypatch):
    terminal = on_terminal(monkeypatch)
    with counting("scoring", 4, "pairs", elapsed=60) as show:
        show(2)  # half of it in a minute
    assert any("2 of 4 pairs" in line and ("01:00 left" in line or "00:59 left" in line)
               for line in terminal.getvalue().split("\r"))


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


@posix_only
def test_a_terminal_that_does_not_say_its_width_sees_the_bar(monkeypatch):
    """As that of a container or of `script`: it says it has 0 columns."""
    import pty

    monkeypatch.delenv("ITR_STUDY_HEADLESS", raising=False)
    reader, terminal = pty.openpty()
    with open(terminal, "w", encoding="utf-8") as stderr, open(reader, "rb", 0) as seen:
        monkeypatch.setattr(sys, "stderr", stderr)
        with counting("training", 4, "epochs") as show:
            show(1, "")
        stderr.write("end")
        stderr.flush()
        assert "training:   0 %|" in seen.read(4096).decode()


def test_nothing_to_do_draws_nothing(monkeypatch):
    terminal = on_terminal(monkeypatch)
    assert list(progress([], "reading")) == []
    assert terminal.getvalue() == ""


CELL = """
import time
from itr_study.progress import counting
with counting("training", 4, "epochs") as show:
    show(1, "")
    time.sleep(0.15)
    show(3, "dev RSUM 285.1")
    print("half way")
"""


@pytest.mark.slow
def test_a_live_notebook_shows_a_line_that_is_empty_at_the_end(monkeypatch, tmp_path):
    """Text, no widget: a widget saved with its notebook is missed when that is opened again."""
    monkeypatch.delenv("ITR_STUDY_HEADLESS", raising=False)
    client = NotebookClient(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)]),
                            timeout=60, kernel_name="python3")
    lines = []
    original = client.process_message

    def record(message, cell, index):
        if message["msg_type"] in ("display_data", "update_display_data"):
            lines.append(message["content"]["data"])
        return original(message, cell, index)

    client.process_message = record
    client.execute(cwd=tmp_path)
    assert any("75 %|█" in line["text/plain"] and "3 of 4 epochs, dev RSUM 285.1" in
               line["text/plain"] for line in lines), lines
    assert lines[-1]["text/plain"] == "" and all(set(line) == {"text/plain"} for line in lines)

