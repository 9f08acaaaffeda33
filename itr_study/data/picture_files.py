"""Find picture files; read one as 8-bit RGB whatever it holds, or refuse it with what is wrong."""

import hashlib
import logging
import os
import re
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError, features

from itr_study.data.base import Problem
from itr_study.files.atomic import read_json, sha256_file, write_json
from itr_study.files.paths import home
from itr_study.progress import progress

AVIF = ["AVIF"] * ("avif" in features.modules and features.check("avif"))  # Pillow 11.3 and later
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", *AVIF)
SUFFIXES = (".jpg", ".jpeg", ".jpe", ".jfif", ".jif", ".jfi", ".pjpeg", ".pjp", ".png", ".apng",
            ".webp", ".bmp", ".gif", ".tif", ".tiff", *[".avif"] * len(AVIF))
NO_FORMAT = f"it is in none of the formats that are read: {', '.join(FORMATS)}; save it as JPEG"
# First bytes of a picture of any name. TIFF's begin a camera's raw file, too, whose first picture
# is a thumbnail: they count only where a name has no ending.
HEAD = re.compile(rb"\xff\xd8\xff|\x89PNG\r\n\x1a\n|RIFF.{4}WEBP|BM.{4}\0{4}|GIF8[79]a"
                  rb"|.{4}ftyp(?=.{0,24}avi[fs])", re.DOTALL)
HEAD_OF_TIFF = re.compile(rb"II\*\0|MM\0\*")
HEAD_OF_HEIC = re.compile(rb".{4}ftyp(hei|hev|mif1|msf1)", re.DOTALL)
UNREAD = re.compile(r"\.(hei[cf]s?|hif|avif|jxl|jp2|j2k|jxr|psd|svg|eps|ico|tga|dng|nef|nrw|cr[23w]"
                    r"|arw|srf|sr2|orf|rw2|raf|pef|srw|x3f|3fr|erf|raw)")  # other pictures
# What systems, archives and network disks keep beside photographs, mostly thumbnails of them.
ASIDE = re.compile(r"\..*|__macosx|@eadir|[@#$]recycle(\.bin)?|@recently-snapshot|#snapshot"
                   r"|lost\+found|system volume information|thumbs\.db|desktop\.ini|.*\.thm", re.I)
NO_PICTURE = "no picture"
LARGE = 1 << 24  # pixels; of larger pictures one is decoded at a time, or they fill the memory
WHITE = 65535  # of 16-bit grey
BITS_PER_SAMPLE, MAX_SAMPLE_VALUE = 258, 281  # tags of TIFF
_one_large = threading.RLock()


def pictures_below(folder: Path) -> tuple[dict[str, Path], list[Problem]]:
    """Find all pictures below a folder by their names in it, and list other files with the reason.

    Names of no known ending are looked into, links followed; each folder is entered once, by a name
    without links if it has one. Hidden files, folders and what is `ASIDE` are no others.
    """
    files, others, entered = {}, [], {*folder.resolve().parents}
    waiting = deque([folder])
    while waiting:
        place = waiting.popleft()
        if (real := place.resolve()) in entered:
            continue
        entered.add(real)
        try:
            names = [name for name in os.listdir(place) if not ASIDE.fullmatch(name)]
        except OSError as error:
            names = []
            others.append(Problem("folder (unreadable)", str(place), str(error.strerror)))
        for path in map(place.joinpath, names):
            name = path.relative_to(folder).as_posix()
            if os.path.isdir(path):  # all that links lead to comes later
                (waiting.append if path.is_symlink() else waiting.appendleft)(path)
            elif why := _why_none(path):
                kind = f"{path.suffix.lower() or 'without an ending'} ({why})"
                others.append(Problem(kind, name, NO_FORMAT))
            else:
                files[name] = path
    return dict(sorted(files.items(), key=lambda file: file[0].split("/"))), sorted(others)


def _why_none(path: Path) -> str:
    """Why a file is not taken for a picture; "" where it is."""
    suffix = path.suffix.lower()
    if not os.path.isfile(path):
        return "no file, or a link to none"
    if suffix in SUFFIXES:
        return ""
    try:
        with open(path, "rb") as file:
            head = file.read(32)
    except OSError:
        return "unreadable"
    if HEAD.match(head) or not suffix and HEAD_OF_TIFF.match(head):
        return ""
    known = UNREAD.fullmatch(suffix) or HEAD_OF_HEIC.match(head)
    return "not read here: save as JPEG" if known else NO_PICTURE


