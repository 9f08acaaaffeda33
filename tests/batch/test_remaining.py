"""The estimate of what is left: from known minutes, corrected by those that were measured."""

import pytest

from itr_study.batch.remaining import Remaining


class Clock:
    """Seconds that pass only when told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_known_minutes_less_what_has_passed(clock):
    batch = Remaining({"a": 2.0, "b": 6.0}, clock=clock)
    assert batch.text() == "about 8 minutes remain"
    batch.start("a")
    clock.now = 60
    assert batch.minutes() == pytest.approx(1 + 6)
    clock.now = 600  # later than foreseen: never less than nothing
    assert batch.minutes() == pytest.approx(6)


def test_a_machine_half_as_fast_doubles_what_is_left(clock):
    batch = Remaining({"a": 2.0, "b": 6.0, "c": 1.0}, clock=clock)
    batch.start("a")
    batch.end("a", 4.0)
    assert batch.minutes() == pytest.approx(2 * (6 + 1))
    batch.start("b")
    batch.end("b", None)  # it failed: its minutes say nothing about the others
    assert batch.minutes() == pytest.approx(2 * 1)
    assert batch.text() == "about 2 minutes remain"
    batch.end("c", 0.1)
    assert batch.text() == ""


def test_notebooks_of_unknown_length_count_as_the_others(clock):
    assert Remaining({"a": 2.0, "b": 4.0, "c": None}, clock=clock).minutes() == pytest.approx(9)
    unknown = Remaining({"a": None, "b": None, "c": None}, clock=clock)
    assert unknown.minutes() is None and unknown.text() == ""
    unknown.start("a")
    unknown.end("a", 3.0)
    assert unknown.text() == "about 6 minutes remain"


def test_workers_share_what_is_left_but_not_the_longest(clock):
    assert Remaining({"a": 4, "b": 4, "c": 4}, 2, clock).minutes() == pytest.approx(6)
    assert Remaining({"a": 9, "b": 1, "c": 1}, 2, clock).minutes() == pytest.approx(9)
    assert Remaining({"a": 0.1}, 2, clock).text() == "about a minute remains"
