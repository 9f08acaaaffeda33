"""Small pictures for a page, and pictures that a reader hands in."""

import tempfile
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path

from PIL import Image

from itr_study.data.picture_files import as_rgb, open_picture

SIDE = 120  # pixels of a thumbnail, at most
LARGEST = 20_000_000  # bytes of a picture handed in


def thumbnail_uri(picture: Image.Image, side: int = SIDE) -> str:
    """A picture as the address of itself (JPEG, some 4 kB), at most `side` pixels wide and high."""
    small, target = as_rgb(picture), BytesIO()
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    small.save(target, "jpeg", quality=85)
    return f"data:image/jpeg;base64,{b64encode(target.getvalue()).decode()}"


def handed_in(file: dict[str, str | int | None]) -> Image.Image:
    """The picture of a file that a page hands over: {"name", "size" in bytes, "data" in base64,
    None where it is too large}.

    Raises:  ValueError for a file that is too large, or no picture that can be read.
    """
    name, size, data = file["name"], file["size"], file["data"]
    if data is None or size > LARGEST:
        raise ValueError(f"{name} has {size / 1e6:.0f} MB; at most {LARGEST / 1e6:.0f} MB are "
                         "read: save it smaller")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picture"
        path.write_bytes(b64decode(data))
        try:
            return open_picture(path)
        except (OSError, ValueError, SyntaxError) as error:  # Pillow's, for files that are broken
            reason = str(error).replace(f"{path}: ", "").replace(repr(str(path)), "it")
            raise ValueError(f"{name} cannot be read as a picture ({reason}); take a JPEG or a "
                             "PNG file that opens elsewhere") from error
