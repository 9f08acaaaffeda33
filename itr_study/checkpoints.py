"""Checkpoints that are whole or absent: checksummed folders, never a pickle.

A saved folder holds `state.safetensors`, `state.json` and `manifest.json` (sha256 per file). It is
written under a temporary name, flushed and renamed, so a kill at any point leaves the last one.
"""

import errno
import json
import os
import shutil
import uuid
import warnings
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from safetensors.torch import save as to_bytes
from torch import Tensor

from itr_study.atomic import read_json, sha256_file, sync_folder, write_atomic, write_json

MANIFEST = "manifest.json"
KEEP = 2
PICKLE_SUFFIXES = {".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".joblib"}


class Damaged(ValueError):
    """A saved file is not what was saved: a checksum, a file or the manifest is wrong."""


def seal(folder: Path, but: tuple[str, ...] = (), **facts: Any) -> None:
    """Write the folder's manifest: sha256 of every file in it, and the facts given.

    Args:    but: names of files that may change later, left out.
    """
    left_out = (MANIFEST, *but)
    files = {path.relative_to(folder).as_posix(): sha256_file(path)
             for path in sorted(folder.rglob("*"))
             if path.is_file() and path.name not in left_out and not path.name.startswith(".")}
    write_json(folder / MANIFEST, {"files": files, **facts})


def verify(folder: Path) -> dict[str, Any]:
    """The folder's manifest, once every file in it has its checksum; else Damaged."""
    try:
        manifest = read_json(folder / MANIFEST)
        for name, digest in manifest["files"].items():
            if sha256_file(folder / name) != digest:
                raise Damaged(f"{folder / name} is damaged: its checksum is not the saved one")
    except FileNotFoundError as error:
        raise Damaged(f"{error.filename} is missing") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(str(error)) from error
    return manifest


def set_aside(path: Path, reason: str) -> Path:
    """Rename a damaged file or folder to `<name>.corrupt` and say so with a warning."""
    target = path.with_name(f"{path.name}.corrupt")
    while target.exists():
        target = path.with_name(f"{path.name}.{uuid.uuid4().hex[:6]}.corrupt")
    os.replace(path, target)
    warnings.warn(f"{reason}; set aside as {target.name}", stacklevel=2)
    return target


def save(folder: Path, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Save tensors and JSON values as one folder, all or nothing.

    Raises:  OSError naming the folder and the bytes needed; nothing of the attempt is left.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.tmp")
    needed = sum(t.numel() * t.element_size() for t in tensors.values())
    try:
        temporary.mkdir()
        save_file({k: t.detach().cpu().clone().contiguous() for k, t in tensors.items()},
                  temporary / "state.safetensors")
        (temporary / "state.json").write_text(json.dumps(state, allow_nan=False))
        for name in ("state.safetensors", "state.json"):
            with open(temporary / name, "rb") as file:
                os.fsync(file.fileno())
        seal(temporary)
        os.rename(temporary, folder)
    except (OSError, SafetensorError) as error:
        code = error.errno if isinstance(error, OSError) else errno.EIO
        raise OSError(code, f"cannot save {needed:,} bytes: {error}; free some "
                      "space or choose another ITR_STUDY_HOME", str(folder)) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    sync_folder(folder.parent)


def load(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and values of a saved folder, verified. Raises: Damaged."""
    verify(folder)
    return load_file(folder / "state.safetensors"), read_json(folder / "state.json")


class Checkpoints:
    """The checkpoints of one training: the last two whole ones are kept.

    Args:    folder: created when first saved to; names sort by age ("0003-000120").
    """

    def __init__(self, folder: Path):
        self.folder = Path(folder)

    def names(self) -> list[str]:
        """Oldest first; temporary and set-aside folders do not count."""
        found = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted(p.name for p in found
                      if p.is_dir() and not p.name.startswith(".") and p.suffix != ".corrupt")

    def save(self, name: str, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Save one, unless it is there (training is deterministic), and remove older ones."""
        if name not in self.names():
            save(self.folder / name, tensors, state)
        for old in self.names()[:-KEEP]:
            shutil.rmtree(self.folder / old)
        for left in self.folder.glob(".*.tmp"):  # of a save that was killed
            shutil.rmtree(left, ignore_errors=True)

    def latest(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The newest whole one; damaged ones are set aside with a warning. None: start anew."""
        for name in reversed(self.names()):
            try:
                return load(self.folder / name)
            except Damaged as error:
                set_aside(self.folder / name, f"{error}; the checkpoint before it is used")
        return None


def refuse_pickle(path: Path) -> None:
    """Raise ValueError for a file that only unpickling could read: that runs code it contains."""
    with open(path, "rb") as file:
        head = file.read(9)
    # safetensors begins with the length of its header, which may be a pickle's first bytes, then {
    pickled = head[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05") and head[8:] != b"{"
    if path.suffix in PICKLE_SUFFIXES or pickled or head[:4] == b"PK\x03\x04":
        raise ValueError(f"{path} looks like a pickle (torch.save); it is not opened, because "
                         "unpickling runs code from the file. Give a .safetensors file: "
                         "safetensors.torch.save_file(model.state_dict(), 'weights.safetensors')")


def load_weights(path: Path | str) -> dict[str, Tensor]:
    """Weights from a safetensors file, for `model.load_state_dict`.

    Raises:  ValueError for a pickle, and for a file that is not safetensors.
    """
    path = Path(path)
    refuse_pickle(path)
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is not a whole safetensors file ({error}); save or copy "
                         "it again") from error


def save_weights(path: Path, weights: dict[str, Tensor]) -> None:
    """Write weights as safetensors, atomically."""
    write_atomic(path, to_bytes({k: t.detach().cpu().contiguous() for k, t in weights.items()}))
