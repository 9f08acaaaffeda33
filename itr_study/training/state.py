"""The state of a training: everything that a checkpoint must hold for an exact resume.

A checkpoint is whole or absent: a folder with `state.safetensors`, `state.json` and `manifest.json`
(sha256 per file), never a pickle. It is written under a temporary name, flushed and renamed, so a
kill at any point leaves the last one.
"""

import errno
import json
import math
import os
import re
import shutil
import time
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from itr_study.checks import check_choice
from itr_study.files.atomic import read_json, sync_folder
from itr_study.files.sealed import Damaged, read_tensors, seal, set_aside, verify
from itr_study.models.base import device_of
from itr_study.training.collapse import EqualScores, collapse, flattened
from itr_study.training.interrupts import Interrupted, StopFlag
from itr_study.training.settings import Settings, learning_rate

KEEP = 2
FILES = ("state.safetensors", "state.json")


def position(epoch: int, step: int) -> str:
    """Return the name of a checkpoint with so many epochs, and steps of the next one, done."""
    return f"{epoch:05d}-{step:08d}"


def save(folder: Path, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Save tensors and JSON values as one folder, all or nothing.

    Raises OSError naming the folder and the bytes needed; nothing of the attempt is left.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.tmp")
    needed = sum(t.numel() * t.element_size() for t in tensors.values())
    try:
        temporary.mkdir()
        save_file({k: t.detach().cpu().clone().contiguous() for k, t in tensors.items()},
                  temporary / "state.safetensors")
        text = json.dumps(state, allow_nan=False)
        (temporary / "state.json").write_text(text, encoding="utf-8")
        for name in FILES:
            with open(temporary / name, "r+b") as file:  # Windows flushes only what is writable
                os.fsync(file.fileno())
        seal(temporary)
        os.rename(temporary, folder)
    except (OSError, SafetensorError) as error:
        told = re.search(r"os error (\d+)", str(error))  # as safetensors says it
        code = getattr(error, "errno", None) or (int(told[1]) if told else errno.EIO)
        raise OSError(code, f"cannot save {needed:,} bytes: {error}; free some "
                      "space or choose another ITR_STUDY_HOME", str(folder)) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    sync_folder(folder.parent)


def load(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return tensors and values of a saved folder, verified; raise Damaged."""
    verify(folder, FILES)
    try:
        return read_tensors(folder / "state.safetensors"), read_json(folder / "state.json")
    except (SafetensorError, ValueError) as error:
        raise Damaged(f"{folder} cannot be read: {error}") from error


class Checkpoints:
    """The checkpoints of one training: the last two whole ones are kept.

    The folder is created when first saved to; names sort by age ("0003-000120").
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    def names(self) -> list[str]:
        """Return names, oldest first; temporary and set-aside folders do not count."""
        paths = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted(p.name for p in paths
                      if p.is_dir() and not p.name.startswith(".") and p.suffix != ".corrupt")

    def save(self, name: str, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Save one, unless it is there (training is deterministic), and remove older ones."""
        if (self.folder / name).is_file():
            set_aside(self.folder / name, f"{self.folder / name} should be a folder")
        if name not in self.names():
            save(self.folder / name, tensors, state)
        for old in self.names()[:-KEEP]:
            shutil.rmtree(self.folder / old)
        for left in self.folder.glob(".*.tmp"):  # of a save that was killed
            shutil.rmtree(left, ignore_errors=True)

    def latest(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Return the newest whole one, or None; damaged ones are set aside with a warning."""
        for name in reversed(self.names()):
            try:
                return load(self.folder / name)
            except Damaged as error:
                set_aside(self.folder / name, f"{error}; the checkpoint before it is used")
        return None


class TaughtNothing(UserWarning):
    """A training ended well, and there is a reason to doubt its result: `History.doubt`."""


@dataclass
class History:
    """One dict per finished epoch, and the best epoch.

    A row has epoch (from 1), mean loss and diagnostics, score_std (the spread of the scores of a
    batch; first_score_std: of the first batch), learning_rate, seconds, and dev_<metric>.
    equal_scores: of the objective, with which `collapse` compares the loss.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    best_epoch: int = 0  # from 1; 0 = no epoch yet
    equal_scores: EqualScores | None = None

    def table(self) -> pd.DataFrame:
        """Return the rows as a table."""
        return pd.DataFrame(self.rows)

    def out_of_patience(self, settings: Settings) -> bool:
        """Whether `patience` epochs have passed without a better one, after the warm-up."""
        return (settings.patience is not None and len(self.rows) > settings.warmup_epochs
                and len(self.rows) - self.best_epoch >= settings.patience)

    def note(self) -> str:
        """Return the last epoch in a few words; empty before its end."""
        return epoch_note(self.rows[-1]) if self.rows else ""

    def doubt(self) -> str:
        """Return why the training taught nothing, or less than it seems, if so; else empty."""
        if self.rows and all(row.get("loss") == 0 for row in self.rows):
            return ("the loss was 0 in every step, so nothing was learnt: the batches hold no "
                    "negatives, or the margin is met from the start")
        epochs = self.table()
        return collapse(epochs, self.equal_scores) or flattened(epochs, self.equal_scores)

    def add(self, row: dict[str, Any], select: str, warmup: int) -> bool:
        """Append an epoch; True if it is the best so far (the first of equals stays).

        The first after the warm-up always is: weights before it tell nothing about the objective.
        """
        self.rows.append(row)
        better = select == "last" or not self.best_epoch or len(self.rows) == warmup + 1 or (
            row[f"dev_{select}"] > self.rows[self.best_epoch - 1][f"dev_{select}"])
        self.best_epoch = len(self.rows) if better else self.best_epoch
        return better


def epoch_note(row: dict[str, Any]) -> str:
    """Return an epoch of a history in a few words.

    Example:
        >>> epoch_note({"epoch": 2, "loss": 0.4123, "dev_rsum": 285.06})
        'loss 0.412, dev RSUM 285.1'
    """
    parts = ("loss", row.get("loss"), 3), ("dev RSUM", row.get("dev_rsum"), 1)
    return ", ".join(f"{name} {value:.{digits}f}" for name, value, digits in parts
                     if value is not None)


class TrainingState:
    """Position, model, optimiser, random state, history and best weights, saved and restored."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, settings: Settings,
                 seed: int, data_key: str, folder: Path | str | None, save_seconds: float) -> None:
        self.model, self.optimizer, self.settings = model, optimizer, settings
        self.identity: dict[str, Any] = {"settings": settings.model_dump(mode="json"),
                                         "seed": seed, "data": data_key}
        self.checkpoints = Checkpoints(Path(folder)) if folder is not None else None
        self.save_seconds, self.saved_at = save_seconds, time.monotonic()
        self.epoch, self.step = 0, 0  # the position: first epoch and step still to do
        self.sums: dict[str, float] = {}  # over the steps of this epoch
        self.first_std = math.nan  # score_std of its first step
        self.seconds, self.since = 0.0, time.monotonic()  # of this epoch, over all sittings
        self.history, self.best = History(), dict[str, Tensor]()
        # Weights after the epochs before this one, as many as a mean with its own needs.
        self.earlier: deque[dict[str, Tensor]] = deque(maxlen=settings.average - 1)

    def end_step(self, numbers: dict[str, float]) -> None:
        """Count a step and add up its numbers."""
        if self.step == 0:
            self.first_std = numbers["score_std"]
        for name, value in numbers.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        self.step += 1

    def end_epoch(self, table: dict[str, float]) -> None:
        """Write the epoch into the history and keep its weights if they are the best."""
        rate = learning_rate(self.settings, self.epoch, self.step - 1, self.step)
        means = {name: total / self.step for name, total in self.sums.items()}
        row = {"epoch": self.epoch + 1, **means, "first_score_std": self.first_std,
               "learning_rate": rate, "seconds": round(self._clock(), 3),
               **{f"dev_{k}": v for k, v in table.items()}}
        check_choice("select", self.settings.select, (*table, "last"))
        finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v
                  for k, v in row.items()}
        if self.history.add(finite, self.settings.select, self.settings.warmup_epochs):
            self.best = copied(self.model)
        self.epoch, self.step, self.sums, self.seconds = self.epoch + 1, 0, {}, 0.0

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Give the model, at the end of an epoch, the mean of its weights and of earlier epochs'.

        The training goes on from its own.
        """
        own = copied(self.model)
        self.model.load_state_dict(mean_weights([*self.earlier, own]))
        try:
            yield
        finally:
            self.model.load_state_dict(own)
        self.earlier.append(own)

    def save_if_due(self, stop: StopFlag) -> None:
        """Save after `save_seconds`; when asked to stop, save and raise Interrupted."""
        if stop or time.monotonic() - self.saved_at >= self.save_seconds:
            self.save()
        if stop:
            kept = "" if self.checkpoints is None else "; start again to go on from here"
            raise Interrupted(f"stopped in epoch {self.epoch + 1} after {self.step} steps{kept}")

    def finish(self) -> None:
        """Save the end, and give the model the weights of its best epoch."""
        self.save()
        self.model.load_state_dict(self.best)

    def save(self) -> None:
        """Save a checkpoint, if there is a folder."""
        self.saved_at = time.monotonic()
        if self.checkpoints is None:
            return
        device = device_of(self.model)
        tensors = {f"model.{k}": v for k, v in self.model.state_dict().items()}
        tensors |= {f"best.{k}": v for k, v in self.best.items()}
        tensors |= {f"earlier.{n}.{k}": v for n, weights in enumerate(self.earlier)
                    for k, v in weights.items()}
        tensors["random.cpu"] = torch.get_rng_state()
        if device.type != "cpu":
            tensors[f"random.{device.type}"] = torch.get_device_module(device).get_rng_state(device)
        # float64 tensors, not JSON: a diagnostic may be NaN, and sums must come back bit-equal
        tensors["sums"] = torch.tensor(list(self.sums.values()), dtype=torch.float64)
        tensors["first_std"] = torch.tensor(self.first_std, dtype=torch.float64)
        slots, numbers = {}, []
        for index, memory in self.optimizer.state_dict()["state"].items():
            for slot, value in memory.items():
                if isinstance(value, Tensor):
                    slots[f"optimizer.{index}.{slot}"] = value
                else:
                    numbers.append([index, slot, value])
        self.checkpoints.save(position(self.epoch, self.step), tensors | slots, {
            "identity": self.identity, "epoch": self.epoch, "step": self.step,
            "sums": list(self.sums), "seconds": self._clock(), "optimizer": numbers,
            "rows": self.history.rows, "best_epoch": self.history.best_epoch})

    def restore(self) -> None:
        """Go on from the newest whole checkpoint; ValueError if it is of another training."""
        if self.checkpoints is None or (newest := self.checkpoints.latest()) is None:
            return
        tensors, values = newest
        self._refuse_other(values["identity"], self.checkpoints.folder)
        self.epoch, self.step, self.seconds = (values[k] for k in ("epoch", "step", "seconds"))
        self.history = History(values["rows"], values["best_epoch"])
        self.sums = dict(zip(values["sums"], tensors["sums"].tolist(), strict=True))
        if "first_std" in tensors:  # not in checkpoints of an older version
            self.first_std = tensors["first_std"].item()
        self.best = under(tensors, "best.")
        device = device_of(self.model)
        for n in range(min(self.epoch, self.settings.average - 1)):  # of a mean with those here
            earlier = under(tensors, f"earlier.{n}.")
            self.earlier.append({name: tensor.to(device) for name, tensor in earlier.items()})
        self.model.load_state_dict(under(tensors, "model."))
        restore_optimizer(self.optimizer, under(tensors, "optimizer."), values["optimizer"])
        torch.set_rng_state(tensors["random.cpu"])
        if device.type != "cpu" and f"random.{device.type}" in tensors:
            torch.get_device_module(device).set_rng_state(tensors[f"random.{device.type}"], device)
        self.since = time.monotonic()

    def _refuse_other(self, saved: dict[str, Any], folder: Path) -> None:
        ours = self.identity | self.identity["settings"]
        unnamed = Settings().model_dump(mode="json")  # what an older version did not have
        theirs = saved | unnamed | saved["settings"]
        changed = [f"{k} was {theirs[k]!r}, is {ours[k]!r}" for k in ours
                   if k != "settings" and ours[k] != theirs.get(k)]
        if changed:
            raise ValueError(f"{folder} holds a checkpoint of another training: "
                             f"{'; '.join(changed)}. Choose another folder or delete it")

    def _clock(self) -> float:
        now = time.monotonic()
        self.seconds, self.since = self.seconds + now - self.since, now
        return self.seconds


def copied(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights and buffers of a model as they are now."""
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def mean_weights(states: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of each weight and buffer over the states, oldest first.

    Of whole numbers, such as a count of steps, the last one.
    """
    return {name: torch.stack([state[name] for state in states]).mean(dim=0)
            if last.is_floating_point() else last for name, last in states[-1].items()}


def under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names begin with the prefix, without it."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor],
                      numbers: list[list]) -> None:
    """Give an optimiser its memory back; rates are set at every step anyway."""
    state: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        index, _, slot = name.partition(".")
        state.setdefault(int(index), {})[slot] = value
    for index, slot, value in numbers:
        state.setdefault(index, {})[slot] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
