"""The run store: one folder a run, whole or not there, never a pickle.

    runs/<id>/  config.json  status.json  metrics.jsonl  checkpoints/ (while training)
                weights.safetensors  test.safetensors  ranks.npz  result.json  manifest.json
    runs/.new/<id>/, runs/.old/<id>/    on their way in and out, see `RunStore.finish`
    runs/warmups/, runs/scores/         see `warmups` and `scores`
"""

import io
import json
import os
import platform
import shutil
import sys
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping
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
from itr_study.files.atomic import (
    canonical_json,
    read_json,
    replace,
    sha256_file,
    sync_folder,
    write_atomic,
    write_json,
)
from itr_study.files.paths import home
from itr_study.files.sealed import Damaged, load_weights, save_weights, seal, set_aside, verify
from itr_study.lab.runs.identity import CHANGED, Run, digest, hash_run, part_versions
from itr_study.training.checkpoints import Checkpoints, load, position
from itr_study.training.state import History, under

STATES = ("queued", "running", "done", "diverged", "failed", "oom", "interrupted")
ENDED = ("done", "diverged")  # final: a second try would give the same
STATUS = "status.json"


@dataclass(frozen=True)
class RunResult:
    """A run that ended: "done", or "diverged" with the reason and no tables. A done one has a
    reason where there is one to doubt it (`History.doubt`).

    tables: split name -> metric -> percent (or rank); history: one dict per epoch; facts: device,
    minutes, versions, commit, and what identifies the data.
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
        """The weights of the best epoch, for `model.load_state_dict`."""
        return load_weights(self.folder / "weights.safetensors")

    def arrays(self) -> dict[str, np.ndarray]:
        """dev_i2t, dev_t2i, test_i2t, test_t2i: the rank of the best match of every query; also
        what is kept of the scores of test, such as test_judged_expert (`evaluation.measures`)."""
        with np.load(self.folder / "ranks.npz", allow_pickle=False) as arrays:
            return dict(arrays)

    def embeddings(self) -> dict[str, Tensor]:
        """Codes of the test split, "images" and "texts" (float16), where they are plain tensors;
        {} else."""
        path = self.folder / "test.safetensors"
        return load_weights(path) if path.exists() else {}


class Status(BaseModel):
    """What status.json holds: state, reason, and the process that wrote it."""

    state: Literal[STATES]
    reason: str
    pid: int = Field(ge=0, lt=2**31)
    host: str
    time: str


def read_result(folder: Path) -> RunResult:
    """The result in the folder of a run that ended. Raises: Damaged."""
    manifest = verify(folder, ("config.json", "result.json"))
    facts = {k: v for k, v in manifest.items() if k != "files"}
    try:
        values = read_json(folder / "result.json")
        return RunResult(folder.name, values["status"], values["reason"], folder,
                         read_json(folder / "config.json"), values["tables"],
                         History(values["history"], values["best_epoch"]), facts)
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{folder / 'result.json'} is no result ({error!r})") from error


class RunStore:
    """All runs under one folder, by default `runs` in the home.

    Two processes that want one run take its lock: one trains, the other waits and reads.
    """

    def __init__(self, folder: Path | str | None = None):
        self.folder = Path(folder) if folder is not None else home() / "runs"

    def path(self, run_id: str) -> Path:
        """The folder of a run."""
        return self.folder / run_id

    @contextmanager
    def lock(self, run_id: str) -> Iterator[None]:
        """Held while a run is trained or read; freed by the system when its holder dies. Who has
        to wait is told for whom, on stderr."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / f"{run_id}.lock", is_singleton=True)  # reentrant
        try:
            lock.acquire(timeout=0)
        except Timeout:
            holder = self.status(run_id) or {"pid": "unknown", "host": "unknown"}
            print(f"run {run_id}: waiting for process {holder['pid']} on {holder['host']}, which "
                  "is training it", file=sys.stderr, flush=True)
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def set_status(self, run_id: str, state: str, reason: str = "") -> None:
        """Write the state of a run, one of STATES, and the reason unless it is done."""
        write_json(self.path(run_id) / STATUS, {
            "state": state, "reason": reason, "pid": os.getpid(), "host": platform.node(),
            "time": time.strftime("%Y-%m-%dT%H:%M:%S%z")})

    def status(self, run_id: str) -> dict[str, Any] | None:
        """The last status written; "interrupted" where the process of a running one is gone."""
        path = self.path(run_id) / STATUS
        if not path.exists():
            return None
        try:
            status = Status.model_validate(read_json(path)).model_dump()
        except ValueError as error:
            reason = f"{path} holds no status" if isinstance(error, ValidationError) else error
            set_aside(path, f"run {run_id}: {reason}")
            return None
        gone = status["host"] == platform.node() and not psutil.pid_exists(status["pid"])
        if status["state"] == "running" and gone:
            return status | {"state": "interrupted", "reason": "its process is gone"}
        return status

    def result(self, run_id: str) -> RunResult | None:
        """The result of a run that ended, every file verified, else None: it is to be trained. A
        damaged folder is set aside, but not while another process holds the lock and changes it."""
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
        if (self.status(run_id) or {}).get("state") != result.status:  # killed before writing it
            clear_temporary(folder)
            self.set_status(run_id, result.status, result.reason)
        return result

    def write_history(self, run_id: str, history: History, folder: Path | None = None) -> None:
        """One JSON line per epoch, into the run's folder or another; written whole, so that a
        resumed run repeats no line."""
        lines = "".join(json.dumps(row, allow_nan=False) + "\n" for row in history.rows)
        write_atomic((folder or self.path(run_id)) / "metrics.jsonl", lines.encode())

    def finish(self, run_id: str, config: dict[str, Any], history: History, facts: dict[str, Any],
               evaluations: dict[str, Evaluation], weights: dict[str, Tensor] | None = None,
               status: str = "done", reason: str = "") -> RunResult:
        """Write the files of a run that ended into a folder beside it, seal that, and put it in its
        place: until then what was there, checkpoints or an older result, stays as it is."""
        folder, reason = self._made(run_id), reason or history.doubt()
        shutil.rmtree(folder, ignore_errors=True)
        self.write_history(run_id, history, folder)
        write_json(folder / "config.json", config)
        write_json(folder / "result.json", {
            "status": status, "reason": reason, "history": history.rows,
            "best_epoch": history.best_epoch,
            "tables": {split: evaluation.table for split, evaluation in evaluations.items()}})
        if weights is not None:
            save_weights(folder / "weights.safetensors", weights)
            write_atomic(folder / "ranks.npz", packed_arrays(evaluations))
        test = evaluations.get("test")
        if test is not None and isinstance(test.images, Tensor) and isinstance(test.texts, Tensor):
            save_weights(folder / "test.safetensors",
                         {"images": test.images.half(), "texts": test.texts.half()})
        seal(folder, but=(STATUS,), **facts)
        self._move_in(run_id)
        self.set_status(run_id, status, reason)
        return self.result(run_id)

    def _made(self, run_id: str) -> Path:
        """Where `finish` makes the folder of a run."""
        return self.folder / ".new" / run_id

    def _move_in(self, run_id: str) -> None:
        """Put what `finish` sealed, if anything, in its place; `result` ends what a kill left."""
        folder, made, old = self.path(run_id), self._made(run_id), self.folder / ".old" / run_id
        if not (made / "manifest.json").exists():
            return
        shutil.rmtree(old, ignore_errors=True)
        old.parent.mkdir(exist_ok=True)
        if folder.exists():
            replace(folder, old)
        replace(made, folder)
        sync_folder(self.folder)
        shutil.rmtree(old, ignore_errors=True)


