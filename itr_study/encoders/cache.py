"""Features on disk: computed once, checked by checksum, resumed after a kill at any moment."""

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from itr_study.atomic import canonical_json
from itr_study.encoders.blocks import BlockFile
from itr_study.encoders.parallel import in_order
from itr_study.progress import progress

Compute = Callable[[int, int], np.ndarray]  # (first row, last row + 1) -> rows


@dataclass(frozen=True)
class CacheKey:
    """Everything the numbers depend on. Two caches with equal digests hold equal numbers."""

    dataset: str  # name, for people
    fingerprint: str  # of the data
    encoder: str
    version: int
    settings: dict

    @property
    def digest(self) -> str:
        parts = [self.fingerprint, self.encoder, self.version, self.settings]
        return hashlib.sha256(canonical_json(parts).encode()).hexdigest()[:16]

    @property
    def stem(self) -> str:
        """Name of the file: words for people, then the digest."""
        chosen = [self.settings[k] for k in ("kind", "views") if k in self.settings]
        words = "-".join([self.dataset, self.encoder, *chosen])
        words = "".join(c if c.isalnum() else "-" for c in words)[-80:].strip("-")
        return f"{words}-{self.digest}"


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
    path = folder / f"{key.stem}.npy"
    with sole_builder(path):
        file = BlockFile(path, vars(key) | {"rows": rows, "dtype": np.dtype(dtype).name})
        if file.is_new:  # the first row says how wide a row is
            file.create(np.asarray(compute(0, 1)), block)
        jobs = file.missing()
        with closing(in_order(lambda job: compute(*job), jobs, workers)) as results:
            shown = progress(results, path.stem, len(jobs))
            for (start, stop), values in zip(jobs, shown, strict=True):
                file.write(start, stop, values)
        file.stamp()
        return file.map()


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
