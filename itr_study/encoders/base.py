"""What an encoder is, a frozen network or statistic; views of a picture: mirror, ten crops."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from itr_study.arithmetic import is_fast
from itr_study.data.vocabulary import TextReader

KINDS = ("pooled", "grid")  # one vector a picture (R = 1), or one a place (R = H * W)

# The LEAST precision of the arithmetic; part of the cache key. A machine that has no fast
# arithmetic of that kind computes in float32, so that a key means the same data everywhere.
PRECISIONS = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


class WeightsError(ValueError):
    """Pretrained weights cannot be found; the message says where was looked, and the remedy."""


class ImageNetwork(nn.Module):
    """Pixels to features, preprocessing included, so that nobody can normalise wrongly.

    Shape:   forward: pixels (N, 3, H, W), 0 to 255, any dtype -> grid (N, R, D);
             pooled: the same pixels -> (N, D).
    """

    def pooled(self, pixels: Tensor) -> Tensor:
        """(N, D): mean over places in float32; networks with a pooling of their own override."""
        return self(pixels).float().mean(dim=1)


class ImageEncoder(Protocol):
    """A frozen image network by name; name, version and `settings` enter the cache key."""

    name: str
    version: int
    size: int  # native height and width in pixels
    settings: dict

    def network(self, device: torch.device | str) -> ImageNetwork:
        """The frozen network in the encoder's precision, in evaluation mode, on the device."""
        ...

    def trainable(self) -> ImageNetwork:
        """The same network in float32 with gradients, for fine-tuning."""
        ...


class TextEncoder(TextReader, Protocol):
    """Texts to vectors. As it stands it learns nothing and reads every word."""

    name: str
    version: int
    settings: dict
    threaded: bool = False  # whether several threads may encode at once, and that is faster

    def fit(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Learn from the texts of the training split: arrays, {} where nothing is learnt."""
        return {}

    def load(self, fitted: dict[str, np.ndarray]) -> None:
        """Take what `fit` returned, in this process or an earlier one."""

    def encode(self, texts: list[str]) -> np.ndarray:
        """Encode texts, (T, D) float32."""
        ...


def working_dtype(precision: str, device: torch.device | str) -> torch.dtype:
    """Choose the dtype to compute in: that of `precision` where it is fast, else float32."""
    dtype = PRECISIONS[precision]
    if torch.device(device).type != "cpu" or dtype == torch.float32 or is_fast(dtype):
        return dtype
    return torch.float32


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
