"""Warm-ups that runs share: losses are compared after the same first epochs, trained once.

    runs/warmups/<key>/  <epoch>-<step>/ (a checkpoint, as a run's own)  sittings.json

Runs that differ in nothing but their objective have the same warm-up, bit by bit. It is kept where
it ends, and the next of them goes on from there.
"""

import shutil
import uuid
from pathlib import Path

from itr_study.files.atomic import folder_lock
from itr_study.files.sealed import Damaged, set_aside, verify
from itr_study.runs.facts import SITTINGS
from itr_study.runs.identity import Run, hash_run, part_versions
from itr_study.training.checkpoints import FILES, Checkpoints

KEPT = 32  # warm-ups in a store; the oldest go


def warmup_key(run: Run) -> str | None:
    """What the warm-up of a run depends on: the id of the run whose objective it is. None where it
    has none."""
    config = run.config
    if not config.settings.warmup_epochs or config.warmup_objective is None:
        return None
    config = config.with_(objective=[term.model_dump() for term in config.warmup_objective])
    whole = {name: run.versions[name] for name in ("loop", "evaluation")}
    return hash_run(config, run.data, run.encoded, part_versions(config) | whole)


class WarmUps:
    """The warm-ups of a store.

    Args:    folder: created when the first is kept; on the disk of the runs.
    """

    def __init__(self, folder: Path):
        self.folder = Path(folder)

    def begin(self, key: str | None, checkpoints: Checkpoints) -> None:
        """Give a training that has no checkpoint yet the end of its warm-up, if that is kept. A
        damaged one is set aside."""
        if key is None or checkpoints.names():
            return
        with folder_lock(self.folder):
            kept = Checkpoints(self.folder / key)
            for name in kept.names()[-1:]:
                try:
                    verify(kept.folder / name, FILES)
                except Damaged as error:
                    set_aside(kept.folder, f"{error}; the warm-up is trained again")
                    return
                self._copy(kept.folder, name, checkpoints.folder)

    def keep(self, key: str | None, checkpoints: Checkpoints) -> None:
        """Keep the newest checkpoint of a training, at the end of its warm-up, unless it is."""
        if key is None:
            return
        with folder_lock(self.folder):
            if (self.folder / key).exists():
                return
            self._copy(checkpoints.folder, checkpoints.names()[-1], self.folder / key)
            kept = sorted(self.folder.iterdir(), key=lambda path: path.stat().st_mtime)
            for old in kept[:-KEPT]:
                shutil.rmtree(old)

    def _copy(self, source: Path, name: str, target: Path) -> None:
        """A folder with one checkpoint of another and what it was computed with, all or nothing.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.glob(".*.tmp"):  # of a copy that was killed: the lock is ours
            shutil.rmtree(left)
        temporary = self.folder / f".{uuid.uuid4().hex[:8]}.tmp"
        try:
            shutil.copytree(source / name, temporary / name)
            shutil.copy(source / SITTINGS, temporary)
            shutil.rmtree(target, ignore_errors=True)  # it holds no checkpoint
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary.rename(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