@contextmanager
def strict_decoding() -> Iterator[None]:
    """Make truncated pictures errors, whatever another package switched on."""
    before = ImageFile.LOAD_TRUNCATED_IMAGES
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        yield
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = before


@contextmanager
def opened(path: Path) -> Iterator[Image.Image]:
    """Open a picture file in one of FORMATS: Pillow has others that start a program (EPS does).

    Raises:  ValueError for a picture with too many pixels, see `fitted`.
    """
    try:
        with strict_decoding(), Image.open(path, formats=FORMATS) as picture:
            with _one_large if picture.width * picture.height > LARGE else nullcontext():
                fitted(picture)
                yield picture
    except Image.DecompressionBombError as error:
        raise ValueError(f"too many pixels, save it smaller: {error}") from error


def fitted(picture: Image.Image) -> None:
    """Prepare a JPEG that is too large to be read at half its width and height.

    The limit is `Image.MAX_IMAGE_PIXELS` (89 million; None = no limit); above twice the limit
    Pillow opens no picture.

    Raises:  ValueError for another format: its decoder cannot read less than everything.
    """
    pixels, most = picture.width * picture.height, Image.MAX_IMAGE_PIXELS
    if most is None or pixels <= most:
        return
    if picture.draft(None, (picture.width // 2, picture.height // 2)) is None:
        raise ValueError(f"too many pixels: {picture.width} x {picture.height} is more than the "
                         f"{most:,} that are read; save it smaller, or as JPEG, of which twice as "
                         "many are read, at half the width and height")


def open_picture(path: Path) -> Image.Image:
    """Read an RGB picture wholly, upright as its camera noted.

    Raises:  ValueError as `as_rgb` and `opened`; OSError for a broken file or another format. All
             name the file.
    """
    try:
        with opened(path) as picture:
            return as_rgb(ImageOps.exif_transpose(picture), white_level(picture))
    except UnidentifiedImageError as error:
        raise UnidentifiedImageError(f"{path}: {NO_FORMAT}") from error
    except Exception as error:  # decoders of broken files raise nearly anything; none is lost
        if getattr(error, "filename", None):  # missing or forbidden: it names the file
            raise
        kind = ValueError if isinstance(error, ValueError) else OSError
        raise kind(f"{path}: {error or type(error).__name__}") from error


def as_rgb(picture: Image.Image, white: int | None = None) -> Image.Image:
    """Convert to 8-bit RGB: 16-bit grey scaled down, transparent pixels laid on white.

    Args:    white: the value of white in 16-bit grey, None = `white_level` of the picture.
    Raises:  ValueError for float and 32-bit pixels: nothing says which of them is white.
    """
    if picture.mode in ("I", "F"):
        raise ValueError(f"its pixels are numbers of mode {picture.mode} without bounds, and "
                         "nothing says which of them is white; save it with 8 or 16 bits a channel")
    if picture.mode.startswith("I;16"):  # convert() cuts off at 255: nearly all would be white
        white = white or white_level(picture)
        values = np.asarray(picture, np.uint32) * 255 + white // 2
        picture = Image.fromarray((values // white).astype(np.uint8))
    if picture.has_transparency_data:
        paper = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(paper, picture.convert("RGBA"))
    return picture.convert("RGB")


def white_level(picture: Image.Image) -> int:
    """Find the value of white in 16-bit grey.

    It is 65535, or 511 to 32767 where the tags of a TIFF file say that its values have 9 to 15
    bits, and no value has more.

    Differs: TIFF 6.0 calls MaxSampleValue a statistic, so only its number of bits is taken.
    """
    if not picture.mode.startswith("I;16"):
        return WHITE
    tags = getattr(picture, "tag_v2", {})
    largest = int(tags.get(MAX_SAMPLE_VALUE, (WHITE,))[0])
    bits = min(tags.get(BITS_PER_SAMPLE, (16,))[0], largest.bit_length())
    return 2**bits - 1 if bits > 8 and picture.getextrema()[1] < 2**bits else WHITE


def remarks(picture: Image.Image) -> tuple[str, ...]:
    """Say what makes reading more than a change of mode: a part of the data's fingerprint."""
    if picture.mode.startswith("I;16"):
        white = white_level(picture)
        return ("16 bit", f"white {white}") if white < WHITE else ("16 bit",)
    if getattr(picture, "decoderconfig", ()):  # set by `fitted`
        return ("half size",)
    if picture.has_transparency_data:
        return ("transparent",) * (picture.convert("RGBA").getextrema()[3][0] < 255)
    return ()


# Slow looks at files, each made once: a picture is decoded to its last byte, and hashed.

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
