"""Read one picture file as 8-bit RGB whatever it holds, or refuse it with what is wrong."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
from PIL import Image, ImageFile, ImageOps

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")
LARGE = 1 << 24  # pixels; of larger pictures one is decoded at a time, or they fill the memory
WHITE = 65535  # of 16-bit grey
BITS_PER_SAMPLE, MAX_SAMPLE_VALUE = 258, 281  # tags of TIFF
_one_large = threading.RLock()


def pictures_below(folder: Path) -> dict[str, Path]:
    """Find all picture files below a folder by their names in it, hidden ones left out."""
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*"))
            if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")}


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
    """Read an RGB picture wholly, upright as its camera noted; ValueError as `as_rgb`, `opened`."""
    try:
        with opened(path) as picture:
            return as_rgb(ImageOps.exif_transpose(picture), white_level(picture))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def as_rgb(picture: Image.Image, white: int = WHITE) -> Image.Image:
    """Convert to 8-bit RGB: 16-bit grey scaled down, transparent pixels laid on white.

    Args:    white: the value of white in 16-bit grey, as of `white_level`.
    Raises:  ValueError for float and 32-bit pixels: nothing says which of them is white.
    """
    if picture.mode in ("I", "F"):
        raise ValueError(f"its pixels are numbers of mode {picture.mode} without bounds, and "
                         "nothing says which of them is white; save it with 8 or 16 bits a channel")
    if picture.mode.startswith("I;16"):  # convert() cuts off at 255: nearly all would be white
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
