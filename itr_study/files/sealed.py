"""Folders that know the checksum of every file in them, and weights that are never a pickle."""

import uuid
import warnings
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor

from itr_study.files.atomic import read_json, replace, sha256_file, write_atomic, write_json

MANIFEST = "manifest.json"
PICKLE_SUFFIXES = {".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".joblib"}


class Damaged(ValueError):
    """A saved file is not what was saved: a checksum, a file or the manifest is wrong."""


def seal(folder: Path, but: tuple[str, ...] = (), **facts: Any) -> None:
    """Write the folder's manifest: sha256 of every file in it `but` these, and the facts given."""
    left_out = (MANIFEST, *but)
    files = {path.relative_to(folder).as_posix(): sha256_file(path)
             for path in sorted(folder.rglob("*"))
             if path.is_file() and path.name not in left_out and not path.name.startswith(".")}
    write_json(folder / MANIFEST, {"files": files, **facts})


def verify(folder: Path, needed: tuple[str, ...] = ()) -> dict[str, Any]:
    """Read the folder's manifest once all files, and those needed, are as it says; else Damaged."""
    try:
        manifest = read_json(folder / MANIFEST)
        if absent := [name for name in needed if name not in manifest["files"]]:
            raise Damaged(f"{folder / MANIFEST} does not name {', '.join(absent)}")
        for name, digest in manifest["files"].items():
            if sha256_file(folder / name) != digest:
                raise Damaged(f"{folder / name} is damaged: its checksum is not the saved one")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise Damaged(f"{error.filename} is missing, or no file") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(str(error)) from error
    return manifest


def set_aside(path: Path, reason: str) -> Path:
    """Rename a damaged file or folder to `<name>.corrupt` and say so with a warning."""
    target = path.with_name(f"{path.name}.corrupt")
    while target.exists():
        target = path.with_name(f"{path.name}.{uuid.uuid4().hex[:6]}.corrupt")
    replace(path, target)
    warnings.warn(f"{reason}; set aside as {target.name}", stacklevel=2)
    return target


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


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file, whole; SafetensorError where it is none.

    Tensors that stay on the disk would hold the file, which Windows then neither replaces nor
    deletes.
    """
    return from_bytes(path.read_bytes())


def load_weights(path: Path | str) -> dict[str, Tensor]:
    """Load weights from a safetensors file, for `model.load_state_dict`.

    Raises:  ValueError for a pickle, and for a file that is not safetensors.
    """
    path = Path(path)
    refuse_pickle(path)
    try:
        return read_tensors(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is not a whole safetensors file ({error}); save or copy "
                         "it again") from error


def save_weights(path: Path, weights: dict[str, Tensor]) -> None:
    """Write weights as safetensors, atomically."""
    write_atomic(path, to_bytes({k: t.detach().cpu().contiguous() for k, t in weights.items()}))
