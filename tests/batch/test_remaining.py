"""The estimate of what is left: from known minutes, corrected by those that were measured."""

import pytest

from itr_study.lab.batch.schedule import Remaining


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
    clock.now = 120  # never less than nothing
    assert batch.minutes() == pytest.approx(6)


def test_what_was_foreseen_counts_beside_what_was_measured_as_one_notebook_more(clock):
    batch = Remaining({"a": 2.0, "b": 6.0, "c": 1.0}, clock=clock)
    batch.start("a")
    batch.end("a", 4.0)
    assert batch.minutes() == pytest.approx((4 + 3) / (2 + 3) * (6 + 1))
    batch.start("b")
    batch.end("b", None)  # it failed: its minutes say nothing about the others
    assert batch.minutes() == pytest.approx((4 + 3) / (2 + 3) * 1)
    assert batch.text() == "about a minute remains"
    batch.end("c", 0.1)
    assert batch.text() == ""


def test_one_that_is_late_says_so_before_it_ends(clock):
    batch = Remaining({"a": 2.0, "b": 2.0, "c": 2.0}, clock=clock)
    batch.start("a")
    clock.now = 360
    pace = (6 + 2) / (2 + 2)
    assert batch.minutes() == pytest.approx(0 + 2 * pace * 2)


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


# Minutes of notebooks side by side on two cores: what they were thought to take alone, and what
# they took (03, 05, 06, 07, 08 and 11 as measured, the others by their share of the batch's 17).
RECORDED = {"00": (0.6, 1.2), "01": (0.2, 0.5), "02": (1.1, 2.5), "03": (2.3, 3.8),
            "04": (0.9, 2.0), "05": (2.6, 4.3), "06": (1.9, 2.9), "07": (2.0, 4.1),
            "08": (2.0, 2.9), "09": (2.0, 3.0), "10": (0.8, 1.3), "11": (2.0, 3.1),
            "13": (2.0, 3.0), "12": (0.3, 0.7)}


def test_the_end_of_a_recorded_batch_is_foreseen_from_the_first_notebook_on(clock):
    """Within a third, though all that was foreseen was for notebooks alone on a faster machine."""
    batch = Remaining({name: alone for name, (alone, _) in RECORDED.items()}, 2, clock)
    waiting, running, foreseen = list(RECORDED), {}, []
    while waiting or running:
        while waiting and len(running) < 2:
            name = waiting.pop(0)
            batch.start(name)
            running[name] = clock.now / 60 + RECORDED[name][1]
        ended = min(running, key=running.get)
        clock.now = 60 * running.pop(ended)
        batch.end(ended, RECORDED[ended][1])
        foreseen.append(clock.now / 60 + batch.minutes())
    assert len(foreseen) == 14 and foreseen[-1] == pytest.approx(clock.now / 60)
    assert all(2 / 3 < minutes / foreseen[-1] < 4 / 3 for minutes in foreseen), foreseen
