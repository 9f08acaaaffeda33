"""Boxes in pictures, what captions call the things in them, and a table of those kept by us.

`flickr8k_boxes.npz` holds those of Flickr8k's 8,000 images of its splits, so that no machine needs
the detector to follow what is said about them. `python -m tests.features.make_boxes DATA` makes it
again; it holds no picture.
"""

import csv
import functools
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

# `coco_classes.csv` gives the words of each of COCO's 80 classes, in the order in which detectors
# count the classes; words of a name that belong together are joined by "_". Its last line holds
# names of no class, such as "train track", so that the train in them is not taken for one. The
# words are ours, chosen while reading captions of Flickr8k's training split.
TABLE = Path(__file__).with_name("coco_classes.csv")
KEPT = {"flickr8k": Path(__file__).with_name("flickr8k_boxes.npz")}
SCORE_DIGITS, SIDE_DIGITS = 3, 4  # what is kept; more would say nothing, and differ by machine
REMEDY = "make the table again: python -m tests.features.make_boxes DATA"

# Boxes are (N, 4): left, top, right and bottom in fractions of a picture's sides.


def grid_boxes(side: int) -> np.ndarray:
    """List the cells of a grid, row by row: (side * side, 4).

    Example:
        >>> grid_boxes(2)[1].tolist()  # top right
        [0.5, 0.0, 1.0, 0.5]
    """
    check_count("side", side)
    row, column = np.divmod(np.arange(side * side), side)
    return np.stack([column, row, column + 1, row + 1], axis=1) / side


# The fixed windows that fill up the regions of a photograph after the boxes of a detector: the
# cells of a 3 x 3 and of a 4 x 4 grid, the whole, its quarters and halves, the middle across and
# down. A picture with few boxes has all of them.
FINE_WINDOWS = np.concatenate([grid_boxes(3), grid_boxes(4)])
WINDOWS = np.concatenate([
    FINE_WINDOWS, [[0, 0, 1, 1]], grid_boxes(2),
    [[0, 0, 0.5, 1], [0.5, 0, 1, 1], [0, 0, 1, 0.5], [0, 0.5, 1, 1], [0, 0.25, 1, 0.75],
     [0.25, 0, 0.75, 1]]])
FEWEST, MOST = len(FINE_WINDOWS) + 1, len(WINDOWS)  # regions: fine windows and a box; all windows


def areas(boxes: np.ndarray) -> np.ndarray:
    """Share of the picture (...) of boxes (..., 4); 0 where sides have changed places."""
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
    """Choose the boxes (N, 4) that stay, the highest score (N,) first; gives their indices.

    Of boxes that overlap by more than `overlap` (intersection over union), and have one class if
    there are classes (N,), only the first stays.

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

    What two boxes have in common counts once.

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


class Named(NamedTuple):
    """Words `start` to `stop` - 1 of a caption, as `tokenize` counts them, name a class."""

    start: int
    stop: int
    number: int  # of the class, 0 to 79


@functools.cache
def coco_classes() -> dict[str, tuple[str, ...]]:
    """Read the words by class, in COCO's order; those that name none under ""."""
    with open(TABLE, encoding="utf-8", newline="") as file:
        return {row["class"]: tuple(row["words"].split()) for row in csv.DictReader(file)}


@functools.cache
def class_names() -> tuple[str, ...]:
    """List the 80 names."""
    return tuple(name for name in coco_classes() if name)


@functools.cache
def _class_of_words() -> dict[tuple[str, ...], int]:
    """Number of the class for the words of a name, -1 for the names of no class."""
    return {tuple(word.split("_")): number if name else -1
            for number, (name, words) in enumerate(coco_classes().items()) for word in words}


def named_classes(caption: str) -> list[Named]:
    """Find which words of a caption name a class of COCO, in their order, "no dog" included.

    Of names that begin at a word the longest counts, so that a hot dog is no dog.

    Example:
        >>> names = [class_names()[named.number] for named in named_classes("Two men and a puppy")]
        >>> names, named_classes("A hot dog on a train track")
        (['person', 'dog'], [Named(start=1, stop=3, number=52)])
    """
    words, table, found, place = tokenize(caption), _class_of_words(), [], 0
    longest = max(map(len, table))
    while place < len(words):
        names = [tuple(words[place:place + n]) for n in range(longest, 0, -1)]
        name = next((name for name in names if name in table), words[place:place + 1])
        number = table.get(tuple(name), -1)
        found += [Named(place, place + len(name), number)] * (number >= 0)
        place += len(name)
    return found


class Detections(NamedTuple):
    """N boxes of a picture, the highest score first."""

    classes: np.ndarray  # (N,) int64, 0 to 79 in COCO's order
    scores: np.ndarray  # (N,) float64 in (0, 1]
    boxes: np.ndarray  # (N, 4) left, top, right, bottom in fractions of the picture's sides

    def rounded(self) -> "Detections":
        """Round to as many digits as are kept, without boxes that then have no area."""
        scores, boxes = self.scores.round(SCORE_DIGITS), self.boxes.round(SIDE_DIGITS)
        there = areas(boxes) > 0
        return Detections(self.classes[there], scores[there], boxes[there])

    def above(self, score: float) -> "Detections":
        """Take those of at least this score."""
        return Detections(*(values[self.scores >= score] for values in self))


@dataclass(frozen=True, eq=False)
class BoxTable:
    """The boxes of I pictures, one picture's after the other's; DataError where one cannot be."""

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
        """Find the boxes of one picture, perhaps none; DataError for one not in the table."""
        if image not in self._places:
            raise DataError(f"no boxes are kept of image {image!r}, only of {len(self.images)} "
                            f"others such as {self.images[0]!r}; {REMEDY}")
        start, stop = self.starts[self._places[image]:][:2]
        return Detections(*(values[start:stop] for values in self.found))

    def has(self, images: Sequence[str]) -> bool:
        """Tell whether boxes of all these pictures are kept."""
        return all(image in self._places for image in images)

    @classmethod
    def join(cls, images: Sequence[str], found: Sequence[Detections], made_with: str) -> "BoxTable":
        """Make one table of the boxes of several pictures."""
        starts = np.cumsum([0, *(len(one.scores) for one in found)])
        empty = Detections(np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 4)))
        return cls(tuple(images), starts, Detections(*(
            np.concatenate(values) for values in zip(empty, *found, strict=True))), made_with)

    @classmethod
    def read(cls, path: Path) -> "BoxTable":
        """Read a table that is kept as whole numbers; DataError where it is missing or broken."""
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
    """Read the table kept of a data set's pictures, None where none is."""
    return BoxTable.read(KEPT[dataset]) if dataset in KEPT else None
