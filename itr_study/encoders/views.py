"""Views of a picture: the whole, its mirror, ten crops."""

from collections.abc import Callable

import numpy as np
from PIL import Image

RESIZE_RATIO = 256 / 224  # topk paper, Sec. IV-A-3: resize 256, crop 224


def whole(image: Image.Image, size: int) -> list[np.ndarray]:
    """Squeeze the whole picture to (size, size), so that nothing is cut off."""
    return [resized(image, size)]


def flip(image: Image.Image, size: int) -> list[np.ndarray]:
    """Take the whole picture and its mirror."""
    return mirrored(whole(image, size))


def ten(image: Image.Image, size: int) -> list[np.ndarray]:
    """Crop the centre and four corners of the picture at 256/224 of the size; add mirrors."""
    large = round(size * RESIZE_RATIO)
    pixels, far = resized(image, large), large - size
    corners = [(far // 2, far // 2), (0, 0), (0, far), (far, 0), (far, far)]
    return mirrored([pixels[y : y + size, x : x + size] for y, x in corners])


VIEWS: dict[str, Callable[[Image.Image, int], list[np.ndarray]]] = {
    "one": whole, "flip": flip, "ten": ten}


def make_views(image: Image.Image, views: str, size: int) -> np.ndarray:
    """Make the views of one picture as pixels.

    Args:    image: RGB picture of any size; views: "one", "flip" or "ten"; size: pixels a side.
    Shape:   (V, 3, size, size) uint8. View 0 is what evaluation of grids uses: the whole
             picture, or for "ten" the centre crop. The mirrors are the second half.
    """
    return np.stack(VIEWS[views](image, size)).transpose(0, 3, 1, 2)


def resized(image: Image.Image, size: int) -> np.ndarray:
    """Resize to (size, size, 3) uint8, bicubic, aspect ratio not kept."""
    rgb = image if image.mode == "RGB" else image.convert("RGB")
    if rgb.size != (size, size):
        rgb = rgb.resize((size, size), Image.Resampling.BICUBIC)
    return np.asarray(rgb)


def mirrored(views: list[np.ndarray]) -> list[np.ndarray]:
    """Add to the views their mirrors (left and right exchanged)."""
    return views + [view[:, ::-1] for view in views]
