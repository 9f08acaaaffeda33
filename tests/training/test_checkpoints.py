import errno
import json
import os
import stat

import numpy as np
import pytest
import torch
from safetensors import SafetensorError

from itr_study.files.atomic import read_json
from itr_study.files.sealed import Damaged, load_weights, save_weights, seal
from itr_study.training.loop import fit
from itr_study.training.settings import Settings
from itr_study.training.state import Checkpoints, load, save
from tests.posix import posix_only
from tests.small import SmallData, SmallLoss, small_model
from tests.windows import mapped, needs_maps

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(3)}


def test_tensors_and_values_go_round(tmp_path):
    save(tmp_path / "one", TENSORS, {"epoch": 3, "rate": 0.1})
    tensors, values = load(tmp_path / "one")
    assert values == {"epoch": 3, "rate": 0.1}
    assert all(torch.equal(tensors[k], TENSORS[k]) for k in TENSORS)
    assert sorted(os.listdir(tmp_path / "one")) == ["manifest.json", "state.json",
                                                    "state.safetensors"]


@needs_maps
def test_what_was_loaded_holds_no_file(tmp_path):
    """The best weights of a resumed training live on, and Windows deletes no file that is held."""
    save(tmp_path / "a", TENSORS, {})
    save_weights(tmp_path / "w.safetensors", TENSORS)
    loaded = load(tmp_path / "a")[0], load_weights(tmp_path / "w.safetensors")
    assert all(torch.equal(tensors["a"], TENSORS["a"]) for tensors in loaded)
    assert not mapped(tmp_path / "a" / "state.safetensors")
    assert not mapped(tmp_path / "w.safetensors")


def test_the_last_two_are_kept_and_left_overs_removed(tmp_path):
    (tmp_path / ".0000-0000.abc.tmp").mkdir()
    kept = Checkpoints(tmp_path)
    for step in range(5):
        kept.save(f"0000-{step:04d}", TENSORS, {"step": step})
    assert sorted(os.listdir(tmp_path)) == ["0000-0003", "0000-0004"]
    assert kept.latest()[1] == {"step": 4}


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES = {
    "flipped byte": lambda folder: flip(folder / "state.safetensors"),
    "flipped value": lambda folder: flip(folder / "state.json"),
    "truncated": lambda folder: os.truncate(folder / "state.safetensors", 40),
    "empty": lambda folder: os.truncate(folder / "state.safetensors", 0),
    "missing": lambda folder: (folder / "state.json").unlink(),
    "no manifest": lambda folder: (folder / "manifest.json").unlink(),
    "broken manifest": lambda folder: (folder / "manifest.json").write_text('{"files": ['),
    "odd manifest": lambda folder: (folder / "manifest.json").write_text("[]"),
    "empty manifest": lambda folder: (folder / "manifest.json").write_text('{"files": {}}'),
    "folder": lambda folder: (folder / "manifest.json").write_text(
        '{"files": {".": "", "state.safetensors": "", "state.json": ""}}'),
    "sealed without tensors": lambda folder: (os.truncate(folder / "state.safetensors", 0),
                                              seal(folder)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_one_is_set_aside_and_the_one_before_used(tmp_path, damage):
    kept = Checkpoints(tmp_path)
    for step in range(2):
        kept.save(f"0000-{step:04d}", TENSORS, {"step": step})
    DAMAGES[damage](tmp_path / "0000-0001")
    with pytest.raises(Damaged):
        load(tmp_path / "0000-0001")
    with pytest.warns(UserWarning, match="the checkpoint before it is used; set aside as"):
        assert kept.latest()[1] == {"step": 0}
    assert sorted(os.listdir(tmp_path)) == ["0000-0000", "0000-0001.corrupt"]
    kept.save("0000-0001", TENSORS, {"step": 1})
    assert kept.latest()[1] == {"step": 1}


def test_training_goes_on_from_the_one_before(tmp_path):
    settings = Settings(epochs=2, batch_size=8)
    whole, again = small_model(), small_model()
    fit(whole, SmallLoss(), SmallData(), settings, folder=tmp_path, save_seconds=0)
    newest = sorted(tmp_path.iterdir())[-1]
    flip(newest / "state.safetensors")
    with pytest.warns(UserWarning, match="damaged"):
        fit(again, SmallLoss(), SmallData(), settings, folder=tmp_path)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, again.state_dict()[name])


def test_weights_whose_header_is_as_long_as_a_pickle_begins_are_read(tmp_path):
    """The file begins with the length of its header: 1,152 bytes are 80 04, a pickle's first."""
    path, lengths = tmp_path / "weights.safetensors", set()
    for letters in range(1000, 1200):
        weights = {"w" * letters: torch.ones(2)}
        save_weights(path, weights)
        lengths.add(path.read_bytes()[:2])
        assert load_weights(path).keys() == weights.keys()
    assert b"\x80\x04" in lengths


def test_a_full_disk_keeps_the_old_checkpoint(tmp_path, monkeypatch):
    save(tmp_path / "one", TENSORS, {"step": 1})

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="cannot save 32 bytes: .*No space left.*two"):
        save(tmp_path / "two", TENSORS, {"step": 2})
    assert os.listdir(tmp_path) == ["one"]


def test_a_full_disk_is_called_so_by_its_number(tmp_path, monkeypatch):
    """safetensors gives the system's error in words only."""
    def full(*arguments):
        raise SafetensorError("Error while serializing: I/O error: No space left on device "
                              "(os error 28)")

    monkeypatch.setattr("itr_study.training.state.save_file", full)
    with pytest.raises(OSError, match="No space left") as caught:
        save(tmp_path / "one", TENSORS, {})
    assert caught.value.errno == errno.ENOSPC


@posix_only
def test_what_is_flushed_was_opened_for_writing(tmp_path, monkeypatch):
    """Windows refuses to flush a file that was opened for reading."""
    import fcntl

    real = os.fsync

    def as_windows(descriptor):
        mode = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
        if mode == os.O_RDONLY and not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, "Bad file descriptor")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", as_windows)
    save(tmp_path / "one", TENSORS, {"step": 1})
    assert load(tmp_path / "one")[1] == {"step": 1}


def test_a_file_where_a_checkpoint_should_be_is_set_aside(tmp_path):
    (tmp_path / "0000-0001").write_text("not a folder")
    with pytest.warns(UserWarning, match="should be a folder; set aside as"):
        Checkpoints(tmp_path).save("0000-0001", TENSORS, {"step": 1})
    assert Checkpoints(tmp_path).latest()[1] == {"step": 1}


def test_what_is_saved_is_json_and_arrays_only(tmp_path):
    fit(small_model(), SmallLoss(), SmallData(), Settings(epochs=1, batch_size=8), folder=tmp_path)
    (folder,) = tmp_path.iterdir()
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors"}
    assert json.dumps(read_json(folder / "state.json"))
    with open(folder / "state.safetensors", "rb") as file:
        assert int.from_bytes(file.read(8), "little") < 1e6
    assert np.isfinite(read_json(folder / "state.json")["rows"][0]["loss"])
