"""Small pictures for a page, and pictures that a reader hands in."""

import struct
import tempfile
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from itr_study.data.picture_files import as_rgb, open_picture
from itr_study.explorers.heard import brief, number_of, parts_of, quoted

SIDE = 120  # pixels of a thumbnail, at most
# Bytes of a picture handed in: in base64 a third more, and a page's connection to its server breaks
# at messages above 10 MiB.
LARGEST = 7_000_000
NAMED, REASON = 60, 200  # letters of a file's name, and of why it is refused
# What Pillow raises for files that are broken.
BROKEN = (OSError, ValueError, SyntaxError, TypeError, LookupError, ArithmeticError, EOFError,
          struct.error, zlib.error)


def thumbnail_uri(picture: Image.Image, side: int = SIDE) -> str:
    """A picture as the address of itself (JPEG, some 4 kB), at most `side` pixels wide and high."""
    small, target = as_rgb(picture), BytesIO()
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    small.save(target, "jpeg", quality=85)
    return f"data:image/jpeg;base64,{b64encode(target.getvalue()).decode()}"


def handed_in(file: Mapping[str, Any]) -> Image.Image:
    """The picture of a file that a page hands over: {"name", "size" in bytes, "data" in base64,
    None where it is too large}.

    Raises:  ValueError for a file that is too large, or no picture that can be read.
    """
    given, size, data = parts_of("a file", file, "name", "size", "data")
    name = brief(str(given), NAMED)
    if not isinstance(data, str | None):
        raise ValueError(f"{name} must come as text in base64, got {quoted(data)}")
    size = max(number_of(f"the size of {name}", size), len(data or "") * 3 // 4)
    if data is None or size > LARGEST + 2:  # base64 fills up to threes
        raise ValueError(f"{name} has {size / 1e6:.0f} MB; at most {LARGEST / 1e6:.0f} MB are "
                         "read: save it smaller")
    try:
        content = b64decode(data, validate=True)
    except ValueError as error:
        raise ValueError(f"{name} did not arrive whole; choose it again") from error
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picture"
        path.write_bytes(content)
        try:
            return open_picture(path)
        except BROKEN as error:
            reason = str(error).replace(f"{path}: ", "").replace(repr(str(path)), "it")
            raise ValueError(f"{name} cannot be read as a picture ({brief(reason, REASON)}); take "
                             "a JPEG or a PNG file that opens elsewhere") from error
