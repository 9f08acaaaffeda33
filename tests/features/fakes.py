"""A detector and a network that need no weights, and pictures for them."""

import numpy as np
import torch
from PIL import Image

from itr_study.data.box_table import Detections
from itr_study.encoders.base import ImageNetwork


class FakeDetector:
    """Boxes that depend on a picture's first pixel: as many as its red value modulo 5."""

    name, version, calls = "fakedet", 1, 0

    def __init__(self) -> None:
        self.settings = {"most": 6}

    def detect(self, image: Image.Image) -> Detections:
        type(self).calls += 1
        rng = np.random.default_rng(image.getpixel((0, 0)))
        count = image.getpixel((0, 0))[0] % 5
        corners = rng.random((count, 2)) * 0.5
        boxes = np.concatenate([corners, corners + 0.1 + 0.4 * rng.random((count, 2))], axis=1)
        scores = np.sort(rng.uniform(0.2, 1, count))[::-1]
        return Detections(rng.integers(0, 80, count), scores, boxes).rounded()


class Quarters(ImageNetwork):
    """2 x 2 places: mean colour of each quarter of the picture."""

    calls = 0

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        type(self).calls += len(pixels)
        quarters = torch.nn.functional.adaptive_avg_pool2d(pixels.float(), 2)
        return quarters.flatten(2).transpose(1, 2) / 255


class Tiny:
    """An image encoder: 8 x 8 pixels, 3 numbers a place."""

    name, version, size = "tiny", 1, 8

    def __init__(self, argument: str = "", precision: str = "float32") -> None:
        self.settings = {"precision": precision}

    def network(self, device: str = "cpu") -> Quarters:
        return Quarters()
