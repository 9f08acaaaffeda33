"""Every picture is decoded to its last byte before any training, once per file."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from itr_study.data.base import Problem
from itr_study.data.check_cache import CheckCache
from itr_study.progress import progress

MISSING = "missing picture"  # cannot be skipped; every other kind can (skip_bad)
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")
# A word of the error that a decoder raises -> the kind of the problem.
KINDS = {"truncated": "truncated picture", "exceeds limit": "too large picture",
         "which of them is white": "unknown brightness"}


@contextmanager
def strict_decoding() -> Iterator[None]:
    """Truncated pictures are errors here, whatever another package switched on."""
    before = ImageFile.LOAD_TRUNCATED_IMAGES
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        yield
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = before


@contextmanager
def opened(path: Path) -> Iterator[Image.Image]:
    """A picture file in one of FORMATS: Pillow has others that start a program (EPS does)."""
    with strict_decoding(), Image.open(path, formats=FORMATS) as picture:
        yield picture


def open_picture(path: Path) -> Image.Image:
    """RGB picture, wholly decoded, turned upright as its camera noted; ValueError as `as_rgb`."""
    with opened(path) as picture:
        try:
            return as_rgb(ImageOps.exif_transpose(picture))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


def as_rgb(picture: Image.Image) -> Image.Image:
    """The picture in 8-bit RGB: 16-bit grey scaled down, transparent pixels laid on white.

    Raises:  ValueError for float and 32-bit pixels: nothing says which of them is white.
    """
    if picture.mode in ("I", "F"):
        raise ValueError(f"its pixels are numbers of mode {picture.mode} without bounds, and "
                         "nothing says which of them is white; save it with 8 or 16 bits a channel")
    if picture.mode.startswith("I;16"):  # convert() cuts off at 255: nearly all would be white
        picture = Image.fromarray(((np.asarray(picture, np.uint32) + 128) // 257).astype(np.uint8))
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        white = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(white, picture)
    return picture.convert("RGB")


def remarks(picture: Image.Image) -> tuple[str, ...]:
    """What makes `as_rgb` more than a change of mode. It is part of the data's fingerprint, because
    such pictures were once read otherwise."""
    if picture.mode.startswith("I;16"):
        return ("16 bit",)
    if picture.has_transparency_data:
        return ("transparent",) * (picture.convert("RGBA").getextrema()[3][0] < 255)
    return ()


def decode(image: str, path: Path) -> Problem | tuple[str, ...]:
    """What is wrong with one picture file, or after a full decode the remarks on it.

    PIL's `verify()` reads headers only and lets truncated files pass; `load()` decodes.
    """
    if not path.is_file():
        return Problem(MISSING, image, f"no file {path}")
    if path.stat().st_size == 0:
        return Problem("empty picture", image, f"{path} has zero bytes")
    try:
        with opened(path) as picture:
            picture.load()
            as_rgb(picture)
            return remarks(picture)
    except UnidentifiedImageError:
        return Problem("not a picture", image, f"{path} is in none of the formats that are read: "
                       f"{', '.join(FORMATS)}")
    except Exception as error:  # decoders of broken files raise nearly anything; none is lost
        kind = next((kind for sign, kind in KINDS.items() if sign in str(error).lower()),
                    "undecodable picture")
        return Problem(kind, image, f"{path}: {error or type(error).__name__}")


class Checked(NamedTuple):
    """What a check of pictures found."""

    problems: list[Problem]  # in the order of the pictures
    # image -> name, bytes, and remarks if any, of each file found; it goes into the fingerprint
    files: dict[str, tuple[str | int, ...]]


def check_pictures(pictures: dict[str, Path], cache: Path | None = None) -> Checked:
    """Decode all pictures fully; those that passed before and did not change are not read.

    Args:    pictures: image id -> file; cache: folder of the memory of checks (`CheckCache`).
    """
    if not pictures:
        return Checked([], {})
    folder = Path(os.path.commonpath([path.parent.absolute() for path in pictures.values()]))
    memory = CheckCache(cache, "pictures", folder)
    stats = {image: path.stat() for image, path in pictures.items() if path.is_file()}
    names = {image: path.absolute().relative_to(folder).as_posix()
             for image, path in pictures.items()}
    unknown = [i for i in pictures if i not in stats or not memory.knows(names[i], stats[i])]
    problems = []
    with strict_decoding(), ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        results = pool.map(decode, unknown, [pictures[i] for i in unknown])
        for image, result in zip(unknown, progress(results, "decode pictures", len(unknown)),
                                 strict=True):
            if isinstance(result, Problem):
                problems.append(result)
            else:
                memory.remember(names[image], stats[image], result)
    memory.save()
    bad = {problem.where for problem in problems}
    files = {image: (pictures[image].name, stat.st_size,
                     *(() if image in bad else memory.remarks(names[image])))
             for image, stat in stats.items()}
    return Checked(problems, files)
