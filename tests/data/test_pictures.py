"""A folder of pictures without texts, and which files are pictures."""

import io
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from itr_study.data import picture_files
from itr_study.data.base import DataError
from itr_study.data.folder import load_pictures
from itr_study.data.picture_files import open_picture, pictures_below
from tests.data import tiny
from tests.posix import posix_only


def test_all_pictures_below_a_folder(tmp_path):
    tiny.picture(tmp_path / "b.png"), tiny.picture(tmp_path / "deep" / "a.jpg", seed=1)
    (tmp_path / "notes.txt").write_text("no picture")
    (tmp_path / "broken.png").write_bytes(b"")
    data = load_pictures(tmp_path, cache=tmp_path / "checks")
    (split,) = data.splits.values()
    assert split.image_ids == ("b.png", "deep/a.jpg") and split.texts == ()
    assert data.open_image("deep/a.jpg").size == (32, 24)
    assert [(p.kind, p.where) for p in data.report.excluded] == [("empty picture", "broken.png")]
    before = data.fingerprint
    tiny.picture(tmp_path / "c.png", seed=2)
    assert load_pictures(tmp_path, cache=tmp_path / "checks").fingerprint != before


def test_a_folder_without_pictures_is_refused(tmp_path):
    with pytest.raises(DataError, match="there is no folder .*nowhere"):
        load_pictures(tmp_path / "nowhere")
    (tmp_path / "broken.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"holds no picture that can be decoded \(1 broken\)"):
        load_pictures(tmp_path, cache=tmp_path / "checks")


def in_format(name):
    file = io.BytesIO()
    Image.new("RGB", (8, 6), "red").save(file, format=name)
    return file.getvalue()


PICTURES = {name: in_format(name) for name in ("JPEG", "PNG", "GIF", "WEBP", "BMP")}
OTHERS = {"text": b"BMW and JPEG are words", "nothing": b"", "raw": in_format("TIFF"),
          "heic": b"\0\0\0\x20ftypheix\0\0\0\0mif1heix" + bytes(40),
          "film": b"\0\0\0\x18ftypisom\0\0\0\0isommp42" + bytes(40)}
KNOWN = ("jpg", "JPE", "jif", "Jfif", "PNG", "webp", "tif")
FOREIGN = ("jpg_large", "jpg~", "1", "bin", "")  # of these the first bytes decide
UNREAD = ("HEIC", "cr2", "dng", "psd")
HIDDEN = (".thumbnails", "@eaDir", "__MACOSX", ".git", "#recycle", "$RECYCLE.BIN")
part = st.sampled_from(("a", "b", "trips.jpg", "@work", "c d", *HIDDEN))
leaf = st.tuples(st.sampled_from(("x", "._y", "z", "\u56fe")),
                 st.sampled_from((*KNOWN, *FOREIGN, *UNREAD)))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.lists(part, max_size=3), leaf,
                          st.sampled_from((*PICTURES, *OTHERS))), max_size=12),
       st.booleans())
def test_any_tree_is_searched_whole_and_what_is_none_is_listed(tree, linked):
    with tempfile.TemporaryDirectory() as scratch:
        outside, root = Path(scratch, "outside"), Path(scratch, "album")
        pictures, others = set(), set()
        (outside if linked else root).mkdir()
        for folders, (stem, ending), content in tree:
            name = "/".join([*folders, f"{stem}.{ending}".rstrip(".")])
            path = Path(outside if linked else root, name)
            if path.exists() or any(p.is_file() for p in path.parents):
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes((PICTURES | OTHERS)[content])
            if any(p.startswith(".") or p in HIDDEN for p in name.split("/")):
                continue
            by_bytes = content in PICTURES or content == "raw" and not ending
            sound = ending in KNOWN or by_bytes
            (pictures if sound else others).add(f"disk/{name}" if linked else name)
        if linked:
            root.mkdir()
            (root / "disk").symlink_to(outside)
            (outside / "up").symlink_to(root)
            (root / "again").symlink_to(root)
        files, left_out = pictures_below(root)
        assert set(files) == pictures and {p.where for p in left_out} == others
        assert list(files) == sorted(files, key=lambda name: name.split("/"))
        assert all(path.samefile(root / name) for name, path in files.items())


