"""Weights go round whole, and a pickle is never opened."""

import os
import pickle
import zipfile

import pytest
import torch

from itr_study.files.sealed import load_weights, save_weights

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(3)}


class Exploit:
    def __reduce__(self):
        return (os.mkdir, ("exploited",))


def pickles(folder):
    (folder / "weights.safetensors").write_bytes(pickle.dumps(Exploit()))
    (folder / "weights.pt").write_bytes(b"anything")
    with zipfile.ZipFile(folder / "zipped.safetensors", "w") as file:
        file.writestr("archive/data.pkl", pickle.dumps(Exploit()))
    return sorted(folder.iterdir())


def test_a_pickle_is_refused_and_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = pickles(tmp_path)
    assert len(files) == 3
    for path in files:
        with pytest.raises(ValueError, match="looks like a pickle.*Give a .safetensors file"):
            load_weights(path)
    assert not (tmp_path / "exploited").exists()


def test_weights_go_round_and_a_truncated_file_is_named(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_weights(path, TENSORS)
    assert torch.equal(load_weights(path)["a"], TENSORS["a"])
    os.truncate(path, 20)
    with pytest.raises(ValueError, match="not a whole safetensors file"):
        load_weights(path)
