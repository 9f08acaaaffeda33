"""Boxes that a detector found in many pictures: a table of numbers, kept beside the code.

`flickr8k_boxes.npz` holds those of Flickr8k's 8,000 images of its splits, so that no machine needs
the detector to follow what is said about them. `python -m tests.features.make_boxes DATA` makes it
again; it holds no picture.
"""

import functools
import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np

from itr_study.data.base import DataError
from itr_study.data.boxes import areas
from itr_study.files.atomic import write_atomic

KEPT = {"flickr8k": Path(__file__).with_name("flickr8k_boxes.npz")}
SCORE_DIGITS, SIDE_DIGITS = 3, 4  # what is kept; more would say nothing, and differ by machine
REMEDY = "make the table again: python -m tests.features.make_boxes DATA"


class Detections(NamedTuple):
    """N boxes of a picture, the highest score first."""

    classes: np.ndarray  # (N,) int64, 0 to 79 in COCO's order
    scores: np.ndarray  # (N,) float64 in (0, 1]
    boxes: np.ndarray  # (N, 4) left, top, right, bottom in fractions of the picture's sides

    def rounded(self) -> "Detections":
        """With as many digits as are kept, without boxes that then have no area."""
        scores, boxes = self.scores.round(SCORE_DIGITS), self.boxes.round(SIDE_DIGITS)
        there = areas(boxes) > 0
        return Detections(self.classes[there], scores[there], boxes[there])

    def above(self, score: float) -> "Detections":
        """Those of at least this score."""
        return Detections(*(values[self.scores >= score] for values in self))


@dataclass(frozen=True, eq=False)
class BoxTable:
    """The boxes of I pictures, one picture's after the other's.

    Raises:  DataError for boxes that leave the picture or have no area, scores and classes out of
             range, starts that do not fit.
    """

    images: tuple[str, ...]  # I ids, each once
    starts: np.ndarray  # (I + 1,) int64: picture i has the boxes starts[i] to starts[i + 1] - 1
    found: Detections  # of all pictures
    made_with: str  # name, version and settings of the detector

    def __post_init__(self) -> None:
        classes, scores, boxes = self.found
        whole = (len(self.starts) == len(self.images) + 1 and self.starts[0] == 0
                 and (np.diff(self.starts) >= 0).all() and self.starts[-1] == len(boxes)
                 and boxes.shape == (len(boxes), 4)
                 and classes.shape == scores.shape == (len(boxes),)
                 and len(set(self.images)) == len(self.images))
        if not whole:
            raise DataError(f"the table of boxes does not hold together: {len(self.images)} "
                            f"images, {len(self.starts)} starts, {len(boxes)} boxes; {REMEDY}")
        wrong = ~((boxes >= 0) & (boxes <= 1)).all(axis=1) | ~(areas(boxes) > 0)
        wrong |= ~((scores > 0) & (scores <= 1)) | (classes < 0) | (classes > 79)
        if wrong.any():
            place = int(np.argmax(wrong))
            image = self.images[int(np.searchsorted(self.starts, place, "right")) - 1]
            raise DataError(f"image {image} has a box outside the picture or without an area, or a "
                            f"score or class out of range: {boxes[place].tolist()}, "
                            f"{scores[place]}, {classes[place]}; {REMEDY}")

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        return {image: place for place, image in enumerate(self.images)}

    def of(self, image: str) -> Detections:
        """The boxes of one picture; there may be none. DataError for a picture not in the table."""
        if image not in self._places:
            raise DataError(f"no boxes are kept of image {image!r}, only of {len(self.images)} "
                            f"others such as {self.images[0]!r}; {REMEDY}")
        start, stop = self.starts[self._places[image]:][:2]
        return Detections(*(values[start:stop] for values in self.found))

    def has(self, images: Sequence[str]) -> bool:
        """Whether boxes of all these pictures are kept."""
        return all(image in self._places for image in images)

    @classmethod
    def join(cls, images: Sequence[str], found: Sequence[Detections], made_with: str
             ) -> "BoxTable":
        """One table of the boxes of several pictures."""
        starts = np.cumsum([0, *(len(one.scores) for one in found)])
        empty = Detections(np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 4)))
        return cls(tuple(images), starts, Detections(*(
            np.concatenate(values) for values in zip(empty, *found, strict=True))), made_with)

    def write(self, path: Path) -> None:
        """Keep the table as whole numbers; equal tables are equal files."""
        buffer = io.BytesIO()
        classes, scores, boxes = self.found
        counts = np.diff(self.starts)
        np.savez_compressed(
            buffer, images=np.array(self.images), made_with=np.array(self.made_with),
            counts=counts.astype(np.min_scalar_type(counts.max(initial=0))),
            classes=classes.astype(np.uint8),
            scores=np.rint(scores * 10 ** SCORE_DIGITS).astype(np.uint16),
            boxes=np.rint(boxes * 10 ** SIDE_DIGITS).astype(np.uint16))
        write_atomic(path, buffer.getvalue())

    @classmethod
    def read(cls, path: Path) -> "BoxTable":
        """What `write` wrote. Raises: DataError for a file that is missing or broken."""
        try:
            with np.load(path, allow_pickle=False) as file:
                kept = dict(file)
            images = tuple(map(str, kept["images"]))
            found = Detections(kept["classes"].astype(np.int64),
                               kept["scores"] / 10 ** SCORE_DIGITS,
                               kept["boxes"] / 10 ** SIDE_DIGITS)
            starts = np.cumsum([0, *kept["counts"]])
            made_with = str(kept["made_with"])
        except (OSError, ValueError, TypeError, KeyError, EOFError, RuntimeError, BadZipFile,
                zlib.error) as error:
            raise DataError(f"{path} cannot be read as a table of boxes ({error}); {REMEDY}"
                            ) from error
        return cls(images, starts, found, made_with)


@functools.cache
def kept_boxes(dataset: str) -> BoxTable | None:
    """The table kept of a data set's pictures, None where none is."""
    return BoxTable.read(KEPT[dataset]) if dataset in KEPT else None