def test_a_folder_is_entered_by_its_own_name_and_once(tmp_path):
    tiny.picture(tmp_path / "z" / "deep" / "p.png")
    (tmp_path / "a").symlink_to(tmp_path / "z" / "deep")
    (tmp_path / "home").symlink_to(tmp_path.parent)
    assert list(pictures_below(tmp_path)[0]) == ["z/deep/p.png"]


def test_what_is_left_out_is_said_by_kind(tmp_path, monkeypatch):
    tiny.picture(tmp_path / "a.png")
    for name in ("1.heif", "2.HEIF", "3.NEF", "b.xmp", "c.xmp", "d.xmp", "README"):
        (tmp_path / name).write_bytes(b"\0\0\0\x18ftypmif1" + bytes(40) if "HEIF" in name else b"x")
    (tmp_path / "gone.jpg").symlink_to(tmp_path / "nowhere")
    (tmp_path / "locked").mkdir()
    listed = os.listdir

    def refuse(place):
        if Path(place).name == "locked":
            raise PermissionError(13, "Permission denied")
        return listed(place)

    monkeypatch.setattr(picture_files.os, "listdir", refuse)
    report = load_pictures(tmp_path, cache=tmp_path / "checks").report
    (note,) = report.notes
    for words in ("2 x .heif (not read here: save as JPEG)", "1 x .nef (not read here",
                  "3 x .xmp (no picture)", "1 x without an ending (no picture)",
                  "1 x folder (unreadable)", "1 x .jpg (no file, or a link to none)"):
        assert words in note.detail, words
    assert len(report.excluded) == 5  # what may have been pictures; sidecars and texts are not


def test_pictures_are_known_by_their_bytes(tmp_path):
    for number, name in enumerate(("a.bmp", "b.bmp", "c.bmp")):
        tiny.picture(tmp_path / name, seed=number)
    a, b = tmp_path / "a.bmp", tmp_path / "b.bmp"

    def prints():
        data = load_pictures(tmp_path, cache=tmp_path / "checks")
        return data.fingerprint, data.sha256["a.bmp"]

    first = prints()
    assert len(a.read_bytes()) == len(b.read_bytes())
    os.utime(a)
    assert prints() == first
    times = a.stat()
    one, other = a.read_bytes(), b.read_bytes()
    a.write_bytes(other), b.write_bytes(one)
    if os.name != "nt":  # there nothing else tells that the content was changed
        os.utime(a, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert prints()[0] != first[0] and prints()[1] != first[1]
    a.rename(tmp_path / "x"), b.rename(a), (tmp_path / "x").rename(b)
    assert prints() == first


def test_avif_is_read_where_pillow_can(tmp_path):
    if ".avif" not in picture_files.SUFFIXES:
        pytest.skip("this Pillow reads no AVIF")
    path = tiny.picture(tmp_path / "a.avif")
    path.rename(tmp_path / "b.download")
    assert list(load_pictures(tmp_path, cache=tmp_path / "checks").sha256) == ["b.download"]
    tiny.truncate(tmp_path / "b.download")
    with pytest.raises(DataError, match=r"no picture that can be decoded \(1 broken\)"):
        load_pictures(tmp_path, cache=tmp_path / "checks")


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".gif", ".tif", ".bmp"])
def test_a_broken_picture_is_named(tmp_path, suffix):
    path = tiny.picture(tmp_path / f"a{suffix}")
    for content in (path.read_bytes()[:400], b"<html>404</html>", b""):
        path.write_bytes(content)
        with pytest.raises(OSError, match=f"a{suffix}"):
            open_picture(path)
    assert "JPEG, PNG" in str(pytest.raises(OSError, open_picture, path).value)


@posix_only
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    files, left_out = pictures_below(tmp_path)
    assert not files and [problem.where for problem in left_out] == ["pipe"]
