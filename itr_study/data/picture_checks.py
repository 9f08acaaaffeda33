"""Slow looks at files, each made once: a picture is decoded to its last byte, and hashed."""

import hashlib
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from PIL import UnidentifiedImageError

from itr_study.data.base import Problem
from itr_study.data.picture_files import NO_FORMAT, as_rgb, opened, remarks, strict_decoding
from itr_study.files.atomic import read_json, sha256_file, write_json
from itr_study.files.paths import home
from itr_study.progress import progress

VERSION = 5  # raise it when a check gets stricter: what was remembered is then forgotten
STATE = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")
log = logging.getLogger(__name__)
MISSING = "missing picture"  # cannot be skipped; every other kind can (skip_bad)
# A word of the error that a decoder raises -> the kind of the problem.
KINDS = {"truncated": "truncated picture", "too many pixels": "too large picture",
         "which of them is white": "unknown brightness"}
DARK = "dark"  # what is noted of a 16-bit picture of which no value reaches a quarter of white
DARK_NOTE = ("no value of its 16-bit channels reaches a quarter of white, as where a camera's 10 "
             "to 14 bits lie in them; it is used as it is, dark: scale the values to all 16 bits, "
             "or state the largest in the TIFF tag MaxSampleValue (grey only)")


class CheckCache:
    """Files of one folder that passed one check, by name and `STATE`; bad ones are looked at again.

    No program can set ctime back, but on Windows; many files can have the same, hence the inode.

    Args:    cache: folder of the memory, None = <home>/checks; check: its name; folder: of files.
    """

    def __init__(self, cache: Path | None, check: str, folder: Path) -> None:
        digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
        self.path = Path(cache or home() / "checks") / f"{check}-{digest}.json"
        self.good: dict[str, list[int | str]] = {}
        self.changed = False
        try:
            saved = read_json(self.path) if self.path.is_file() else {}
            if isinstance(saved, dict) and saved.get("version") == VERSION:
                self.good = dict(saved.get("good", {}))
        except (ValueError, TypeError) as error:  # damaged: nothing is lost but time
            log.warning("checking again, the memory of checks is damaged: %s", error)

    def knows(self, name: str, stat: os.stat_result) -> bool:
        """Tell whether the file passed before and has not changed since."""
        return self.good.get(name, [])[:4] == [*STATE(stat)]

    def remember(self, name: str, stat: os.stat_result, seen: tuple[str, ...] = ()) -> None:
        """Note that the file, as it was when `stat` was taken, passed, and what was seen in it."""
        self.good[name] = [*STATE(stat), *seen]
        self.changed = True

    def seen(self, name: str) -> tuple[str, ...]:
        """Recall what was seen in a file that passed."""
        return tuple(self.good[name][4:])

    def save(self) -> None:
        """Write what is new; a disk that cannot be written costs time later, not this load."""
        if not self.changed:
            return
        try:
            write_json(self.path, {"version": VERSION, "good": self.good})
        except OSError as error:
            log.warning("the next load checks again: %s", error)


def decode(image: str, path: Path) -> Problem | tuple[str, ...]:
    """Say what is wrong with one picture file, or its sha256 and the remarks on it, DARK last."""
    if not os.path.isfile(path):  # a name that is too long is an error to Path.is_file
        return Problem(MISSING, image, f"no file {path}")
    if path.stat().st_size == 0:
        return Problem("empty picture", image, f"{path} has zero bytes")
    try:
        with opened(path) as picture:
            deep = any(";16" in str(tile.args) for tile in picture.tile)
            picture.load()  # verify() reads headers only, and lets truncated files pass
            rgb = as_rgb(picture)
            dark = deep and max(high for _, high in rgb.getextrema()) < 64
            return (sha256_file(path), *remarks(picture), *[DARK] * dark)
    except UnidentifiedImageError:
        return Problem("not a picture", image, f"{path}: {NO_FORMAT}")
    except Exception as error:  # decoders of broken files raise nearly anything; none is lost
        kind = next((kind for sign, kind in KINDS.items() if sign in str(error).lower()),
                    "undecodable picture")
        return Problem(kind, image, f"{path}: {error or type(error).__name__}")


class Checked(NamedTuple):
    """What a check of pictures found."""

    problems: list[Problem]  # in the order of the pictures
    # image -> sha256, and remarks if any, of each sound file: what identifies the picture
    files: dict[str, tuple[str, ...]]
    notes: list[Problem]  # pictures that are used as they are, but hardly meant so


def check_pictures(pictures: dict[str, Path], cache: Path | None = None) -> Checked:
    """Decode and hash all pictures; those that passed before and did not change are not read.

    Args:    pictures: image id -> file; cache: folder of the memory of checks (`CheckCache`).
    """
    if not pictures:
        return Checked([], {}, [])
    folder = Path(os.path.commonpath([path.parent.absolute() for path in pictures.values()]))
    memory = CheckCache(cache, "pictures", folder)
    stats = {image: path.stat() for image, path in pictures.items() if os.path.isfile(path)}
    names = {image: path.absolute().relative_to(folder).as_posix()
             for image, path in pictures.items()}
    unknown = [i for i in pictures if i not in stats or not memory.knows(names[i], stats[i])]
    problems = []
    with strict_decoding(), ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        results = pool.map(decode, unknown, [pictures[i] for i in unknown])
        shown = progress(results, "decode pictures", len(unknown))
        for image, result in zip(unknown, shown, strict=True):
            if isinstance(result, Problem):
                problems.append(result)
            else:
                memory.remember(names[image], stats[image], result)
    memory.save()
    bad = {problem.where for problem in problems}
    seen = {image: memory.seen(names[image]) for image in stats if image not in bad}
    files = {image: tuple(remark for remark in of if remark != DARK) for image, of in seen.items()}
    notes = [Problem("dark 16-bit picture", image, f"{pictures[image]}: {DARK_NOTE}")
             for image, noted in seen.items() if DARK in noted]
    return Checked(problems, files, notes)
