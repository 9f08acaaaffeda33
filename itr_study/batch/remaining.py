"""How long a batch will still take: from what its notebooks took before, corrected as they end."""

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

    Each notebook that is done corrects the others: a machine twice as slow doubles what is left.
    Notebooks of unknown length count as much as the known ones on average; where none is known,
    there is no estimate before the first is done.

    Args:    expected: minutes of each notebook of the batch, None where unknown.
             workers: notebooks at once. clock: seconds that only go forward.
    Example:
        >>> batch = Remaining({"00": 1.0, "01": 4.0}, clock=lambda: 0.0)
        >>> batch.start("00")
        >>> batch.end("00", 3.0)
        >>> batch.text()
        'about 12 minutes remain'
    """

    def __init__(self, expected: Mapping[str, float | None], workers: int = 1,
                 clock: Callable[[], float] = time.monotonic):
        known = [minutes for minutes in expected.values() if minutes is not None]
        usual = mean(known) if known else 1.0
        self.expected = {n: usual if m is None else m for n, m in expected.items()}
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
        planned = sum(self.expected[name] for name in done)
        pace = sum(done.values()) / planned if planned else 1.0
        left = [self._left(name, pace) for name in self.expected if name not in self.taken]
        return max(sum(left) / self.workers, max(left, default=0.0))

    def _left(self, name: str, pace: float) -> float:
        whole = pace * self.expected[name]
        if name not in self.started:
            return whole
        return max(0.0, whole - (self.clock() - self.started[name]) / 60)

    def text(self) -> str:
        """The estimate in words; empty where there is none, or nothing is left."""
        minutes = self.minutes()
        if minutes is None or len(self.taken) == len(self.expected):
            return ""
        if minutes < 1.5:
            return "about a minute remains"
        return f"about {minutes:.0f} minutes remain"
