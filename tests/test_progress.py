import time

from itr_study.progress import progress


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
    assert lines == ["encoding pictures: 2 of 4, 40 s", "encoding pictures: 4 of 4, 80 s"]


def test_an_early_stop_is_allowed():
    for item in progress(range(10), "stop"):
        if item == 3:
            break
    assert item == 3
