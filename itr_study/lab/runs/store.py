"""The run store: one folder a run, whole or not there, never a pickle.

runs/<id>/  config.json  status.json  metrics.jsonl  checkpoints/ (while training)
            weights.safetensors  test.safetensors  ranks.npz  result.json  manifest.json
runs/.new/<id>/, runs/.old/<id>/    on their way in and out, see `RunStore.finish`
runs/warmups/, runs/scores/         see `WarmUps` and `keep_scores`
"""

import errno
import io
import json
import os
import platform
import shutil
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import psutil
from filelock import FileLock, Timeout
from pydantic import BaseModel, Field, ValidationError
from torch import Tensor, nn

from itr_study.evaluation.evaluate import Evaluation
from itr_study.files import atomic
from itr_study.files.paths import home
from itr_study.files.sealed import Damaged, load_weights, save_weights, seal, set_aside, verify
from itr_study.training.state import Checkpoints, History, load, position, under

STATES = ("queued", "running", "done", "diverged", "failed", "oom", "interrupted")
ENDED = ("done", "diverged")  # final: a second try would give the same
STATUS, SCORES = "status.json", "test.safetensors"
KEPT = 32  # warm-ups in a store; those that were not used for longest go


@dataclass(frozen=True)
class RunResult:
    """A run that ended: "done", or "diverged" with the reason and no tables.

    reason: of a done one, why to doubt it (`History.doubt`); tables: split name -> metric ->
    percent (or rank); history: one dict per epoch; facts: device, minutes, versions, commit, and
    what identifies the data.
    """

    id: str
    status: str
    reason: str
    folder: Path
    config: dict[str, Any]
    tables: dict[str, dict[str, float]]
    history: History
    facts: dict[str, Any]

    def weights(self) -> dict[str, Tensor]:
        """Read the weights of the best epoch, for `model.load_state_dict`."""
        return load_weights(self.folder / "weights.safetensors")

    def arrays(self) -> dict[str, np.ndarray]:
        """Read the ranks of the best match of every query, and what is kept of the test scores.

        Returns: dev_i2t, dev_t2i, test_i2t, test_t2i; of scores such as test_judged_expert, see
                 `evaluation.measures`.
        """
        with np.load(self.folder / "ranks.npz", allow_pickle=False) as arrays:
            return dict(arrays)


class Status(BaseModel):
    """What status.json holds: state, reason, and the process that wrote it."""

    state: Literal[STATES]
    reason: str
    pid: int = Field(ge=0, lt=2**31)
    host: str
    time: str


def read_result(folder: Path) -> RunResult:
    """Read the result in the folder of a run that ended. Raises: Damaged."""
    manifest = verify(folder, ("config.json", "result.json"))
    facts = {k: v for k, v in manifest.items() if k != "files"}
    try:
        values = atomic.read_json(folder / "result.json")
        return RunResult(folder.name, values["status"], values["reason"], folder,
                         atomic.read_json(folder / "config.json"), values["tables"],
                         History(values["history"], values["best_epoch"]), facts)
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{folder / 'result.json'} is no result ({error!r})") from error


