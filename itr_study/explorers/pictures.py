"""Pictures on a page: thumbnails, what a search in words found, and pictures of the reader."""

import struct
import tempfile
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from itr_study.data.picture_files import as_rgb, open_picture
from itr_study.digits import number
from itr_study.evaluation.search import Hit, Searcher
from itr_study.explorers.messages import brief, number_of, parts_of, quoted
from itr_study.plots.tables import Page

SIDE = 120  # pixels of a thumbnail, at most
# Bytes of a picture handed in: in base64 a third more, and a page's connection to its server breaks
# at messages above 10 MiB.
LARGEST = 7_000_000
NAMED, REASON = 60, 200  # letters of a file's name, and of why it is refused
# What Pillow raises for files that are broken.
BROKEN = (OSError, ValueError, SyntaxError, TypeError, LookupError, ArithmeticError, EOFError,
          struct.error, zlib.error)
FOUND_SIDE = 150  # pixels of a picture that was found, at most


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


def picture_hits(searcher: Searcher, hits: Sequence[Hit]) -> Page:
    """Pictures found, side by side, each with its rank, its score and the text of its hit; a
    known match has a ✓.

    Args:    hits: what `searcher.search_text` gave, at least one.
    """
    if not hits:
        raise ValueError("picture_hits needs what search_text found, got no hits")
    cells = [f"<figure style='display:inline-block;vertical-align:top;width:{FOUND_SIDE}px;"
             "margin:0 12px 12px 0'>"
             f"<img alt='{escape(hit.text, quote=True)}' title='{escape(hit.id, quote=True)}' "
             f"src='{thumbnail_uri(searcher.dataset.open_image(hit.id), FOUND_SIDE)}'>"
             f"<figcaption style='font-size:12px'><b>{hit.rank}{' ✓' * (hit.match is True)}</b> "
             f"score {number(hit.score, 2)}<br>{escape(hit.text)}</figcaption></figure>"
             for hit in hits]
    return Page("".join(cells))
