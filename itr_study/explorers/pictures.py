"""Pictures on a page: thumbnails, search results, and pictures uploaded by the reader."""

import tempfile
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
from itr_study.explorers.messages import cut, quote, read_number, read_parts
from itr_study.plots.tables import Page

SIDE = 120  # pixels of a thumbnail, at most
# Bytes of an upload: base64 adds a third, and Jupyter's server breaks the connection at 10 MiB.
LARGEST = 7_000_000
NAMED, REASON = 60, 200  # letters of a file's name, and of why it is refused
BROKEN = OSError, ValueError  # what `open_picture` raises
FOUND_SIDE = 150  # pixels of a search result, at most


def encode_thumbnail(picture: Image.Image, side: int = SIDE) -> str:
    """Encode a picture as a data URI (JPEG, some 4 kB), at most `side` pixels wide and high."""
    small, target = as_rgb(picture), BytesIO()
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    small.save(target, "jpeg", quality=85)
    return f"data:image/jpeg;base64,{b64encode(target.getvalue()).decode()}"


def read_upload(file: Mapping[str, Any]) -> Image.Image:
    """Read the picture that a page uploads: {"name", "size" in bytes, "data" in base64}.

    Raises: ValueError: a file that is too large ("data" may be None), or no readable picture.
    """
    given, size, data = read_parts("a file", file, "name", "size", "data")
    name = cut(str(given), NAMED)
    if not isinstance(data, str | None):
        raise ValueError(f"{name} must come as text in base64, got {quote(data)}")
    size = max(read_number(f"the size of {name}", size), len(data or "") * 3 // 4)
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
            raise ValueError(f"{name} cannot be read as a picture ({cut(reason, REASON)}); take "
                             "a JPEG or a PNG file that opens elsewhere") from error


def picture_hits(searcher: Searcher, hits: Sequence[Hit]) -> Page:
    """Show found pictures in a row, each with rank, score and text; a known match has a ✓.

    Args:
        searcher: whose data set has the pictures.
        hits: results of `searcher.search_text`, at least one.
    """
    if not hits:
        raise ValueError("picture_hits needs what search_text found, got no hits")
    cells = [f"<figure style='display:inline-block;vertical-align:top;width:{FOUND_SIDE}px;"
             "margin:0 12px 12px 0'>"
             f"<img alt='{escape(hit.text, quote=True)}' title='{escape(hit.id, quote=True)}' "
             f"src='{encode_thumbnail(searcher.dataset.open_image(hit.id), FOUND_SIDE)}'>"
             f"<figcaption style='font-size:12px'><b>{hit.rank}{' ✓' * (hit.match is True)}</b> "
             f"score {number(hit.score, 2)}<br>{escape(hit.text)}</figcaption></figure>"
             for hit in hits]
    return Page("".join(cells))
