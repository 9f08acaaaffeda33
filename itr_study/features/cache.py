"""Features on disk: computed once, checked by checksum, resumed after a kill at any moment."""

import hashlib
import io
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from filelock import FileLock, Timeout

from itr_study.data.base import DataError
from itr_study.files.atomic import canonical_json, read_json, write_json
from itr_study.progress import progress

BLOCK_BYTES = 1 << 23  # about 8 MB: a kill loses little, the flushes cost little
BLOCK_ROWS = 1024
Compute = Callable[[int, int], np.ndarray]  # (first row, last row + 1) -> rows
Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class CacheKey:
    """Everything that the numbers of a cache depend on: equal digests mean equal numbers.

    Rounding is the exception: a CPU without half precision computes in float32. So the arithmetic
    is part of the file's name, not of the digest: run ids are made of it, on every machine.
    """

    dataset: str  # name, for people
    fingerprint: str  # of what is encoded
    encoder: str
    version: int
    settings: dict
    arithmetic: str = ""  # the dtype computed in, where that differs from machine to machine

    @property
    def digest(self) -> str:
        """16 hex digits."""
        return _sha256([self.fingerprint, self.encoder, self.version, self.settings])[:16]

    @property
    def chosen(self) -> list[str]:
        """What of an encoder was asked for, in words."""
        return [self.settings[k] for k in ("kind", "views") if k in self.settings]

    @property
    def label(self) -> str:
        """What is done, for people: "encoding flickr8k with lite0 pooled flip"."""
        return " ".join([f"encoding {self.dataset} with", self.encoder, *self.chosen])

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
    """Map the rows of a cache, read-only; what is missing or damaged is computed.

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
    """Let one process build; others wait and then read; a killed builder leaves no lock."""
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


class BlockFile:
    """An `.npy` file whose rows are written, checked and counted as done in blocks.

    Its JSON sidecar has the sha256 of each block whose bytes are on the disk. They are not written
    through a memory map, which on a full disk kills the process without a word. Opening hashes what
    is there, about a second a GB; what is damaged is written again in place: others may have mapped
    it. Used under the cache's lock only.

    Args:    path: of the `.npy` file; about: what the numbers are, with `rows` and `dtype`.
    """

    def __init__(self, path: Path, about: dict) -> None:
        self.path, self.sidecar = path, path.with_suffix(".json")
        self.about, self.rows, self.dtype = about, about["rows"], np.dtype(about["dtype"])
        self.row_shape: tuple[int, ...] = ()
        self.block, self.hashes = 0, []  # rows a block; sha256 of each block, "" = not done
        self.is_new = not self._read_sidecar()
        if not self.is_new:
            self._mend()

    def create(self, first: np.ndarray, block: int | None = None) -> None:
        """Begin an empty cache whose rows are shaped like the first one, (1, ...)."""
        self.row_shape = first.shape[1:]
        self.block = block or max(1, min(BLOCK_ROWS, BLOCK_BYTES // max(self._row_bytes(), 1)))
        self.hashes = [""] * -(-self.rows // self.block)
        self._format()
        self.is_new = False

    def missing(self) -> list[tuple[int, int]]:
        """List (first row, last row + 1) of each block that is not done."""
        return [self._span(i) for i, digest in enumerate(self.hashes) if not digest]

    def write(self, start: int, stop: int, values: np.ndarray) -> None:
        """Put a block on the disk, and only then count it as done."""
        data = self._checked(start, stop, np.asarray(values)).tobytes()
        with self._writing(self._offset(start)) as file:
            file.write(data)
        self.hashes[start // self.block] = hashlib.sha256(data).hexdigest()
        self._save()

    def map(self) -> np.ndarray:
        """Map the whole array, read-only, without reading it."""
        return np.memmap(self.path, self.dtype, "r", self._offset(0), (self.rows, *self.row_shape))

    def _read_sidecar(self) -> bool:
        """Take what the sidecar says; False where there is none, or a damaged one."""
        if not self.sidecar.is_file():
            return False
        try:
            content = read_json(self.sidecar)
            body = content["body"]
            sound = content["check"] == _sha256(body) and body["about"] == self.about
        except (ValueError, KeyError, TypeError):  # not JSON, or not ours
            sound = False
        if sound:
            self.row_shape, self.block = tuple(body["row_shape"]), body["block"]
            self.hashes = body["sha256"]
        else:
            print(f"{self.sidecar}: damaged; its features are computed again", file=sys.stderr,
                  flush=True)
        return sound

    def _mend(self) -> None:
        """Hash what is counted as done; put header and size right where they are not."""
        there, header = self.path.is_file(), self._header()
        spans = [tuple(map(self._offset, self._span(i))) for i in range(len(self.hashes))]
        bad = [i for i, digest in enumerate(self.hashes) if digest
               and digest != hashlib.sha256(self._bytes(*spans[i])).hexdigest()]
        size = self.path.stat().st_size if there else 0
        if bad or size != self._offset(self.rows) or self._bytes(0, len(header)) != header:
            what = (f"damaged ({len(bad)} of {len(self.hashes)} blocks differ from their checksum)"
                    if there else "missing")
            print(f"{self.path}: {what}, computing those blocks again", file=sys.stderr, flush=True)
            self.hashes = ["" if i in bad else digest for i, digest in enumerate(self.hashes)]
            self._format()

    def _format(self) -> None:
        """Give the file its header and size; what is in between stays."""
        with self._writing(0) as file:
            file.write(self._header())
            file.truncate(self._offset(self.rows))
        self._save()

    @contextmanager
    def _writing(self, offset: int) -> Iterator[io.BufferedRandom]:
        """The file, to be written from a place on; flushed to the disk at the end."""
        try:
            self.path.touch()
            with open(self.path, "r+b") as file:
                file.seek(offset)
                yield file
                _flush(file)
        except OSError as error:
            size = self._offset(self.rows) / 1e6
            raise OSError(error.errno, f"cannot write features ({size:,.0f} MB in all): "
                          f"{error.strerror or error}; free some space or choose another "
                          "ITR_STUDY_HOME; blocks done so far are kept", str(self.path)) from error

    def _checked(self, start: int, stop: int, values: np.ndarray) -> np.ndarray:
        """The rows in the cache's dtype; DataError where the shape is wrong or a value infinite."""
        expected = (stop - start, *self.row_shape)
        if values.shape != expected:
            raise DataError(f"{self.path.stem}: rows {start} to {stop - 1} should be {expected}, "
                            f"the encoder gave {values.shape}")
        stored = np.ascontiguousarray(values, self.dtype)
        if not np.isfinite(stored).all():
            row = start + int(np.argmin(np.isfinite(stored).reshape(len(stored), -1).all(axis=1)))
            raise DataError(f"{self.path.stem}: row {row} holds NaN or values too large for "
                            f"{self.dtype}; is its picture or text broken?")
        return stored

    def _save(self) -> None:
        body = {"about": self.about, "row_shape": list(self.row_shape), "block": self.block,
                "sha256": self.hashes}
        write_json(self.sidecar, {"body": body, "check": _sha256(body)})

    def _header(self) -> bytes:
        about = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False,
                 "shape": (self.rows, *self.row_shape)}
        buffer = io.BytesIO()
        np.lib.format.write_array_header_1_0(buffer, about)
        return buffer.getvalue()

    def _row_bytes(self) -> int:
        return int(np.prod(self.row_shape)) * self.dtype.itemsize

    def _offset(self, row: int) -> int:
        return len(self._header()) + row * self._row_bytes()

    def _span(self, i: int) -> tuple[int, int]:
        return i * self.block, min((i + 1) * self.block, self.rows)

    def _bytes(self, start: int, stop: int) -> bytes:
        """Bytes of the file; none where there is no file."""
        if not self.path.is_file():
            return b""
        with open(self.path, "rb") as file:
            file.seek(start)
            return file.read(stop - start)


def _sha256(value: dict | list) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _flush(file: io.BufferedRandom) -> None:
    file.flush()
    os.fsync(file.fileno())


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(function: Callable[[Job], Result], jobs: Iterable[Job],
             workers: int) -> Iterator[Result]:
    """Yield function(job) for each job, in order, with at most 2 * workers results waiting.

    Each worker is one thread of torch, so that results do not depend on the number of workers.
    When the consumer stops or a job fails, jobs not begun are dropped.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
    waiting: deque = deque()
    try:
        for job in jobs:
            waiting.append(pool.submit(function, job))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)