class RunStore:
    """All runs under one folder, by default `runs` in the home.

    Two processes that want one run take its lock: one trains, the other waits and reads.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self.folder = Path(folder) if folder is not None else home() / "runs"

    def path(self, run_id: str) -> Path:
        """The folder of a run."""
        return self.folder / run_id

    @contextmanager
    def lock(self, run_id: str) -> Iterator[None]:
        """Hold a run while it is trained or read; who has to wait is told for whom, on stderr."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / f"{run_id}.lock", is_singleton=True)  # reentrant
        try:
            lock.acquire(timeout=0)
        except Timeout:
            holder = self.status(run_id) or {"pid": "unknown", "host": "unknown"}
            print(f"run {run_id}: waiting for process {holder['pid']} on {holder['host']}, which "
                  "is training it", file=sys.stderr, flush=True)
            lock.acquire()
        except OSError as error:  # a store that may not be written to: its runs are only read
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS) or not (
                    self.path(run_id) / "manifest.json").exists():
                raise
            yield
            return
        try:
            yield
        finally:
            lock.release()

    def set_status(self, run_id: str, state: str, reason: str = "") -> None:
        """Write the state of a run, one of STATES, and the reason unless it is done."""
        atomic.write_json(self.path(run_id) / STATUS, {
            "state": state, "reason": reason, "pid": os.getpid(), "host": platform.node(),
            "time": time.strftime("%Y-%m-%dT%H:%M:%S%z")})

    def status(self, run_id: str) -> dict[str, Any] | None:
        """Read the last status; "interrupted" where the process of a running one is gone."""
        path = self.path(run_id) / STATUS
        if not path.exists():
            return None
        try:
            status = Status.model_validate(atomic.read_json(path)).model_dump()
        except ValueError as error:
            reason = f"{path} holds no status" if isinstance(error, ValidationError) else error
            set_aside(path, f"run {run_id}: {reason}")
            return None
        gone = status["host"] == platform.node() and not psutil.pid_exists(status["pid"])
        if status["state"] == "running" and gone:
            return status | {"state": "interrupted", "reason": "its process is gone"}
        return status

    def state(self, run_id: str) -> str:
        """The state in the last status; "" where there is none."""
        return (self.status(run_id) or {"state": ""})["state"]

    def epochs(self, run_id: str) -> list[str]:
        """The epochs that a run has written down by now, each a dict as JSON."""
        path = self.path(run_id) / "metrics.jsonl"
        return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []

    def result(self, run_id: str) -> RunResult | None:
        """Read the result of a run that ended, every file verified; None: it is to be trained.

        A damaged folder is set aside, but not while another process holds the lock and changes it.
        """
        folder = self.path(run_id)
        if not any((one / "manifest.json").exists() for one in (folder, self._made(run_id))):
            return None
        try:
            result = read_result(folder)
        except Damaged:
            with self.lock(run_id):
                self._move_in(run_id)  # of a kill before that was done
                try:
                    result = read_result(folder)
                except Damaged as error:
                    set_aside(folder, f"run {run_id}: {error}; it is trained again")
                    return None
        if self.state(run_id) != result.status:  # killed before writing it
            clear_temporary(folder)
            self.set_status(run_id, result.status, result.reason)
        return result

    def write_history(self, run_id: str, history: History, folder: Path | None = None) -> None:
        """Write a line of JSON per epoch, the whole file, so that a resumed run repeats none."""
        lines = "".join(json.dumps(row, allow_nan=False) + "\n" for row in history.rows)
        atomic.write_atomic((folder or self.path(run_id)) / "metrics.jsonl", lines.encode())

    def finish(self, run_id: str, config: dict[str, Any], history: History, facts: dict[str, Any],
               evaluations: dict[str, Evaluation], weights: dict[str, Tensor] | None = None,
               status: str = "done", reason: str = "") -> RunResult:
        """Write files of a run that ended beside it, then move them in; till then the old stay."""
        folder, reason = self._made(run_id), reason or history.doubt()
        shutil.rmtree(folder, ignore_errors=True)
        self.write_history(run_id, history, folder)
        atomic.write_json(folder / "config.json", config)
        atomic.write_json(folder / "result.json", {
            "status": status, "reason": reason, "history": history.rows,
            "best_epoch": history.best_epoch,
            "tables": {split: evaluation.table for split, evaluation in evaluations.items()}})
        if weights is not None:
            save_weights(folder / "weights.safetensors", weights)
            atomic.write_atomic(folder / "ranks.npz", packed_arrays(evaluations))
        test = evaluations.get("test")
        if test is not None and isinstance(test.images, Tensor) and isinstance(test.texts, Tensor):
            save_weights(folder / "test.safetensors",
                         {"images": test.images.half(), "texts": test.texts.half()})
        seal(folder, but=(STATUS,), **facts)
        self._move_in(run_id)
        self.set_status(run_id, status, reason)
        result = self.result(run_id)
        keep_scores(result, test)
        return result

    def _made(self, run_id: str) -> Path:
        """Where `finish` makes the folder of a run."""
        return self.folder / ".new" / run_id

    def _move_in(self, run_id: str) -> None:
        """Move in what `finish` sealed, if anything; `result` ends what a kill left."""
        folder, made, old = self.path(run_id), self._made(run_id), self.folder / ".old" / run_id
        if not (made / "manifest.json").exists():
            return
        shutil.rmtree(old, ignore_errors=True)
        old.parent.mkdir(exist_ok=True)
        if folder.exists():
            atomic.replace(folder, old)
        atomic.replace(made, folder)
        atomic.sync_folder(self.folder)
        shutil.rmtree(old, ignore_errors=True)


