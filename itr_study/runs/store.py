"""The run store: one folder a run, whole or not there, never a pickle.

    runs/<id>/  config.json  status.json  metrics.jsonl  checkpoints/ (while training)
                weights.safetensors  test.safetensors  ranks.npz  result.json  manifest.json
"""

import io
import json
import os
import platform
import shutil
import subprocess
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from filelock import FileLock
from torch import Tensor

import itr_study
from itr_study.arithmetic import instructions
from itr_study.evaluation.evaluate import Evaluation
from itr_study.files.atomic import read_json, write_atomic, write_json
from itr_study.files.paths import home, project_root
from itr_study.files.sealed import Damaged, load_weights, save_weights, seal, set_aside, verify
from itr_study.training.checkpoints import Checkpoints
from itr_study.training.state import History

STATES = ("queued", "running", "done", "diverged", "failed", "oom", "interrupted")
ENDED = ("done", "diverged")  # the numbers say it, a second try would say the same
STATUS = "status.json"


@dataclass(frozen=True)
class RunResult:
    """A run that ended: "done", or "diverged" with the reason and no tables.

    tables: split name -> metric -> percent (or rank); history: one dict per epoch; facts: device,
    minutes, versions, commit, and what identifies the data.
    """

    run: str
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

    def ranks(self) -> dict[str, np.ndarray]:
        """dev_i2t, dev_t2i, test_i2t, test_t2i: the rank of the best match of every query."""
        with np.load(self.folder / "ranks.npz", allow_pickle=False) as arrays:
            return dict(arrays)

    def embeddings(self) -> dict[str, Tensor]:
        """Codes of the test split, "images" and "texts" (float16), where they are plain tensors;
        {} else."""
        path = self.folder / "test.safetensors"
        return load_weights(path) if path.exists() else {}


class RunStore:
    """All runs under one folder, by default `runs` in the home.

    Two processes that want one run take its lock: one trains, the other waits and reads.
    """

    def __init__(self, folder: Path | str | None = None):
        self.folder = Path(folder) if folder is not None else home() / "runs"

    def path(self, run: str) -> Path:
        return self.folder / run

    def lock(self, run: str) -> FileLock:
        """Held while a run is trained or read; freed by the system when its holder dies."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return FileLock(self.folder / f"{run}.lock")

    def set_status(self, run: str, state: str, reason: str = "") -> None:
        write_json(self.path(run) / STATUS, {
            "state": state, "reason": reason, "pid": os.getpid(), "host": platform.node(),
            "time": time.strftime("%Y-%m-%dT%H:%M:%S%z")})

    def status(self, run: str) -> dict[str, Any] | None:
        """The last status written; "interrupted" where the process of a running one is gone."""
        path = self.path(run) / STATUS
        if not path.exists():
            return None
        try:
            status = read_json(path)
        except ValueError as error:
            set_aside(path, f"run {run}: {error}")
            return None
        gone = status["host"] == platform.node() and not psutil.pid_exists(status["pid"])
        if status["state"] == "running" and gone:
            return status | {"state": "interrupted", "reason": "its process is gone"}
        return status

    def result(self, run: str) -> RunResult | None:
        """A run that ended, every file verified; a damaged one is set aside. None: to be run."""
        folder = self.path(run)
        if not (folder / "manifest.json").exists():
            return None
        try:
            manifest = verify(folder)
            values = read_json(folder / "result.json")
        except Damaged as error:
            set_aside(folder, f"run {run}: {error}; it is trained again")
            return None
        facts = {k: v for k, v in manifest.items() if k != "files"}
        if (self.status(run) or {}).get("state") != values["status"]:  # killed before it was said
            clear_temporary(folder)
            self.set_status(run, values["status"], values["reason"])
        return RunResult(run, values["status"], values["reason"], folder,
                         read_json(folder / "config.json"), values["tables"],
                         History(values["history"], values["best_epoch"]), facts)

    def write_history(self, run: str, history: History) -> None:
        """One JSON line per epoch; written whole, so that a resumed run repeats no line."""
        lines = "".join(json.dumps(row, allow_nan=False) + "\n" for row in history.rows)
        write_atomic(self.path(run) / "metrics.jsonl", lines.encode())

    def sittings(self, run: str, here: dict[str, Any]) -> dict[str, Any]:
        """What a run is computed with, in this sitting and in those whose checkpoints it goes on
        from. Noted beside them: a sitting whose checkpoint is lost may count, none is left out.

        Args:    here: of this sitting, such as its instructions. Returns: the same, `together`.
        """
        checkpoints = Checkpoints(self.path(run) / "checkpoints")
        path, before = checkpoints.folder / "sittings.json", []
        if checkpoints.names():
            try:
                before = read_json(path)
            except (OSError, ValueError):  # of old, or damaged
                before = [{}]
        told = before if here in before else [*before, here]
        write_json(path, told)
        return together([*told, here])

    def finish(self, run: str, config: dict[str, Any], history: History, facts: dict[str, Any],
               evaluations: dict[str, Evaluation], weights: dict[str, Tensor] | None = None,
               status: str = "done", reason: str = "") -> RunResult:
        """Write what a run gave, seal it, and drop its checkpoints."""
        folder = self.path(run)
        self.write_history(run, history)
        write_json(folder / "config.json", config)
        write_json(folder / "result.json", {
            "status": status, "reason": reason, "history": history.rows,
            "best_epoch": history.best_epoch,
            "tables": {split: found.table for split, found in evaluations.items()}})
        if weights is not None:
            save_weights(folder / "weights.safetensors", weights)
            write_atomic(folder / "ranks.npz", packed_ranks(evaluations))
        test = evaluations.get("test")
        if test is not None and isinstance(test.images, Tensor) and isinstance(test.texts, Tensor):
            save_weights(folder / "test.safetensors",
                         {"images": test.images.half(), "texts": test.texts.half()})
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
        clear_temporary(folder)
        seal(folder, but=(STATUS,), **facts)
        self.set_status(run, status, reason)
        return self.result(run)


def together(told: list[Any]) -> Any:
    """What several sittings state as one: "amx + avx2", equal to neither, where they differ."""
    if isinstance(told[-1], dict):
        return {name: together([each.get(name, "unknown") if isinstance(each, dict) else each
                                for each in told]) for name in told[-1]}
    return " + ".join(dict.fromkeys(map(str, told)))


def clear_temporary(folder: Path) -> None:
    """Remove what a write that was killed has left."""
    for left in folder.glob(".*.tmp"):
        left.unlink(missing_ok=True)


def packed_ranks(evaluations: dict[str, Evaluation]) -> bytes:
    """Ranks of every split as a small npz: int32, compressed, the same bytes every time."""
    arrays = {f"{split}_{direction}": np.asarray(ranks, np.int32)
              for split, found in evaluations.items() if split != "train"
              for direction, ranks in (("i2t", found.ranks.i2t), ("t2i", found.ranks.t2i))}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def machine_facts(device: torch.device) -> dict[str, Any]:
    """Versions, device and its instructions: recorded, never part of an id."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {"device": f"{device.type} {name}", "instructions": instructions(),
            "software": {"python": platform.python_version(), "torch": torch.__version__,
                         "numpy": np.__version__, "itr_study": itr_study.__version__}}


@cache
def git_commit() -> str:
    """The commit of the source, "+" where files differ from it; "" outside a repository."""
    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", str(project_root()), *arguments], check=True,
                              capture_output=True, text=True, timeout=20).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "itr_study")
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return ""
