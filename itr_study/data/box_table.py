"""Boxes that a detector found in many pictures: a table of numbers, kept beside the code.

`flickr8k_boxes.npz` holds those of Flickr8k's 8,000 images of its splits, so that no machine needs
the detector to follow what is said about them. `python -m tests.features.make_boxes DATA` makes it
again; it holds no picture.
"""

import csv
import functools
import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np

from itr_study.checks import check_count
from itr_study.data.base import DataError
from itr_study.data.vocabulary import tokenize
from itr_study.files.atomic import write_atomic

# Boxes in a picture: (N, 4) left, top, right and bottom in fractions of its sides.

def grid_boxes(side: int) -> np.ndarray:
    """Where the cells of a grid lie, row by row: (side * side, 4).

    Example:
        >>> grid_boxes(2)[1].tolist()  # top right
        [0.5, 0.0, 1.0, 0.5]
    """
    check_count("side", side)
    row, column = np.divmod(np.arange(side * side), side)
    return np.stack([column, row, column + 1, row + 1], axis=1) / side


def areas(boxes: np.ndarray) -> np.ndarray:
    """(..., 4) -> (...) share of the picture; 0 for boxes whose sides have changed places."""
    return np.clip(boxes[..., 2:] - boxes[..., :2], 0, None).prod(axis=-1)


def shared(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Area that box i (N, 4) has in common with box j (M, 4): (N, M)."""
    return areas(np.concatenate([np.maximum(some[:, None, :2], others[None, :, :2]),
                                 np.minimum(some[:, None, 2:], others[None, :, 2:])], axis=-1))


def overlaps(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union of box i (N, 4) with box j (M, 4): (N, M), 0 for empty boxes.

    Example:
        >>> overlaps(np.array([[0, 0, 0.5, 1]]), np.array([[0.25, 0, 0.75, 1], [0, 0, 0.5, 1]]))
        array([[0.33333333, 1.        ]])
    """
    both = shared(some, others)
    union = areas(some)[:, None] + areas(others)[None] - both
    return np.divide(both, union, out=np.zeros(both.shape), where=union > 0)


def separate(boxes: np.ndarray, scores: np.ndarray, overlap: float,
             classes: np.ndarray | None = None) -> np.ndarray:
    """Indices of the boxes (N, 4) that stay, the highest score (N,) first: of boxes that overlap by
    more than `overlap` (intersection over union) only the first, and of boxes with classes (N,)
    only those of one class drive each other out. Of equal scores the first in order stands first.

    Example: the second box overlaps the first by 0.9; the third lies apart
        >>> boxes = np.array([[0, 0, 0.9, 1], [0, 0, 1, 1], [0.9, 0.9, 1, 1]])
        >>> separate(boxes, np.array([0.5, 0.4, 0.6]), 0.8)
        array([2, 0])
    """
    classes = np.zeros(len(boxes), int) if classes is None else classes
    left, kept = np.argsort(-scores, kind="stable"), []
    while len(left):
        one, left = left[0], left[1:]
        kept.append(one)
        alike = overlaps(boxes[one][None], boxes[left])[0] > overlap
        left = left[~(alike & (classes[left] == classes[one]))]
    return np.array(kept, np.int64)


def covered(places: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Share of each place (R, 4) that lies in any of some boxes (N, 4): (R,).

    What two boxes have in common counts once: edges of all cut the picture into tiles that are
    wholly in or out, and a place is made of tiles.

    Raises:  ValueError for a place without an area.
    Example: the left half, of which two boxes that overlap cover three quarters
        >>> covered(np.array([[0, 0, 0.5, 1]]), np.array([[0, 0, 1, 0.5], [0, 0.25, 1, 0.75]]))
        array([0.75])
    """
    size = areas(places)
    if not (size > 0).all():
        raise ValueError(f"place {int(np.argmin(size))} has no area; give left, top, right and "
                         "bottom, each above 0")
    everything = np.concatenate([places, boxes])
    across, down = (np.unique(everything[:, [axis, axis + 2]]) for axis in (0, 1))
    inside = np.zeros((len(down) - 1, len(across) - 1), bool)
    for left, top, right, bottom in boxes:
        inside |= (((down[:-1] >= top) & (down[1:] <= bottom))[:, None]
                   & ((across[:-1] >= left) & (across[1:] <= right)))
    tiles = inside * np.outer(np.diff(down), np.diff(across))
    total = np.pad(tiles.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))  # up to each edge
    x0, x1 = (np.searchsorted(across, places[:, i]) for i in (0, 2))
    y0, y1 = (np.searchsorted(down, places[:, i]) for i in (1, 3))
    found = total[y1, x1] - total[y0, x1] - total[y1, x0] + total[y0, x0]
    return np.clip(found / size, 0, 1)


# The 80 classes of COCO's objects, and which words of a caption name one of them.
#
# `coco_classes.csv` gives the words of each class, in the order in which detectors count the
# classes; words of a name that belong together are joined by "_". Its last line holds names of no
# class, such as "train track", so that the train in them is not taken for one. The words are
# ours, chosen while reading captions of Flickr8k's training split.

TABLE = Path(__file__).with_name("coco_classes.csv")


class Named(NamedTuple):
    """Words `start` to `stop` - 1 of a caption, as `tokenize` counts them, name a class."""

    start: int
    stop: int
    number: int  # of the class, 0 to 79


@functools.cache
def coco_classes() -> dict[str, tuple[str, ...]]:
    """Words by class, in COCO's order; those that name none under ""."""
    with open(TABLE, encoding="utf-8", newline="") as file:
        return {row["class"]: tuple(row["words"].split()) for row in csv.DictReader(file)}


@functools.cache
def class_names() -> tuple[str, ...]:
    """The 80 names."""
    return tuple(name for name in coco_classes() if name)


@functools.cache
def _class_of_words() -> dict[tuple[str, ...], int]:
    """Number of the class for the words of a name, -1 for the names of no class."""
    return {tuple(word.split("_")): number if name else -1
            for number, (name, words) in enumerate(coco_classes().items()) for word in words}


def named_classes(caption: str) -> list[Named]:
    """Which words of a caption name a class of COCO, in their order.

    Of names that begin at a word the longest counts, so that a hot dog is no dog. What a caption
    says that is not there ("without a dog") is not understood.

    Example:
        >>> names = [class_names()[named.number] for named in named_classes("Two men and a puppy")]
        >>> names, named_classes("A hot dog on a train track")
        (['person', 'dog'], [Named(start=1, stop=3, number=52)])
    """
    words, table, found, place = tokenize(caption), _class_of_words(), [], 0
    longest = max(map(len, table))
    while place < len(words):
        lengths = range(min(longest, len(words) - place), 0, -1)
        known = [n for n in lengths if tuple(words[place:place + n]) in table]
        length = known[0] if known else 1
        number = table[tuple(words[place:place + length])] if known else -1
        found += [Named(place, place + length, number)] * (number >= 0)
        place += length
    return found


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
