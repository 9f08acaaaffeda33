"""Every picture is decoded to its last byte before any training, once per file."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from itr_study.data.base import Problem
from itr_study.data.check_cache import CheckCache
from itr_study.progress import progress

MISSING = "missing picture"  # cannot be skipped; every other kind can (skip_bad)
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")


@contextmanager
def strict_decoding() -> Iterator[None]:
    """Truncated pictures are errors here, whatever another package switched on."""
    before = ImageFile.LOAD_TRUNCATED_IMAGES
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        yield
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = before


def open_picture(path: Path) -> Image.Image:
    """RGB picture, wholly decoded, turned upright as its camera noted."""
    with strict_decoding(), Image.open(path) as picture:
        return ImageOps.exif_transpose(picture).convert("RGB")


def decode_problem(image: str, path: Path) -> Problem | None:
    """What is wrong with one picture file, or None after a full decode.

    PIL's `verify()` reads headers only and lets truncated files pass; `load()` decodes.
    """
    if not path.is_file():
        return Problem(MISSING, image, f"no file {path}")
    if path.stat().st_size == 0:
        return Problem("empty picture", image, f"{path} has zero bytes")
    try:
        with Image.open(path) as picture:
            picture.load()
    except UnidentifiedImageError:
        return Problem("not a picture", image, f"{path} is in no known picture format")
    except Exception as error:  # decoders of broken files raise nearly anything; none is lost
        kind = "truncated picture" if "truncated" in str(error).lower() else "undecodable picture"
        return Problem(kind, image, f"{path}: {error or type(error).__name__}")
    return None


def check_pictures(pictures: dict[str, Path], cache: Path | None = None
                   ) -> tuple[list[Problem], dict[str, int]]:
    """Decode all pictures fully; those that passed before and did not change are not read.

    Args:    pictures: image id -> file; cache: folder of the memory of checks (`CheckCache`).
    Returns: the problems, in the order of `pictures`, and the size in bytes of each file found.
    """
    if not pictures:
        return [], {}
    folder = Path(os.path.commonpath([path.parent.absolute() for path in pictures.values()]))
    memory = CheckCache(cache, "pictures", folder)
    stats = {image: path.stat() for image, path in pictures.items() if path.is_file()}
    names = {image: path.absolute().relative_to(folder).as_posix()
             for image, path in pictures.items()}
    unknown = [i for i in pictures if i not in stats or not memory.knows(names[i], stats[i])]
    problems = []
    with strict_decoding(), ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        results = pool.map(decode_problem, unknown, [pictures[i] for i in unknown])
        for image, problem in zip(unknown, progress(results, "decode pictures", len(unknown)),
                                  strict=True):
            if problem is None:
                memory.remember(names[image], stats[image])
            else:
                problems.append(problem)
    memory.save()
    return problems, {image: stat.st_size for image, stat in stats.items()}
