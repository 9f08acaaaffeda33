import errno
import os

import pytest

from itr_study.files import atomic
from itr_study.files.atomic import canonical_json, read_json, sha256_file, write_atomic, write_json


def test_write_replaces_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "new" / "file.bin"
    write_atomic(path, b"old")
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(path.parent) == ["file.bin"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_keeps_the_old_file_and_says_what_is_needed(tmp_path, monkeypatch, step):
    path = tmp_path / "file.bin"
    write_atomic(path, b"old")

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic.os, step, full)
    with pytest.raises(OSError, match=r"cannot write 3 bytes: No space left.*file\.bin") as caught:
        write_atomic(path, b"new")
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file.bin"]


def test_a_file_that_is_being_read_is_replaced_a_little_later(tmp_path, monkeypatch):
    """Windows refuses to replace a file that is open: the worker's history, which a sweep looks
    at."""
    path, real, calls = tmp_path / "file.bin", os.replace, []

    def busy(source, target):
        calls.append(target)
        if len(calls) < 4:
            raise PermissionError(13, "in use", str(target))
        real(source, target)

    monkeypatch.setattr(atomic.os, "replace", busy)
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new" and len(calls) == 4
    monkeypatch.setattr(atomic, "PATIENCE", 0.1)
    monkeypatch.setattr(atomic.os, "replace", lambda *_: (_ for _ in ()).throw(
        PermissionError(13, "in use", "it")))
    with pytest.raises(OSError, match="cannot write 4 bytes: in use"):
        write_atomic(path, b"more")
    assert path.read_bytes() == b"new" and os.listdir(tmp_path) == ["file.bin"]


def test_sha256_is_the_known_one(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")
    assert sha256_file(tmp_path / "abc") == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")


def test_canonical_json_is_one_text_per_value():
    assert canonical_json({"b": 1, "a": (2.5, None)}) == canonical_json({"a": [2.5, None], "b": 1})
    assert canonical_json({"a": 1}) != canonical_json({"a": 1.5})
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": float("nan")})


def test_json_goes_round_and_a_broken_file_is_named(tmp_path):
    write_json(tmp_path / "a.json", {"x": [1, 2.5, "ä"]})
    assert read_json(tmp_path / "a.json") == {"x": [1, 2.5, "ä"]}
    (tmp_path / "b.json").write_text('{"x": 1')
    with pytest.raises(ValueError, match=r"b\.json is not valid JSON"):
        read_json(tmp_path / "b.json")
    with pytest.raises(ValueError):
        write_json(tmp_path / "a.json", float("inf"))
    assert read_json(tmp_path / "a.json") == {"x": [1, 2.5, "ä"]}
