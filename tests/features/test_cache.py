"""The cache: killed, damaged, full disk, two processes; nothing is lost, nothing wrong is kept."""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from itr_study.data.base import DataError
from itr_study.features.cache import BlockFile, CacheKey, cached
from tests.posix import posix_only
from tests.windows import as_on_windows, needs_maps

KEY = CacheKey("fake", "f" * 64, "tiny", 1, {"kind": "pooled", "views": "one"})
ROWS, BLOCK = 20, 3


class Source:
    """Rows that can be told apart, and a note of which were asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, start, stop):
        self.asked += range(start, stop)
        return np.arange(start, stop)[:, None] + np.array([[0, 0.25, 0.5]])

    @property
    def expected(self):
        return np.float16(np.arange(ROWS)[:, None] + np.array([[0, 0.25, 0.5]]))


def build(folder, source, **arguments):
    return cached(KEY, ROWS, source, folder, **({"block": BLOCK} | arguments))


def path_in(folder):
    return folder / f"{KEY.stem}.npy"


@pytest.mark.parametrize("workers", [1, 3])
def test_values_dtype_and_plain_npy(tmp_path, workers):
    source = Source()
    rows = build(tmp_path, source, workers=workers)
    assert rows.dtype == np.float16 and isinstance(rows, np.memmap)
    np.testing.assert_array_equal(rows, source.expected)
    np.testing.assert_array_equal(np.load(path_in(tmp_path)), source.expected)
    with pytest.raises(ValueError, match="read-only"):
        rows[0] = 1


def test_a_finished_cache_computes_nothing(tmp_path):
    build(tmp_path, Source())
    source = Source()
    np.testing.assert_array_equal(build(tmp_path, source), source.expected)
    assert source.asked == []


def test_only_unfinished_blocks_are_computed_after_a_failure(tmp_path):
    source = Source()

    def fails_in_block_4(start, stop):
        if start == 4 * BLOCK:
            raise RuntimeError("stopped here")
        return source(start, stop)

    with pytest.raises(RuntimeError, match="stopped here"):
        build(tmp_path, fails_in_block_4)
    source.asked.clear()
    np.testing.assert_array_equal(build(tmp_path, source), source.expected)
    assert source.asked == list(range(4 * BLOCK, ROWS))


def test_after_a_failure_nothing_goes_on_in_the_background(tmp_path, monkeypatch):
    threads, running = torch.get_num_threads(), threading.active_count()
    monkeypatch.setattr(BlockFile, "write", lambda *a: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full") as caught:
        build(tmp_path, Source(), workers=2)
    assert threading.active_count() == running and torch.get_num_threads() == threads
    assert caught.tb  # the traceback, and so every frame, is still held


def test_a_file_that_is_gone_is_said_to_be_missing(tmp_path, capsys):
    build(tmp_path, Source())
    path_in(tmp_path).unlink()
    source = Source()
    np.testing.assert_array_equal(build(tmp_path, source), source.expected)
    assert ".npy: missing, computing those blocks again" in capsys.readouterr().err


@pytest.mark.parametrize("at", [0, 3 * BLOCK, ROWS - 1])
def test_a_flipped_byte_costs_one_block(tmp_path, capsys, at):
    build(tmp_path, Source())
    flip_byte(path_in(tmp_path), -(ROWS - at) * 3 * 2)
    source = Source()
    np.testing.assert_array_equal(build(tmp_path, source), source.expected)
    block = at // BLOCK
    assert source.asked == list(range(block * BLOCK, min((block + 1) * BLOCK, ROWS)))
    assert "damaged (1 of 7 blocks" in capsys.readouterr().err
    source.asked.clear()
    build(tmp_path, source)
    assert source.asked == []  # and it is well again


def test_bytes_that_rot_are_found(tmp_path, capsys):
    """A rotten disk changes neither size nor time of a file."""
    build(tmp_path, Source())
    path = path_in(tmp_path)
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    source = Source()
    np.testing.assert_array_equal(build(tmp_path, source), source.expected)
    assert source.asked == [18, 19] and "differ from their checksum" in capsys.readouterr().err


def test_a_damaged_header_costs_no_block(tmp_path):
    build(tmp_path, Source())
    flip_byte(path_in(tmp_path), 20)
    source = Source()
    np.testing.assert_array_equal(build(tmp_path, source), source.expected)
    assert source.asked == []
    np.testing.assert_array_equal(np.load(path_in(tmp_path)), source.expected)


def test_a_truncated_file_keeps_its_sound_blocks(tmp_path):
    build(tmp_path, Source())
    path = path_in(tmp_path)
    os.truncate(path, path.stat().st_size - 10 * 6)  # the last ten rows
    source = Source()
    np.testing.assert_array_equal(build(tmp_path, source), source.expected)
    assert source.asked == list(range(9, ROWS))


@pytest.mark.parametrize("spoil", [lambda p: flip_byte(p, 40), lambda p: p.write_text("{"),
                                   lambda p: p.write_text("[]"), lambda p: p.unlink(),
                                   lambda p: p.write_text(p.read_text().replace(
                                       '"block": 3', '"block": 4'))])
def test_a_damaged_sidecar_means_computing_again(tmp_path, spoil):
    build(tmp_path, Source())
    spoil(path_in(tmp_path).with_suffix(".json"))
    source = Source()
    np.testing.assert_array_equal(build(tmp_path, source), source.expected)
    assert set(source.asked) == set(range(ROWS))


@needs_maps
@pytest.mark.parametrize("spoil", ["block", "header", "end", "sidecar"])
def test_a_damaged_array_in_use_is_mended_where_it_is(tmp_path, monkeypatch, capsys, spoil):
    """Windows does not let a file be replaced that somebody has mapped, as the rows of before."""
    rows, path = build(tmp_path, Source()), path_in(tmp_path)
    if spoil == "sidecar":
        path.with_suffix(".json").write_text("{")
    elif spoil == "end":  # a file with more behind its last row
        with open(path, "ab") as file:
            file.write(b"more")
    else:
        flip_byte(path, 20 if spoil == "header" else -6)
    refused = as_on_windows(monkeypatch)
    source = Source()
    again = build(tmp_path, source)
    assert not refused and "damaged" in capsys.readouterr().err
    np.testing.assert_array_equal(again, source.expected)
    np.testing.assert_array_equal(rows, source.expected)  # who has it sees it mended
    np.testing.assert_array_equal(np.load(path), source.expected)
    asked = {"sidecar": set(range(ROWS)), "block": set(range(18, ROWS))}
    assert set(source.asked) == asked.get(spoil, set())
    assert not list(tmp_path.glob("*.tmp"))
    del rows, again
    source.asked.clear()
    build(tmp_path, source)
    assert source.asked == []


def test_a_deleted_array_is_computed_again(tmp_path):
    build(tmp_path, Source())
    path_in(tmp_path).unlink()
    source = Source()
    np.testing.assert_array_equal(build(tmp_path, source), source.expected)


@pytest.mark.parametrize("spoil, message", [
    (lambda rows: rows[:, :2], r"should be \(3, 3\), the encoder gave \(3, 2\)"),
    (lambda rows: rows[:-1], "the encoder gave"),
    (lambda rows: np.where(rows == 7.25, np.nan, rows), "row 7 holds NaN"),
    (lambda rows: np.where(rows == 7.25, 1e6, rows), "too large for float16"),
])
def test_wrong_rows_are_refused_and_earlier_blocks_kept(tmp_path, spoil, message):
    source = Source()
    with pytest.raises(DataError, match=message), np.errstate(over="ignore"):
        build(tmp_path, lambda start, stop: spoil(source(start, stop)) if start == 6
              else source(start, stop))
    source.asked.clear()
    np.testing.assert_array_equal(build(tmp_path, source), source.expected)
    assert source.asked == list(range(6, ROWS))


@posix_only
def test_a_full_disk_is_a_clear_error_and_loses_nothing(tmp_path):
    """A real one: the system refuses to let a file grow past a limit."""
    resource = pytest.importorskip("resource")
    def wide(start, stop):
        return np.ones((stop - start, 4000))  # 8,000 bytes a row

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(OSError, match="cannot write features.*free some space"):
            cached(KEY, ROWS, wide, tmp_path, block=BLOCK)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert not list(tmp_path.glob("*.tmp"))
    assert (cached(KEY, ROWS, wide, tmp_path, block=BLOCK) == 1).all()


def test_a_block_whose_write_fails_is_not_done(tmp_path, monkeypatch):
    source, flushes = Source(), []

    def full(file):
        flushes.append(file.name)
        if len(flushes) == 4:  # one for the empty file, then block by block: the third block
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("itr_study.features.cache._flush", full)
    with pytest.raises(OSError, match="cannot write features.*No space left.*are kept") as caught:
        build(tmp_path, source)
    assert caught.value.filename == str(path_in(tmp_path))
    source.asked.clear()
    np.testing.assert_array_equal(build(tmp_path, source), source.expected)
    assert source.asked == list(range(2 * BLOCK, ROWS))


SLOW = """
import sys, time, numpy as np
from pathlib import Path
from itr_study.features.cache import CacheKey, cached
def slow(start, stop):
    print("asked", start, stop, flush=True)
    time.sleep(0.05)
    while Path(sys.argv[1], "hold").exists():
        time.sleep(0.01)
    return np.arange(start, stop)[:, None] + np.array([[0, 0.25, 0.5]])
