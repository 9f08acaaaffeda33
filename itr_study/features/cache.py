"""Features on disk: computed once, checked by checksum, resumed after a kill at any moment."""

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from itr_study.features.blocks import BlockFile
from itr_study.features.parallel import in_order
from itr_study.files.atomic import canonical_json
from itr_study.progress import progress

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
    path = folder / f"{key.stem}.npy"
    with sole_builder(path):
        file = BlockFile(path, key.about | {"rows": rows, "dtype": np.dtype(dtype).name})
        if file.is_new:  # the first row says how wide a row is
            file.create(np.asarray(compute(0, 1)), block)
        jobs = file.missing()
        with closing(in_order(lambda job: compute(*job), jobs, workers)) as results:
            shown = progress(results, key.label, len(jobs))
            for (start, stop), values in zip(jobs, shown, strict=True):
                file.write(start, stop, values)
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
