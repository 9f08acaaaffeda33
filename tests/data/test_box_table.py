"""Tables of boxes: kept as whole numbers, read again, and refused where they are wrong."""

from dataclasses import replace

import numpy as np
import pytest

from itr_study.data.base import DataError
from itr_study.data.box_table import KEPT, BoxTable, Detections, areas, kept_boxes
from itr_study.encoders.nanodet import NanoDet
from itr_study.features.images import made_with
from tests.features.make_boxes import write


def detections(*rows: tuple) -> Detections:
    """From (class, score, left, top, right, bottom)."""
    table = np.array(rows, float).reshape(-1, 6)
    return Detections(table[:, 0].astype(np.int64), table[:, 1], table[:, 2:])


DOG, BALL = (16, 0.712, 0.1, 0.25, 0.5, 0.9999), (32, 0.2, 0.0, 0.0, 0.0001, 1.0)
TABLE = BoxTable.join(("b.jpg", "none.jpg", "a.jpg"),
                      [detections(DOG, BALL), detections(), detections(BALL)], "a detector")


def test_boxes_of_a_picture():
    assert TABLE.of("b.jpg").classes.tolist() == [16, 32]
    assert TABLE.of("a.jpg").boxes.tolist() == [list(BALL[2:])]
    assert TABLE.of("none.jpg").boxes.shape == (0, 4)
    for least in (0.3, 0.712):
        assert TABLE.of("b.jpg").above(least).scores.tolist() == [0.712]
    assert TABLE.has(["a.jpg", "none.jpg"]) and not TABLE.has(["a.jpg", "c.jpg"])
    with pytest.raises(DataError, match="no boxes are kept of image 'c.jpg', only of 3 others"):
        TABLE.of("c.jpg")


def test_what_is_written_is_read_and_equal_tables_are_equal_files(tmp_path):
    write(TABLE, tmp_path / "one.npz")
    write(TABLE, tmp_path / "two.npz")
    again = BoxTable.read(tmp_path / "one.npz")
    assert again.images == TABLE.images and again.made_with == "a detector"
    assert again.starts.tolist() == TABLE.starts.tolist() == [0, 2, 2, 3]
    for kept, given in zip(again.found, TABLE.found, strict=True):
        assert kept.tolist() == given.tolist()  # to the last bit: a tenth is read as 0.1
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def test_rounding_leaves_out_what_then_has_no_area():
    found = detections((0, 0.12345, 0.1, 0.1, 0.10004, 0.5), (0, 0.5, 0.00001, 0, 0.99999, 1))
    assert found.rounded().boxes.tolist() == [[0, 0, 1, 1]]
    assert detections((0, 0.12345, 0, 0, 1, 1)).rounded().scores.tolist() == [0.123]


@pytest.mark.parametrize("row, message", [
    ((0, 0.5, 0.2, 0.2, 1.1, 0.5), "outside the picture"),
    ((0, 0.5, -0.1, 0.2, 0.5, 0.5), "outside the picture"),
    ((0, 0.5, 0.5, 0.2, 0.5, 0.5), "without an area"),
    ((0, 0.5, 0.6, 0.2, 0.5, 0.5), "without an area"),
    ((0, 0.5, np.nan, 0.2, 0.5, 0.5), "outside the picture"),
    ((80, 0.5, 0.1, 0.2, 0.5, 0.5), "class out of range"),
    ((0, 0.0, 0.1, 0.2, 0.5, 0.5), "score or class out of range"),
])
def test_boxes_that_are_none_are_refused_with_their_image(row, message):
    with pytest.raises(DataError, match="image third has a box.*" + message):
        BoxTable.join(("first", "second", "third"),
                      [detections(DOG), detections(), detections(row, DOG)], "")


def test_a_table_that_does_not_hold_together_is_refused(tmp_path):
    for starts in ([0, 2, 2], [0, 2, 1, 3], [0, 1, 2, 4], [1, 2, 2, 3]):
        with pytest.raises(DataError, match="does not hold together"):
            replace(TABLE, starts=np.array(starts))
    with pytest.raises(DataError, match="does not hold together"):
        replace(TABLE, images=("a", "b", "a"))


def test_broken_and_missing_files_are_refused(tmp_path):
    path = tmp_path / "table.npz"
    with pytest.raises(DataError, match="make the table again"):
        BoxTable.read(path)
    write(TABLE, path)
    whole = path.read_bytes()
    for broken in (b"", b"no archive", whole[:-30], whole[:200] + b"x" * 20 + whole[220:]):
        path.write_bytes(broken)
        with pytest.raises(DataError, match="cannot be read as a table of boxes"):
            BoxTable.read(path)
    write(TABLE, path)
    kept = dict(np.load(path))
    for wrong in ({"made_with": None}, {"images": np.array("a")}, {"boxes": np.array(["a"])}):
        np.savez(path, **{name: value for name, value in (kept | wrong).items()
                          if value is not None})
        with pytest.raises(DataError, match="cannot be read"):
            BoxTable.read(path)
    np.savez(path, **kept | {"scores": np.ones((3, 2))})
    with pytest.raises(DataError, match="does not hold together"):
        BoxTable.read(path)
    locked = bytearray(whole)
    locked[whole.rindex(b"PK\x01\x02") + 8] |= 1  # the directory says that a part has a password
    path.write_bytes(locked)
    with pytest.raises(DataError, match="cannot be read"):
        BoxTable.read(path)
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))  # one array, no archive of several
    with pytest.raises(DataError, match="cannot be read"):
        BoxTable.read(path)


@pytest.mark.parametrize("count", [0, 255, 256, 300])
def test_a_picture_may_have_many_boxes(tmp_path, count):
    many = BoxTable.join(("a", "b"), [detections(*[DOG] * count), detections(BALL)], "")
    write(many, tmp_path / "many.npz")
    again = BoxTable.read(tmp_path / "many.npz")
    assert len(again.of("a").scores) == count and again.of("b").classes.tolist() == [32]


def test_the_table_of_flickr8k():
    """The file beside the code: whole, of this detector, and small."""
    table = kept_boxes("flickr8k")
    assert len(table.images) == 8_000 and list(table.images) == sorted(table.images)
    assert table.made_with == made_with(NanoDet())
    assert KEPT["flickr8k"].stat().st_size < 1_500_000
    counts = np.diff(table.starts)
    assert counts.max() == 20 and table.found.scores.min() >= 0.2
    for image in table.images[::50]:
        found = table.of(image)
        assert (np.diff(found.scores) <= 0).all() and (areas(found.boxes) > 0).all()
    assert kept_boxes("scenes") is None
