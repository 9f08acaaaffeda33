"""Files of bottom-up attention, written in the layout of published features."""

import base64
import sys

import numpy as np
import pytest

from itr_study.data import load_dataset
from itr_study.data.base import DataError
from tests.data import tiny
from tools import regions

IDS = [str(1000 + number) for number in range(5)]  # train, train, restval, val, test


def found(number, count=3):
    """Regions (count, 4) and boxes of an image of 20 x 10."""
    ims = np.random.default_rng(number).standard_normal((count, 4)).astype(np.float32)
    return ims, np.tile(np.array([[0, 0, 5, 10]], np.float32), (count, 1))


def as_tsv(path, ids, count=lambda number: 3):
    def line(image):
        ims, boxes = found(int(image), count(int(image)))
        coded = [base64.b64encode(array.tobytes()).decode() for array in (boxes, ims)]
        return "\t".join([image, "20", "10", str(len(ims)), *coded]) + "\n"

    path.write_text("".join(map(line, ids)))
    return path


def as_npz(folder, ids):
    folder.mkdir()
    for image in ids:
        ims, boxes = found(int(image))
        np.savez(folder / f"{image}.npz", x=ims, bbox=boxes, image_w=20, image_h=10)
    return folder


@pytest.mark.parametrize("kind", ["tsv", "npz"])
def test_what_is_written_is_read_as_published_features(kind, tmp_path, monkeypatch, capsys):
    folder = tiny.karpathy(tmp_path)
    files = [as_npz(tmp_path / "npz", IDS)] if kind == "npz" else [
        as_tsv(tmp_path / "a.tsv", IDS[3:]), as_tsv(tmp_path / "b.tsv", [*IDS[2::-1], "7"])]
    monkeypatch.setattr(sys, "argv", ["regions", "coco", "--data", str(tmp_path),
                                      *map(str, files)])
    regions.main()
    assert "train: 3 images in" in capsys.readouterr().out
    data = load_dataset("coco", tmp_path, features="precomputed", cache=tmp_path / "checks")
    pictures = load_dataset("coco", tmp_path, cache=tmp_path / "checks")
    for name, split in data.splits.items():
        assert split.image_ids == pictures.splits[name].image_ids
        assert split.texts == pictures.splits[name].texts
        given = data.features["given"](split)
        np.testing.assert_array_equal(given.features, [found(int(i))[0] for i in split.image_ids])
        assert (data.places(split) == [0, 0, 0.25, 1]).all()
    assert not [*folder.glob(".*")]


@pytest.mark.parametrize("ids, count, told", [
    (IDS[:4], lambda number: 3, "1 images of coco are in none of these files, such as 1004"),
    (IDS, lambda number: 3 + number % 2, r"image 1001 has regions of \(4, 4\)")])
def test_nothing_is_left_half_written(ids, count, told, tmp_path):
    folder = tiny.karpathy(tmp_path)
    before = sorted(folder.iterdir())
    with pytest.raises(DataError, match=told):
        regions.convert("coco", folder, [as_tsv(tmp_path / "a.tsv", ids, count)])
    assert sorted(folder.iterdir()) == before


def test_a_line_or_an_archive_of_another_kind_is_named(tmp_path):
    (tmp_path / "a.tsv").write_text("1\t20\t10\t3\tAAAA\n")
    with pytest.raises(DataError, match="a.tsv:1 is no line of bottom-up attention"):
        list(regions.read(tmp_path / "a.tsv"))
    np.savez(as_npz(tmp_path / "npz", []) / "1.npz", feat=np.zeros(3))
    with pytest.raises(DataError, match="1.npz has no array image_w; it has feat"):
        list(regions.read(tmp_path / "npz"))
