"""Checkpoints that are whole or absent: checksummed folders, never a pickle.

A saved folder holds `state.safetensors`, `state.json` and `manifest.json` (sha256 per file). It is
written under a temporary name, flushed and renamed, so a kill at any point leaves the last one.
"""

import errno
import json
import os
import re
import shutil
import uuid
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from itr_study.files.atomic import read_json, sync_folder
from itr_study.files.sealed import Damaged, read_tensors, seal, set_aside, verify

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
        code = error.errno if isinstance(error, OSError) else system_code(error)
        raise OSError(code, f"cannot save {needed:,} bytes: {error}; free some "
                      "space or choose another ITR_STUDY_HOME", str(folder)) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    sync_folder(folder.parent)


def system_code(error: SafetensorError) -> int:
    """Return the number of the system's error, which safetensors gives as "(os error 28)"."""
    code = re.search(r"os error (\d+)", str(error))
    return int(code[1]) if code else errno.EIO


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
