import os

import pytest
from PIL import Image, ImageFile

from itr_study.data import picture_checks
from itr_study.data.picture_checks import check_pictures, open_picture
from tests.data import tiny


def check(path, tmp_path):
    problems, _ = check_pictures({"it": path}, tmp_path / "checks")
    return [p.kind for p in problems]


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".bmp"])
def test_whole_and_truncated_pictures_of_each_format(tmp_path, suffix):
    path = tiny.picture(tmp_path / f"a{suffix}")
    assert check(path, tmp_path) == []
    tiny.truncate(path)
    assert check(path, tmp_path)[0] in ("truncated picture", "undecodable picture")


def test_a_jpeg_without_its_end_passes_verify_but_not_this_check(tmp_path):
    path = tiny.picture(tmp_path / "a.jpg")
    path.write_bytes(path.read_bytes()[:-60])
    Image.open(path).verify()
    assert check(path, tmp_path) == ["truncated picture"]


def test_truncated_is_an_error_even_if_someone_allowed_it(tmp_path, monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    path = tiny.picture(tmp_path / "a.jpg")
    path.write_bytes(path.read_bytes()[:-60])
    Image.open(path).load()  # passes here
    assert check(path, tmp_path) == ["truncated picture"]
    with pytest.raises(OSError, match="truncated"):
        open_picture(path)
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True  # left as it was


def test_empty_missing_and_foreign_files(tmp_path):
    paths = {name: tmp_path / f"{name}.jpg" for name in ("empty", "text", "none", "good")}
    paths["empty"].write_bytes(b"")
    paths["text"].write_text("not a picture")
    tiny.picture(paths["good"])
    problems, sizes = check_pictures(paths, tmp_path / "checks")
    assert [(p.kind, p.where) for p in problems] == [
        ("empty picture", "empty"), ("not a picture", "text"), ("missing picture", "none")]
    assert sizes == {name: path.stat().st_size for name, path in paths.items() if name != "none"}
    assert check_pictures({}, tmp_path) == ([], {})


def test_a_good_picture_is_decoded_once_and_again_after_a_change(tmp_path, monkeypatch):
    path = tiny.picture(tmp_path / "a.jpg")
    seen = []
    decode = picture_checks.decode_problem
    monkeypatch.setattr(picture_checks, "decode_problem",
                        lambda image, path: seen.append(image) or decode(image, path))
    assert check(path, tmp_path) == check(path, tmp_path) == []
    assert len(seen) == 1
    content = path.read_bytes()
    path.write_bytes(content[:20] + bytes(len(content) - 20))  # same size, later
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))
    assert check(path, tmp_path) != []
    assert check(path, tmp_path) != []  # a bad one is not remembered
    assert len(seen) == 3


def test_pictures_are_turned_upright_and_rgb(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    Image.new("L", (30, 10)).save(tmp_path / "a.jpg", exif=exif)
    picture = open_picture(tmp_path / "a.jpg")
    assert picture.size == (10, 30) and picture.mode == "RGB"
