"""How far runs are that other processes execute: read from the history each of them writes."""

import json
from collections.abc import Collection, Mapping

from itr_study.lab.runs.identity import Run
from itr_study.lab.runs.store import RunStore
from itr_study.training.state import epoch_note


class Watch:
    """The epochs of some runs, counted while they are trained. Those that have weights are only
    measured again, and no epoch of theirs is counted; where all have, runs are.

    Args:    runs: by id; store: where they are executed.
    """

    def __init__(self, runs: Mapping[str, Run], store: RunStore):
        self.count, self.store = len(runs), store
        self.runs = {run_id: run for run_id, run in runs.items() if store.result(run_id) is None}
        self.before: dict[str, int] = {}  # epochs of each run when last looked at
        self.newest = ""  # what the epoch said that ended last

    @property
    def counted(self) -> tuple[str, int, str]:
        """What is being done, and how many there are of what: arguments of `counting`."""
        if not self.runs:
            return "measuring", self.count, "runs"
        epochs = sum(run.config.settings.epochs for run in self.runs.values())
        both = len(self.runs) < self.count
        return "training and measuring" if both else "training", epochs, "epochs"

    def look(self, ended: Collection[str]) -> tuple[int, str]:
        """(epochs or runs done, a note); a run that ended counts whole, however early it stopped.

        The note says what the epoch gave that ended last.
        """
        if not self.runs:
            return len(ended), ""
        done = 0
        for run_id, run in self.runs.items():
            if run_id in ended:
                done += run.config.settings.epochs
                continue
            rows = self._history(run_id)
            if len(rows) > self.before.get(run_id, 0):
                self.newest = epoch_note(json.loads(rows[-1]))
            self.before[run_id] = len(rows)
            done += len(rows)
        parts = [f"{len(ended)} of {self.count} runs", self.newest]
        return done, ", ".join(filter(None, parts))

    def _history(self, run_id: str) -> list[str]:
        path = self.store.path(run_id) / "metrics.jsonl"
        return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
