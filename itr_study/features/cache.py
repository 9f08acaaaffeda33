"""Features on disk: computed once, checked by checksum, resumed after a kill at any moment."""

import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from itr_study.features.blocks import BlockFile
from itr_study.features.parallel import in_order
from itr_study.files.atomic import canonical_json, write_atomic
from itr_study.progress import progress

# Two rows closer than this were computed in the same arithmetic: rounding to the float16 that is
# stored moves a row by 2e-4, computing in float16 instead of float32 by 4e-3 to 1e-2.
SAME_ARITHMETIC = 1e-3

Compute = Callable[[int, int], np.ndarray]  # (first row, last row + 1) -> rows


@dataclass(frozen=True)
class CacheKey:
    """Everything that the numbers of a cache depend on: equal digests mean equal numbers.

    Rounding is the exception. Where an encoder asks for half precision, a CPU that has none
    computes in float32, so the arithmetic is part of the file's name. It is not part of the digest:
    run ids are made of digests, and an id must mean the same data on every machine.
    """

    dataset: str  # name, for people
    fingerprint: str  # of what is encoded
    encoder: str
    version: int
    settings: dict
    arithmetic: str = ""  # the dtype computed in, where that differs from machine to machine

    @property
    def digest(self) -> str:
        parts = [self.fingerprint, self.encoder, self.version, self.settings]
        return hashlib.sha256(canonical_json(parts).encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """What is done, for people: "encoding flickr8k with lite0 pooled flip"."""
        return " ".join([f"encoding {self.dataset} with", self.encoder, *self.chosen])

    @property
    def chosen(self) -> list[str]:
        """What of an encoder was asked for, in words."""
        return [self.settings[k] for k in ("kind", "views") if k in self.settings]

    @property
    def stem(self) -> str:
        """Name of the file: words for people, then the digest."""
        words = "-".join([self.dataset, self.encoder, *self.chosen])
        words = "".join(c if c.isalnum() else "-" for c in words)[-80:].strip("-")
        return "-".join(filter(None, [words, self.digest, self.arithmetic]))

    @property
    def about(self) -> dict:
        """What the sidecar of the file says of it."""
        return {name: value for name, value in vars(self).items() if name != "arithmetic"}


def cached(key: CacheKey, rows: int, compute: Compute, folder: Path, *,
           dtype: str = "float16", block: int | None = None, workers: int = 1) -> np.ndarray:
    """The rows of a cache as a read-only memory map; what is missing or damaged is computed.

    Args:    key: what the numbers depend on; rows: how many; compute: rows [start, stop) -> array
             (stop - start, ...), finite; block: rows a block; workers: threads that compute.
    Raises:  DataError for a wrong shape or NaN; OSError, clear, where the disk is full: blocks
             done so far stay done.
    """
    if rows < 1:
        raise ValueError(f"{key.encoder} has nothing to encode: {rows} rows")
    folder.mkdir(parents=True, exist_ok=True)
    path, about = folder / f"{key.stem}.npy", key.about | {"rows": rows,
                                                           "dtype": np.dtype(dtype).name}
    with sole_builder(path):
        if key.arithmetic and not path.exists():
            adopt(folder / f"{replace(key, arithmetic='').stem}.npy", path, about, compute)
        file = BlockFile(path, about)
        if file.is_new:  # the first row says how wide a row is
            file.create(np.asarray(compute(0, 1)), block)
        jobs = file.missing()
        with closing(in_order(lambda job: compute(*job), jobs, workers)) as results:
            shown = progress(results, key.label, len(jobs))
            for (start, stop), values in zip(jobs, shown, strict=True):
                file.write(start, stop, values)
        file.stamp()
        return file.map()


def adopt(old: Path, path: Path, about: dict, compute: Compute) -> None:
    """Take over a cache made when file names did not yet hold the arithmetic.

    It is taken over only if it is whole and was computed in today's arithmetic, which is checked
    on the first row of every block: different machines may have made different blocks. Any other
    cache is left as it is. The array moves last, so that a kill before that leaves the old cache
    in place, and one after it a cache that has been taken over.
    """
    if not old.is_file():
        return
    with sole_builder(old):
        if not old.is_file() or (file := BlockFile(old, about)).is_new:
            return
        if not computed_here(file, compute):
            return
        sidecars = [side for side in (file.sidecar, file.verified) if side.exists()]
        for side in sidecars:
            write_atomic(path.with_name(side.name.replace(old.stem, path.stem, 1)),
                         side.read_bytes())
        try:
            os.replace(old, path)
        except PermissionError:  # Windows, and another process reads it
            shutil.copyfile(old, path)
            return
        for side in sidecars:
            side.unlink()


def computed_here(file: BlockFile, compute: Compute) -> bool:
    """Whether the first row of every block is what is computed here, but for rounding."""
    rows = file.map()  # closed on return; rows of blocks that are not done are 0
    return all(distance(rows[i], compute(i, i + 1)[0]) < SAME_ARITHMETIC
               for i in range(0, len(rows), file.block))


def distance(kept: np.ndarray, computed: np.ndarray) -> float:
    """Distance of two rows, relative to the length of the second."""
    apart = np.linalg.norm(np.asarray(kept, np.float32) - computed)
    return float(apart / max(np.linalg.norm(computed), 1e-12))


@contextmanager
def sole_builder(path: Path) -> Iterator[None]:
    """One process builds, the others wait and then read; a killed builder leaves no lock."""
    lock = FileLock(f"{path}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print(f"{path.stem}: another process is computing these features; waiting for it",
              file=sys.stderr, flush=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
