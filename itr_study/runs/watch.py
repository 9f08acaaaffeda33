"""How far runs are that other processes train: read from the history each of them writes."""

import json
from collections.abc import Collection, Mapping

from itr_study.runs.identity import Run
from itr_study.runs.store import RunStore
from itr_study.training.state import epoch_note


class Watch:
    """The epochs of some runs, counted while they are trained.

    Args:    runs: by id; store: where they are trained.
    """

    def __init__(self, runs: Mapping[str, Run], store: RunStore):
        self.runs, self.store = runs, store
        self.total = sum(run.config.settings.epochs for run in runs.values())
        self.before: dict[str, int] = {}  # epochs of each run when last looked at
        self.newest = ""  # what the epoch said that ended last

    def look(self, ended: Collection[str]) -> tuple[int, str]:
        """(epochs done, a note); a run that ended counts whole, however early it stopped.

        The note says what the epoch gave that ended last.
        """
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
        parts = [f"{len(ended)} of {len(self.runs)} runs", self.newest]
        return done, ", ".join(filter(None, parts))

    def _history(self, run_id: str) -> list[str]:
        path = self.store.path(run_id) / "metrics.jsonl"
        return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
