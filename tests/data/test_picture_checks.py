import os
import struct
import time
from zlib import compress, crc32

import numpy as np
import pytest
from PIL import EpsImagePlugin, Image, ImageFile, TiffImagePlugin, UnidentifiedImageError

from itr_study.data import picture_files
from itr_study.data.picture_files import Checked, as_rgb, check_pictures, open_picture
from itr_study.files.atomic import sha256_file
from tests.data import tiny


def check(path, tmp_path):
    return [p.kind for p in check_pictures({"it": path}, tmp_path / "checks").problems]


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
    problems, files, _ = check_pictures(paths, tmp_path / "checks")
    assert [(p.kind, p.where) for p in problems] == [
        ("empty picture", "empty"), ("not a picture", "text"), ("missing picture", "none")]
    assert files == {"good": (sha256_file(paths["good"]),)}
    assert check_pictures({}, tmp_path) == Checked([], {}, [])


def test_a_good_picture_is_decoded_once_and_again_after_a_change(tmp_path, monkeypatch):
    path = tiny.picture(tmp_path / "a.jpg")
    seen = []
    decode = picture_files.decode
    monkeypatch.setattr(picture_files, "decode",
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


def ramp(path, dtype, top):
    """A grey ramp of 256 steps, 0 to top, one row."""
    values = (np.arange(256) * (top / 255)).astype(dtype)[None, :]
    Image.fromarray(values).save(path)
    return path


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_16_bit_grey_is_scaled_to_8_bit(tmp_path, suffix):
    picture = np.asarray(open_picture(ramp(tmp_path / f"a{suffix}", np.uint16, 65535)))
    assert (picture == np.arange(256)[None, :, None]).all()  # 257 v is v, not white
    middle = tmp_path / f"b{suffix}"
    Image.fromarray(np.array([[0, 128, 129, 65406, 65407]], np.uint16)).save(middle)
    assert np.asarray(open_picture(middle))[0, :, 0].tolist() == [0, 0, 1, 254, 255]  # rounded


@pytest.mark.parametrize(("dtype", "top"), [(np.float32, 1.0), (np.int32, 100_000)])
def test_numbers_without_a_known_white_are_refused(tmp_path, dtype, top):
    path = ramp(tmp_path / "a.tif", dtype, top)
    problems = check_pictures({"it": path}, tmp_path / "checks").problems
    assert [p.kind for p in problems] == ["unknown brightness"]
    assert "save it with 8 or 16 bits" in problems[0].detail
    with pytest.raises(ValueError, match="a.tif: its pixels.*which of them is white"):
        open_picture(path)


def with_tag(path, largest):
    """A grey ramp of 12 bits in a TIFF file of 16, which states its largest value or does not."""
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    if largest:
        tags[281] = largest
    values = (np.arange(256) * 4095 // 255).astype(np.uint16)
    Image.fromarray(values[None]).save(path, tiffinfo=tags)
    return path


@pytest.mark.parametrize("largest", [4095, 4000])
def test_12_bits_in_16_are_read_by_their_tag(tmp_path, largest):
    """White is the largest number of so many bits, not the largest value that a picture has."""
    path = with_tag(tmp_path / "a.tif", largest)
    pixels = np.asarray(open_picture(path))[0, :, 0]
    assert np.abs(pixels.astype(int) - np.arange(256)).max() <= 1 and pixels[-1] == 255
    checked = check_pictures({"it": path}, tmp_path / "checks")
    assert checked.files["it"][1:] == ("16 bit", "white 4095") and not checked.notes


def test_packed_12_bits_are_read_whole(tmp_path):
    """0, 1000, 2048 and 4095 as three bytes for two values, which Pillow itself cannot write."""
    data = bytes([0x00, 0x03, 0xE8, 0x80, 0x0F, 0xFF])
    tags = {256: (4, 4), 257: (4, 1), 258: (3, 12), 259: (3, 1), 262: (3, 1),
            273: (4, 8 + 2 + 12 * 9 + 4), 277: (3, 1), 278: (4, 1), 279: (4, len(data))}
    body = b"".join(struct.pack("<HHII", tag, kind, 1, v) for tag, (kind, v) in tags.items())
    path = tmp_path / "a.tif"
    path.write_bytes(b"II*\0" + struct.pack("<IH", 8, len(tags)) + body + bytes(4) + data)
    assert np.asarray(open_picture(path))[0, :, 0].tolist() == [0, 62, 128, 255]


@pytest.mark.parametrize("suffix", [".tif", ".png"])
def test_12_bits_in_16_without_a_tag_are_said_to_be_dark(tmp_path, suffix):
    path, plain = with_tag(tmp_path / f"a{suffix}", None), tiny.picture(tmp_path / "b.png")
    Image.new("RGB", (8, 8)).save(tmp_path / "black.png")  # of 8 bits: black is meant
    paths = {"a": path, "b": plain, "c": tmp_path / "black.png"}
    for _ in range(2):  # the second time it is remembered
        checked = check_pictures(paths, tmp_path / "checks")
        assert checked.problems == [] and checked.files["a"][1:] == ("16 bit",)
        (note,) = checked.notes
        assert (note.kind, note.where) == ("dark 16-bit picture", "a")
        assert path.name in note.detail and "MaxSampleValue" in note.detail
    assert np.asarray(open_picture(path)).max() == 16  # as it is: white is 65535


def test_dark_colours_of_16_bits_are_said_to_be_dark(tmp_path):
    """Pillow drops their lower bytes, so that nothing could be mended any more."""
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc32(name + data))

    row = b"\0" + np.repeat(np.arange(0, 4096, 16, np.uint16), 3).astype(">u2").tobytes()
    header = struct.pack(">IIBBBBB", 256, 1, 16, 2, 0, 0, 0)
    path = tmp_path / "a.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
                     + chunk(b"IDAT", compress(row)) + chunk(b"IEND", b""))
    checked = check_pictures({"a": path}, tmp_path / "checks")
    assert [note.kind for note in checked.notes] == ["dark 16-bit picture"]
    assert checked.files["a"] == (sha256_file(path),)


