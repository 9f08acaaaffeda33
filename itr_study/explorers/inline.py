"""Pictures inside a page: as text, so that nothing is fetched."""

from base64 import b64encode
from io import BytesIO

from PIL import Image


def data_uri(picture: Image.Image, side: int) -> str:
    """The address of a picture that holds the picture itself, as PNG.

    Args:    side: pixels of its longer side, at most; nothing is enlarged.
    """
    small, target = picture.convert("RGB"), BytesIO()
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    small.save(target, "png", compress_level=1)
    return f"data:image/png;base64,{b64encode(target.getvalue()).decode()}"
