"""Warm-ups that runs share: losses are compared after the same first epochs, trained once.

    runs/warmups/<key>/<epoch>-<step>/      a checkpoint, as a run's own

Runs that differ in nothing but their objective have the same warm-up, bit by bit, where the same
code trains them on the same machine. It is kept where it ends, and the next of them goes on from
there. What is kept is a saving alone: where it cannot be written or read, a run trains its own.
"""

import os
import shutil
import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock
from torch import nn

from itr_study.files.atomic import canonical_json
from itr_study.files.sealed import Damaged, set_aside
from itr_study.runs.facts import CHANGED
from itr_study.runs.identity import Run, digest, hash_run, part_versions
from itr_study.training.checkpoints import Checkpoints, load, position
from itr_study.training.state import under

KEPT = 32  # warm-ups in a store; those that were not used for longest go


def warmup_key(run: Run, facts: Mapping[str, Any]) -> str | None:
    """What the bits of a run's warm-up depend on: the run whose objective it is, and what it is
    computed with. None where it has none, or where nobody can tell what code trains it.

    Args:    facts: of all its sittings (`facts.all_sittings`), and the commit.
    """
    config = run.config
    commits = facts["commit"].split(" + ")  # of several sittings
    if not config.settings.warmup_epochs or any(one.endswith(CHANGED) for one in commits):
        return None
    config = config.with_(objective=[term.model_dump() for term in config.warmup_objective])
    whole = {name: run.versions[name] for name in ("loop", "evaluation")}
    warmup = hash_run(config, run.data, run.encoded, part_versions(config) | whole)
    return digest(canonical_json([warmup, dict(facts)]))


class WarmUps:
    """The warm-ups of a store, for one training.

    Args:    folder: created when the first is kept; on the disk of the runs; key: of `warmup_key`;
             epochs: how long the warm-up is.
    """

    def __init__(self, folder: Path, key: str | None, epochs: int):
        self.folder, self.key, self.end = Path(folder), key, position(epochs, 0)

    def begin(self, checkpoints: Checkpoints, model: nn.Module) -> None:
        """Give a training that has no checkpoint yet the end of its warm-up, if that is kept. One
        that is damaged, or of another model, is set aside."""
        if self.key is None or checkpoints.names():
            return
        with self._warned("read"), self._lock():
            kept = self.folder / self.key
            if self.end not in Checkpoints(kept).names():
                return
            try:
                _check(kept / self.end, model)
            except Damaged as error:
                set_aside(kept, f"{error}; the warm-up is trained again")
                return
            os.utime(kept)
            self._copy(kept / self.end, checkpoints.folder / self.end)

    def keep(self, checkpoints: Checkpoints) -> None:
        """Keep the checkpoint at the end of the warm-up, where there is one, unless it is."""
        if self.key is None or self.end not in checkpoints.names():
            return
        with self._warned("kept"), self._lock():
            kept = self.folder / self.key
            if self.end not in Checkpoints(kept).names():
                self._copy(checkpoints.folder / self.end, kept / self.end)
                os.utime(kept)
                self._trim()

    def _lock(self) -> FileLock:
        self.folder.mkdir(parents=True, exist_ok=True)
        return FileLock(self.folder.with_suffix(".lock"))

    @contextmanager
    def _warned(self, done: str) -> Iterator[None]:
        """A warning where what is done within fails."""
        try:
            yield
        except OSError as error:
            warnings.warn(f"a warm-up cannot be {done} in {self.folder}: {error}; the run trains "
                          "its own, and other losses theirs", stacklevel=3)

    def _copy(self, source: Path, target: Path) -> None:
        """A checkpoint, all or nothing."""
        for left in self.folder.glob(".*.tmp"):  # of who was killed: the lock is ours
            shutil.rmtree(left)
        temporary = self._temporary()
        try:
            shutil.copytree(source, temporary)
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary.rename(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _trim(self) -> None:
        """Remove those that are too many; a kill leaves none in part."""
        kept = [path for path in self.folder.iterdir()
                if path.is_dir() and not path.name.startswith(".")]
        for old in sorted(kept, key=lambda path: path.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(old.rename(self._temporary()))

    def _temporary(self) -> Path:
        return self.folder / f".{uuid.uuid4().hex[:8]}.tmp"


def _check(folder: Path, model: nn.Module) -> None:
    """Raise Damaged unless a checkpoint is whole, and of a model like this one."""
    saved = under(load(folder)[0], "model.")
    ours = model.state_dict()
    if {name: tensor.shape for name, tensor in saved.items()} != {
            name: tensor.shape for name, tensor in ours.items()}:
        raise Damaged(f"{folder} holds another model")
