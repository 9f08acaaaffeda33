"""How long a batch will still take: from what its notebooks took before, corrected as they end."""

import heapq
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from statistics import mean
from typing import Any

from itr_study.batch.declared import Notebook
from itr_study.data import DATASETS
from itr_study.files.atomic import read_json


def expected_minutes(notebook: Notebook, parameters: Mapping[str, Any],
                     executed: Path) -> float | None:
    """What a notebook took when it was last done here in the same profile, else what it declares
    for `quick` on generated data, else None.

    Args:    executed: where the executed notebooks of the data set lie.
    """
    profile = parameters.get("profile")
    status = (executed / notebook.path.name).with_suffix(".status.json")
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):  # none, or damaged
        last = read_json(status)
        minutes = float(last["minutes"])
        if (last["status"] == "done" and last["parameters"].get("profile") == profile
                and 0 <= minutes < math.inf):
            return minutes
    generated = DATASETS[parameters.get("dataset", "scenes")].generated
    return notebook.minutes if generated and profile == "quick" else None


class Remaining:
    """What is left of a batch, in minutes.

    Each notebook that is done corrects the others: a machine twice as slow takes twice as long.
    The first ones are short and say little, so what was foreseen counts beside them as one notebook
    more; one that still runs counts when it is late. Notebooks of unknown length count as much as
    the known ones on average; where none is known, there is no estimate before the first is done.

    Args:    expected: minutes of each notebook of the batch beside the others, None where unknown,
             in the order in which they start. workers: notebooks at once. clock: seconds that only
             go forward.
    Example:
        >>> batch = Remaining({"00": 1.0, "01": 4.0, "02": 4.0}, clock=lambda: 0.0)
        >>> batch.start("00")
        >>> batch.end("00", 5.0)
        >>> batch.text()
        'about 16 minutes remain'
    """

    def __init__(self, expected: Mapping[str, float | None], workers: int = 1,
                 clock: Callable[[], float] = time.monotonic):
        known = [minutes for minutes in expected.values() if minutes is not None]
        self.usual = mean(known) if known else 1.0
        self.expected = {n: self.usual if m is None else m for n, m in expected.items()}
        self.workers, self.clock, self.guessed = workers, clock, not known
        self.started: dict[str, float] = {}
        self.taken: dict[str, float | None] = {}

    def start(self, name: str) -> None:
        self.started[name] = self.clock()

    def end(self, name: str, minutes: float | None) -> None:
        """A notebook ended: after `minutes`, or None where that does not correct the others."""
        self.taken[name] = minutes

    def minutes(self) -> float | None:
        """Until the last one ends; None where nothing is known yet."""
        done = {name: taken for name, taken in dict(self.taken).items() if taken is not None}
        if self.guessed and not done:
            return None
        passed = {name: (self.clock() - start) / 60 for name, start in dict(self.started).items()
                  if name not in self.taken}
        pace = self._pace(done, passed)
        busy = [max(0.0, pace * self.expected[name] - gone) for name, gone in passed.items()]
        ends = sorted([0.0] * (self.workers - len(busy)) + busy)
        for name in self.expected:
            if name not in self.taken and name not in passed:
                heapq.heapreplace(ends, ends[0] + pace * self.expected[name])
        return max(ends)

    def _pace(self, done: Mapping[str, float], passed: Mapping[str, float]) -> float:
        """Minutes that pass for each one foreseen."""
        foreseen = 0.0 if self.guessed else self.usual
        taken, planned = foreseen + sum(done.values()), foreseen + sum(map(self.expected.get, done))
        for name, gone in passed.items():
            if gone > self.expected[name]:
                taken, planned = taken + gone, planned + self.expected[name]
        return taken / planned if planned else 1.0

    def text(self) -> str:
        """The estimate in words; empty where there is none, or nothing is left."""
        minutes = self.minutes()
        if minutes is None or len(self.taken) == len(self.expected):
            return ""
        if minutes < 1.5:
            return "about a minute remains"
        return f"about {minutes:.0f} minutes remain"