def clear_temporary(folder: Path) -> None:
    """Remove the temporary files of writes that were killed."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


def packed_arrays(evaluations: dict[str, Evaluation]) -> bytes:
    """Ranks of every split and what is kept of its scores as a small npz: compressed, the same
    bytes every time."""
    arrays = {}
    for split, evaluation in evaluations.items():
        if split != "train":
            arrays |= {f"{split}_i2t": np.asarray(evaluation.ranks.i2t, np.int32),
                       f"{split}_t2i": np.asarray(evaluation.ranks.t2i, np.int32)}
            arrays |= {f"{split}_{name}": array for name, array in evaluation.kept.items()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


# Warm-ups that runs share: losses are compared after the same first epochs, trained once.
#
#     runs/warmups/<key>/<epoch>-<step>/      a checkpoint, as a run's own
#
# Runs that differ in nothing but their objective have the same warm-up, bit by bit, where the same
# code trains them on the same machine. It is kept where it ends, and the next of them goes on from
# there. What is kept is a saving alone: where it cannot be written or read, a run trains its own.

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


# All scores of a run's test split, kept for models that compare every pair anew.
#
#     runs/scores/<id>/   test.safetensors  manifest.json
#
# They took minutes; an explorer or an ensemble would compute them again. What is kept is a saving
# alone: it may be deleted, and where it cannot be written, or is damaged, scores are computed
# again. A run has them if it was trained where this module was; `evaluation.measures.all_scores`
# says which.

SCORES = "test.safetensors"


def keep_scores(result: RunResult, test: Evaluation | None) -> RunResult:
    """Keep all scores of a run that ended, where its test gave them; the result, as it is."""
    folder = _folder(result)
    try:
        if test is not None and test.scores:
            save_weights(folder / SCORES, test.scores)
            seal(folder, weights=_weights(result))
    except OSError as error:
        warnings.warn(f"the scores of run {result.id} cannot be kept in {folder}: {error}; what "
                      "needs them computes them again", stacklevel=2)
    return result


def kept_scores(result: RunResult) -> dict[str, Tensor]:
    """What `keep_scores` kept of these weights, {} where nothing is. Damaged scores are set aside.
    """
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
    return sha256_file(result.folder / "weights.safetensors")