def test_a_tag_that_the_values_contradict_is_not_believed(tmp_path):
    path = tmp_path / "a.tif"
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[281] = 1023
    Image.fromarray(np.array([[0, 65535]], np.uint16)).save(path, tiffinfo=tags)
    assert np.asarray(open_picture(path))[0, :, 0].tolist() == [0, 255]
    assert as_rgb(Image.fromarray(np.array([[257]], np.uint16))).getpixel((0, 0)) == (1, 1, 1)


def test_transparent_pixels_lie_on_white(tmp_path):
    pixels = np.array([[[200, 0, 0, 255], [200, 0, 0, 0]]], np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert np.asarray(open_picture(tmp_path / "a.png")).tolist() == [[[200, 0, 0], [255] * 3]]
    grey = Image.fromarray(pixels).convert("LA")
    grey.save(tmp_path / "b.png")
    assert open_picture(tmp_path / "b.png").getpixel((1, 0)) == (255, 255, 255)
    opaque = Image.fromarray(pixels[:, :1])
    assert as_rgb(opaque).getpixel((0, 0)) == (200, 0, 0)


def test_a_picture_that_is_read_anew_has_another_identity(tmp_path):
    """Features of before, made of a white picture, must not be taken for those of today."""
    plain, deep = tiny.picture(tmp_path / "a.png"), ramp(tmp_path / "b.png", np.uint16, 65535)
    for _ in range(2):  # the second time it is remembered
        files = check_pictures({"a": plain, "b": deep}, tmp_path / "checks").files
        assert files == {"a": (sha256_file(plain),), "b": (sha256_file(deep), "16 bit")}


def test_no_picture_starts_a_program(tmp_path, monkeypatch):
    """Pillow draws EPS by Ghostscript: here a program of that name, first on the path."""
    program = tmp_path / "bin" / "gs"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)  # looked for again
    path = tmp_path / "x.jpg"
    Image.new("RGB", (8, 8)).save(path, format="EPS")
    problems = check_pictures({"x": path}, tmp_path / "checks").problems
    assert [p.kind for p in problems] == ["not a picture"] and "JPEG, PNG" in problems[0].detail
    with pytest.raises(UnidentifiedImageError):
        open_picture(path)
    assert not (tmp_path / "started").exists()


def test_a_picture_of_too_many_pixels_is_not_decoded(tmp_path, monkeypatch):
    path = tiny.picture(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 24 * 32 // 2 - 1)
    problems = check_pictures({"a": path}, tmp_path / "checks").problems
    assert [p.kind for p in problems] == ["too large picture"] and "768 pixels" in str(problems)
    with pytest.raises(ValueError, match="a.png: too many pixels, save it smaller"):
        open_picture(path)


def test_a_jpeg_of_up_to_twice_the_pixels_is_read_at_half_its_size(tmp_path, monkeypatch):
    """32 x 24 are 768; others are refused, for their decoders read everything."""
    paths = {suffix: tiny.picture(tmp_path / f"a.{suffix}") for suffix in ("jpg", "png")}
    before = open_picture(paths["jpg"])
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 767)
    with pytest.warns(Image.DecompressionBombWarning):
        problems, files, _ = check_pictures(paths, tmp_path / "checks")
        assert [(p.kind, p.where) for p in problems] == [("too large picture", "png")]
        assert "32 x 24 is more than the 767 that are read; save it smaller" in problems[0].detail
        assert files["jpg"][1:] == ("half size",)
        half = open_picture(paths["jpg"])
        assert half.size == (16, 12)
        with pytest.raises(ValueError, match="a.png: too many pixels: 32 x 24"):
            open_picture(paths["png"])
    near = np.asarray(before.resize(half.size, Image.Resampling.BOX))
    assert np.corrcoef(near.ravel(), np.asarray(half).ravel())[0, 1] > 0.9  # the same picture
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    assert open_picture(paths["png"]).size == (32, 24)


def test_large_pictures_are_decoded_one_at_a_time(tmp_path, monkeypatch):
    paths = {f"{n}": tiny.picture(tmp_path / f"{n}.png", seed=n) for n in range(6)}
    inside, most, real = [], [], picture_files.as_rgb

    def slow(*arguments):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.02)
        inside.pop()
        return real(*arguments)

    monkeypatch.setattr(picture_files, "as_rgb", slow)
    monkeypatch.setattr(picture_files.os, "cpu_count", lambda: 4)
    check_pictures(paths, tmp_path / "checks")
    assert max(most) > 1  # small ones side by side
    most.clear()
    monkeypatch.setattr(picture_files, "LARGE", 767)
    check_pictures(paths, tmp_path / "others")
    assert max(most) == 1
