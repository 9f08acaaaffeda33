"""Runs that are trained in turn: a few side by side, the next when one has ended."""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakSet

import numpy as np

from itr_study.explorers.beside import POLL
from itr_study.explorers.heard import brief
from itr_study.explorers.training import HERE, Trained

LOG = logging.getLogger(__name__)
ALL: WeakSet["InTurn"] = WeakSet()  # of this process: panes may wait for the same run


class InTurn:
    """Runs by name, and those that are to be trained next. A thread begins them: somebody may look,
    or nobody.

    Attributes: looks: where each run stood at the last look; queue: names of those to be started.
    Args:    runs: by how a reader calls them; at_once: how many are trained side by side; minutes:
             about how long some of them are trained; pause: seconds between looks of the thread.
    """

    def __init__(self, runs: Mapping[str, Trained], at_once: int, minutes: Mapping[str, float],
                 pause: float = POLL / 1000) -> None:
        self.runs, self.at_once, self.minutes = dict(runs), at_once, dict(minutes)
        self.pause, self.queue, self.failure = pause, list[str](), ""
        self.looks = {name: run.look() for name, run in self.runs.items()}
        self._lock = threading.RLock()  # the page and the thread look at the same runs
        self._thread: threading.Thread | None = None
        ALL.add(self)

    def look(self) -> None:
        """Read how far all are; begin the next. Raises: ValueError where one could not be begun,
        once; whatever reading it raises."""
        with self._lock:
            self._read()
            if any(look.state == "diverged" for look in self.looks.values()):
                self.queue = []  # all are needed: the others would be trained in vain
            while self.queue and self._here() < self.at_once:
                self._begin(self.queue.pop(0))
            failure, self.failure = self.failure, ""
        if failure:
            raise ValueError(failure)

    def train(self, names: Sequence[str]) -> None:
        """Train these and no others, in this order. Raises: as `look`."""
        with self._lock:
            self.queue = list(names)
            try:
                self.look()
            finally:  # one that could not be begun leaves the others waiting
                if self.queue and not self.waits:
                    self._thread = threading.Thread(target=self._go_on, daemon=True)
                    self._thread.start()

    def stop(self) -> None:
        """Save and end all that are trained here; begin no other, and none of these for whoever
        else waits for them. Raises: as `look`."""
        for other in [*ALL]:  # one lock at a time: two that stop each other must not wait for ever
            other.forget([run.config for run in self.runs.values()])
        with self._lock:
            self.queue = []
            self._read()  # one that has ended since the last look cannot be stopped
            for name, look in self.looks.items():
                if look.state in HERE[:2]:
                    self.runs[name].stop()
            self.look()

    def forget(self, configs: Sequence[Any]) -> None:
        """Begin no run of one of these configs."""
        with self._lock:
            self.queue = [name for name in self.queue if self.runs[name].config not in configs]

    def seconds(self, names: Sequence[str]) -> float | None:
        """About how long it takes to train these to their end; None where nobody knows."""
        each = [self._seconds(name) for name in names]
        if not each or None in each:
            return None
        return max(*each, sum(each) / self.at_once)

    @property
    def waits(self) -> bool:
        """Whether its thread waits until it can begin another."""
        return self._thread is not None and self._thread.is_alive()

    def _read(self) -> None:
        """Read how far all are."""
        self.looks = {name: run.look() for name, run in self.runs.items()}

    def _here(self) -> int:
        """How many are trained by this process."""
        return sum(look.state in HERE for look in self.looks.values())

    def _begin(self, name: str) -> None:
        """Start one that another process has not ended or begun meanwhile."""
        if self.looks[name].state in (*HERE, "elsewhere", "done", "diverged"):
            return
        try:
            self.runs[name].start()
        except Exception as error:  # told where somebody looks; the others go on
            LOG.exception("%s could not be started", name)
            told = f"{name} could not be started. {type(error).__name__}: {error}"
            self.failure = brief("; ".join(filter(None, (self.failure, told))))
        self.looks[name] = self.runs[name].look()

    def _go_on(self) -> None:
        """Look until none waits, or Python ends: what is asked to save then makes room for none.
        What fails is told at the next look of somebody."""
        while True:
            time.sleep(self.pause)
            with self._lock:
                if not self.queue or not threading.main_thread().is_alive():
                    self._thread = None  # still under the lock: who asks now begins another
                    return
                try:
                    self.look()
                except ValueError as error:
                    self.failure = str(error)
                except Exception as error:  # once in the log, though it fails at every look
                    told = brief(f"{type(error).__name__}: {error}")
                    if told != self.failure:
                        LOG.exception("the runs that wait could not be read")
                    self.failure = told

    def _seconds(self, name: str) -> float | None:
        """Of one run: by its own epochs, as told, or by those of another run of the same model and
        data."""
        config, rows = self.runs[name].config, self.looks[name].rows
        left = config.settings.epochs - len(rows)
        like = [look.rows for other, look in self.looks.items() if look.rows
                and alike(self.runs[other].config, config)]
        if not rows and name in self.minutes:
            return 60 * self.minutes[name]
        if measured := rows or next(iter(like), None):
            return left * float(np.mean([row["seconds"] for row in measured]))
        return None


def alike(one: Any, other: Any) -> bool:
    """Whether epochs of two configs take about as long."""
    return (one.model, one.dataset, one.data_options) == (other.model, other.dataset,
                                                          other.data_options)
