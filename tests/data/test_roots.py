import pytest

from itr_study.data.base import DataError, find_part, find_root, read_lines


def test_below_the_root_by_any_name_or_the_folder_itself(tmp_path):
    (tmp_path / "coco5k").mkdir()
    assert find_root(tmp_path, "coco", also=("coco5k",)) == tmp_path / "coco5k"
    assert find_root(str(tmp_path / "coco5k"), "coco", also=("coco5k",)) == tmp_path / "coco5k"
    (tmp_path / "any").mkdir()
    (tmp_path / "any" / "mark.txt").touch()
    assert find_root(tmp_path / "any", "coco", marks=("mark.*",)) == tmp_path / "any"


def test_what_was_looked_for_is_named(tmp_path):
    with pytest.raises(DataError, match=r"holds no coco/ or c5/, nor is it one .no m.txt.*Ask me"):
        find_root(tmp_path, "coco", also=("c5",), marks=("m.txt",), obtain="Ask me.")
    with pytest.raises(DataError, match="the list missing: looked for a, b in"):
        find_part(tmp_path, ("a", "b"), "the list")


def test_only_newlines_part_lines(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes("a\u2028b\x0cc\r\n\nlast\n".encode())
    assert read_lines(path) == ["a\u2028b\x0cc", "", "last"]
    path.write_bytes(b"")
    assert read_lines(path) == []