key = CacheKey("fake", "f" * 64, "tiny", 1, {"kind": "pooled", "views": "one"})
rows = cached(key, 20, slow, Path(sys.argv[1]), block=3)
print("sum", float(rows.sum(dtype=float)))
"""


def slow_build(folder):
    return subprocess.Popen([sys.executable, "-c", SLOW, str(folder)], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("asked, seconds", [
    *(pytest.param(*each, marks=pytest.mark.slow) for each in ((1, 0), (2, 0.03), (4, 0.01))),
    (7, 0.02)])
def test_killed_at_any_moment_it_goes_on(tmp_path, asked, seconds):
    process = slow_build(tmp_path)
    for _ in range(asked):  # the first row, then blocks
        process.stdout.readline()
    time.sleep(seconds)
    process.kill()
    process.communicate()
    source = Source()
    np.testing.assert_array_equal(build(tmp_path, source), source.expected)
    fresh = Source()
    build(tmp_path / "other", fresh)
    assert path_in(tmp_path).read_bytes() == path_in(tmp_path / "other").read_bytes()
    if asked == 7:  # when the sixth block begins, the first two are on the disk
        assert min(source.asked, default=ROWS) >= 2 * BLOCK


@pytest.mark.slow
@posix_only
def test_of_two_processes_one_builds_and_the_other_reads(tmp_path):
    hold = tmp_path / "hold"
    hold.touch()
    first = slow_build(tmp_path)
    assert first.stdout.readline().startswith("asked")  # it has the lock, and is held up
    second = slow_build(tmp_path)
    try:
        ready, _, _ = select.select([second.stdout, second.stderr], [], [], 60)
        assert ready == [second.stderr]
        assert "another process is computing" in second.stderr.readline()
        hold.unlink()
        outputs = [process.communicate(timeout=60)[0] for process in (first, second)]
    finally:
        first.kill()
        second.kill()
    expected = f"sum {Source().expected.sum(dtype=float)}"
    assert all(expected in output for output in outputs) and "asked" not in outputs[1]


def test_a_cache_is_spoken_of_in_words():
    assert KEY.label == "encoding fake with tiny pooled one"


def test_keys_differ_where_anything_differs():
    changes = [{"fingerprint": "x"}, {"encoder": "x"}, {"version": 2}, {"settings": {}}]
    digests = {CacheKey(**(vars(KEY) | change)).digest for change in [{}, *changes]}
    assert len(digests) == 5


HALF = replace(KEY, arithmetic="float16")
OTHER = replace(KEY, arithmetic="float32")


def test_the_arithmetic_names_the_file_and_no_id():
    assert HALF.digest == KEY.digest and HALF.about == KEY.about
    assert HALF.stem == f"{KEY.stem}-float16" != OTHER.stem


def test_each_arithmetic_has_a_file_of_its_own(tmp_path):
    """One folder on a network disk, two machines."""
    half = cached(HALF, ROWS, Source(), tmp_path, block=BLOCK)
    full = cached(OTHER, ROWS, lambda *span: Source()(*span) * 1.01, tmp_path, block=BLOCK)
    np.testing.assert_array_equal(half, Source().expected)
    assert not np.array_equal(full, half)


def flip_byte(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset, 2 if offset < 0 else 0)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 0xFF]))
