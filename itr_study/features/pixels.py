"""Pictures as pixels, for models that fine-tune their image network."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image

from itr_study.encoders.registry import IMAGE_ENCODERS
from itr_study.encoders.views import make_views
from itr_study.features.specs import ImagePart


@dataclass(frozen=True, eq=False)
class Pixels:
    """The pictures of a split, decoded when a batch asks for them: memory does not grow with I.

    Shape: called with images (N,), indices into image_ids, gives (N, 3, size, size) uint8.
    """

    open_image: Callable[[str], Image.Image]
    image_ids: tuple[str, ...]
    size: int

    def __call__(self, images: np.ndarray) -> np.ndarray:
        pictures = (self.open_image(self.image_ids[image]) for image in images)
        return np.concatenate([make_views(picture, "one", self.size) for picture in pictures])

    def head(self, images: int) -> "Pixels":
        """The first pictures only."""
        return Pixels(self.open_image, self.image_ids[:images], self.size)


def pixel_size(part: ImagePart) -> int:
    """Pixels a side that the network of a "pixels:<encoder>" part takes."""
    return IMAGE_ENCODERS[part.encoder](part.argument).size