def clear_temporary(folder: Path) -> None:
    """Remove the temporary files of writes that were killed."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


def packed_arrays(evaluations: dict[str, Evaluation]) -> bytes:
    """Pack ranks and what is kept of scores as a small npz: the same bytes every time."""
    arrays = {}
    for split, evaluation in evaluations.items():
        if split != "train":
            arrays |= {f"{split}_i2t": np.asarray(evaluation.ranks.i2t, np.int32),
                       f"{split}_t2i": np.asarray(evaluation.ranks.t2i, np.int32)}
            arrays |= {f"{split}_{name}": array for name, array in evaluation.kept.items()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


class WarmUps:
    """The warm-ups of a store, for one training: runs/warmups/<key>/<epoch>-<step>/.

    Runs that differ in nothing but their objective have the same warm-up, bit by bit, where the
    same code trains them on the same machine. Its last checkpoint is kept, and the next of them
    goes on from there. Where it cannot be written or read, a run trains its own.

    Args:    folder: created when the first is kept; on the disk of the runs; key: of
             `run.warmup_key`; epochs: how long the warm-up is.
    """

    def __init__(self, folder: Path, key: str | None, epochs: int) -> None:
        self.folder, self.key, self.end = Path(folder), key, position(epochs, 0)

    def begin(self, checkpoints: Checkpoints, model: nn.Module) -> None:
        """Give a training without checkpoint the end of its warm-up, if that is kept and sound."""
        if self.key is None or checkpoints.names():
            return
        with self._warned("read"), self._lock():
            kept = self.folder / self.key
            if self.end not in Checkpoints(kept).names():
                return
            try:
                tensors, state = load(kept / self.end)
                here, wanted = ({name: tensor.shape for name, tensor in of.items()}
                                for of in (under(tensors, "model."), model.state_dict()))
                if here != wanted:
                    raise Damaged(f"{kept / self.end} holds another model")
            except Damaged as error:
                set_aside(kept, f"{error}; the warm-up is trained again")
                return
            os.utime(kept)
            checkpoints.save(self.end, tensors, state)

    def keep(self, checkpoints: Checkpoints) -> None:
        """Keep the checkpoint at the end of the warm-up, if there is one; remove the oldest."""
        if self.key is None or self.end not in checkpoints.names():
            return
        with self._warned("kept"), self._lock():
            kept = Checkpoints(self.folder / self.key)
            if self.end not in kept.names():
                kept.save(self.end, *load(checkpoints.folder / self.end))
                os.utime(kept.folder)
                all_kept = [path for path in self.folder.iterdir() if path.is_dir()]
                for old in sorted(all_kept, key=lambda path: path.stat().st_mtime)[:-KEPT]:
                    # a kill leaves none in part
                    shutil.rmtree(old if old.suffix == ".tmp" else old.rename(f"{old}.tmp"))

    def _lock(self) -> FileLock:
        self.folder.mkdir(parents=True, exist_ok=True)
        return FileLock(self.folder.with_suffix(".lock"))

    @contextmanager
    def _warned(self, done: str) -> Iterator[None]:
        """Warn where what is done within fails."""
        try:
            yield
        except (OSError, Damaged) as error:
            warnings.warn(f"a warm-up cannot be {done} in {self.folder}: {error}; the run trains "
                          "its own, and other losses theirs", stacklevel=3)


# All scores of a run's test split, kept for models that compare every pair: they took minutes, and
# an explorer or an ensemble would compute them again. They may be deleted; where they cannot be
# written, or are damaged, they are computed again. `evaluation.measures.all_scores` says which.
#
#     runs/scores/<id>/   test.safetensors  manifest.json

def keep_scores(result: RunResult, test: Evaluation | None) -> None:
    """Keep all scores of a run that ended, where its test gave them."""
    folder = _folder(result)
    try:
        if test is not None and test.scores:
            save_weights(folder / SCORES, test.scores)
            seal(folder, weights=_weights(result))
    except OSError as error:
        warnings.warn(f"the scores of run {result.id} cannot be kept in {folder}: {error}; what "
                      "needs them computes them again", stacklevel=2)


def kept_scores(result: RunResult) -> dict[str, Tensor]:
    """The scores kept of these weights, {} where there are none; damaged ones are set aside."""
    folder = _folder(result)
    if not (folder / SCORES).exists():
        return {}
    try:
        of = verify(folder, (SCORES,)).get("weights")
    except Damaged as error:
        set_aside(folder, f"scores of run {result.id}: {error}; they are computed again")
        return {}
    return load_weights(folder / SCORES) if of == _weights(result) else {}


def _folder(result: RunResult) -> Path:
    return result.folder.parent / "scores" / result.id


def _weights(result: RunResult) -> str:
    """Which weights made the scores: a run that is trained again may get others."""
    return atomic.sha256_file(result.folder / "weights.safetensors")
