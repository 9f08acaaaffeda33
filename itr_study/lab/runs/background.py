"""A run that is trained in a process of its own, while this one goes on.

run = BackgroundRun(config)
run.start()
run.look().rows         what it has written so far
run.stop()              it saves, and ends; start goes on from there
"""

import json
import threading
from pathlib import Path
from typing import Any, NamedTuple

from itr_study.files.paths import check_home
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.data import absolute, dataset_of
from itr_study.lab.runs.executors import Worker
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import Answer, Job
from itr_study.lab.runs.store import ENDED, RunStore
from itr_study.training.state import Checkpoints

SAVE_SECONDS = 20.0  # between checkpoints: what a kernel that is killed may lose


class Look(NamedTuple):
    """How far a run is.

    state: "new", "starting", "running", "stopping", "elsewhere" (another process trains it), or one
    of `store.STATES`; reason: why, or who; rows: as `History.rows`; checkpoint: whether there is.
    """

    state: str
    reason: str
    rows: list[dict[str, Any]]
    checkpoint: bool = False


class BackgroundRun:
    """A run of a config, in the store or to be trained by a worker process.

    The worker ends with this process, and saves first; killed, it loses the last SAVE_SECONDS.

    Args:    root, store, device: as in `run.execute`.
    Raises:  DataError where the data is not there.
    """

    def __init__(self, config: RunConfig, root: Path | str | None = None,
                 store: RunStore | None = None, device: str = "auto") -> None:
        dataset_of(config, root)  # to be trained it must be here, whatever is published
        self.config, self.run, self.store = config, identify(config, root), store or RunStore()
        self.job = Job(config=config, root=absolute(root),
                       store=str(self.store.folder.resolve()), device=device,
                       save_seconds=SAVE_SECONDS)
        self.worker: Worker | None = None
        self.thread: threading.Thread | None = None
        self.answer: Answer | None = None  # of the last worker
        self.ended: Look | None = None  # read once: every file of it is verified

    @property
    def at_work(self) -> bool:
        """Whether a worker of this process is at it."""
        return self.thread is not None and self.thread.is_alive()

    def start(self) -> None:
        """Train it, or go on, in a worker; ValueError where it is being trained, or has ended."""
        now = self.look()
        if now.state in ("starting", "running", "stopping"):
            raise ValueError("this run is being trained already; wait for its end, or stop it")
        if now.state == "elsewhere":
            raise ValueError(f"{now.reason} trains this run already; stop it there, or wait")
        if now.state in ENDED:
            raise ValueError(f"this run is {now.state} already, and training it again would give "
                             "the same; change its config, such as its seed")
        check_home()
        self.answer, self.worker = None, None
        ready, failed = threading.Event(), list[OSError]()
        # A thread of its own: Linux ends a worker when the thread that started it ends.
        self.thread = threading.Thread(target=self._work, args=(ready, failed), daemon=True)
        self.thread.start()
        ready.wait()
        if failed:
            self.thread.join()  # until then it looks as if a worker were at it
            raise failed[0]

    def _work(self, ready: threading.Event, failed: list[OSError]) -> None:
        """Have the job done, and end the worker."""
        try:
            self.worker = Worker()
        except OSError as error:
            failed.append(error)
            return
        finally:
            ready.set()
        self.answer = Answer.model_validate_json(self.worker.ask(self.job.model_dump_json()))
        self.worker.end()

    def stop(self) -> None:
        """Ask the worker to save and end, without waiting; ValueError where none is at work."""
        if not self.at_work:
            raise ValueError("this run is not being trained here, so there is nothing to stop")
        self.worker.stop()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until no worker is at it, at most so long; whether that is so."""
        if self.thread is not None:
            self.thread.join(seconds)
        return not self.at_work

    def look(self) -> Look:
        """How far it is now, from what the store holds."""
        if self.ended is not None:
            return self.ended
        status = self.store.status(self.run.id) or {"state": "new", "reason": ""}
        rows = [json.loads(line) for line in self.store.epochs(self.run.id)]
        running = status["state"] == "running"
        process = f"process {status['pid']} on {status['host']}" if running else ""
        if self.at_work:
            if self.worker.asked.is_set():
                return Look("stopping", "", rows)
            if running and status["pid"] == self.worker.process.pid:
                return Look("running", "", rows)
            why = f"it waits for {process}, which trains the same run" if running else ""
            return Look("starting", why, rows)
        if running:
            return Look("elsewhere", process, rows)
        if (result := self.store.result(self.run.id)) is not None:
            self.ended = Look(result.status, result.reason, result.history.rows)
            return self.ended
        state, reason = status["state"], status["reason"]
        if self.answer is not None and self.answer.state not in ENDED:  # newer than the status
            state, reason = self.answer.state, reason or self.answer.reason
        saved = Checkpoints(self.store.path(self.run.id) / "checkpoints").names()
        return Look("new" if state == "queued" else state, reason, rows, bool(saved))
