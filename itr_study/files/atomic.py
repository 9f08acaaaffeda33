"""Write files that are either old or new, never half: written apart, flushed, then renamed."""

import hashlib
import json
import os
import time
import uuid
from pathlib import Path
from typing import Any

from filelock import FileLock

from itr_study.files.paths import home

PATIENCE, PAUSE = 2.0, 0.02  # seconds: for a file that somebody reads, and between attempts


def write_atomic(path: Path | str, data: bytes) -> None:
    """Replace the file by `data`; after a kill or an error at any point the old file is intact.

    Raises:  OSError naming the path and the size needed (full disk, no permission); the
             temporary file is removed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        replace(temporary, path)
    except OSError as error:
        raise OSError(error.errno, f"cannot write {len(data):,} bytes: {error.strerror or error}; "
                      "free some space or choose another ITR_STUDY_HOME", str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def replace(source: Path | str, target: Path | str) -> None:
    """Replace a file, for a while again where it is refused: on Windows while anybody reads it.

    Raises:  PermissionError after PATIENCE seconds.
    """
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return os.replace(source, target)
        except PermissionError:
            if time.monotonic() > end:
                raise
            time.sleep(PAUSE)


def sync_folder(folder: Path | str) -> None:
    """Flush a folder's entries, so that a rename survives a power cut; not a thing on Windows."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_file(path: Path | str) -> str:
    """Hash a file, read in blocks."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def canonical_json(value: Any) -> str:
    """Write a value as one text: sorted keys, no spaces; equal values have equal texts.

    Raises:  ValueError for NaN or infinity, TypeError for what JSON cannot hold.

    Example:
        >>> canonical_json({"b": 1, "a": (2.5, None)})
        '{"a":[2.5,null],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False,
                      ensure_ascii=True)


def read_json(path: Path | str) -> Any:
    """Read the value in a JSON file; ValueError naming the file where it is not JSON."""
    text = Path(path).read_text(encoding="utf-8")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not valid JSON ({error}); delete it to have it "
                         "made again") from error


def write_json(path: Path | str, value: Any) -> None:
    """Write a value as readable JSON, atomically; NaN and infinity are refused."""
    text = json.dumps(value, indent=1, sort_keys=True, allow_nan=False)
    write_atomic(path, (text + "\n").encode())


def folder_lock(folder: Path) -> FileLock:
    """Make the lock of a folder that git keeps; it lies in the home, so that git never sees it."""
    name = hashlib.sha256(str(Path(folder).resolve()).encode()).hexdigest()[:16]
    (home() / "locks").mkdir(parents=True, exist_ok=True)
    return FileLock(home() / "locks" / f"{name}.lock")
