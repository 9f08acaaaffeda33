"""Regions of photographs: features of a grid, pooled where a detector found something.

`lite0:nanodet:36` is 36 regions a picture: the boxes of NanoDet and, for the rest, fixed windows.
No network is run again: a region's feature is the mean of the cells of `lite0:grid:one` that it
covers. It ends in the region's own box, so that a model knows where it lies.
"""

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from itr_study.checks import check_count
from itr_study.data import box_table
from itr_study.data.base import RetrievalDataset
from itr_study.encoders import DETECTORS
from itr_study.encoders.base import KINDS
from itr_study.features.cache import Compute
from itr_study.features.images import FrozenImages, dataset_boxes, dataset_rows
from itr_study.features.specs import ImagePart

VERSION = 1  # raised when the same boxes and grids give other features than before
GEOMETRY = 5  # numbers at the end of a feature: left, top, right, bottom, area
ALIKE = 0.7  # two boxes that overlap by more are one region, of whatever classes they are


class RegionBoxes(NamedTuple):
    """Where the regions of I pictures lie, and what the detector took them for."""

    boxes: np.ndarray  # (I, R, 4) left, top, right, bottom in fractions of the picture's sides
    classes: np.ndarray  # (I, R) int64, 0 to 79 in COCO's order, -1 for windows


def choose_regions(found: box_table.Detections, regions: int) -> tuple[np.ndarray, np.ndarray]:
    """Choose the regions of a picture: boxes (R, 4) and classes (R,), of windows -1.

    They are its boxes of highest score, at most R - 25, then windows, the fine ones first. There
    are always R, so that none is padding.

    Raises:  ValueError for R outside 26 to 36.
    """
    check_count("regions", regions, least=box_table.FEWEST, most=box_table.MOST)
    most = regions - len(box_table.FINE_WINDOWS)
    kept = box_table.separate(found.boxes, found.scores, ALIKE)[:most]
    boxes = np.concatenate([found.boxes[kept], box_table.WINDOWS])[:regions]
    classes = np.full(regions, -1)
    classes[:len(kept)] = found.classes[kept]
    return boxes, classes


def pooling(boxes: np.ndarray, side: int) -> np.ndarray:
    """Weigh the cells of a grid in each box (R, 4): (R, side * side), rows add up to 1.

    Source:  as RoI pooling (Girshick, Fast R-CNN, ICCV 2015), into one place.
    Differs: the mean by the area that a cell shares with the box, not the maximum over cells that
             are rounded to it: a box smaller than a cell gets that cell.
    Raises:  ValueError for a box outside the picture or without an area.
    Example: half of the left column of a 2 x 2 grid, then a third of what lies right of it
        >>> pooling(np.array([[0, 0, 0.75, 0.5]]), 2).round(4)
        array([[0.6667, 0.3333, 0.    , 0.    ]])
    """
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError(f"boxes must be (R, 4), left, top, right and bottom; got {boxes.shape}")
    wrong = ~((boxes >= 0) & (boxes <= 1)).all(axis=1) | ~(box_table.areas(boxes) > 0)
    if wrong.any():
        raise ValueError(f"box {int(np.argmax(wrong))} is {boxes[np.argmax(wrong)].tolist()}; "
                         "expected 0 <= left < right <= 1 and 0 <= top < bottom <= 1, in fractions "
                         "of the picture's sides")
    common = box_table.shared(boxes, box_table.grid_boxes(side))
    return common / common.sum(axis=1, keepdims=True)


def pooled_regions(grid: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Pool the boxes (R, 4) of a picture from its grid (side^2, D): (R, D + 5) float32.

    Raises:  ValueError as `pooling`, and for a grid that is no square.
    """
    side = int(np.sqrt(len(grid)))
    if grid.ndim != 2 or side * side != len(grid) or not side:
        raise ValueError(f"a grid must be (side * side, D), row by row; got {grid.shape}; use an "
                         "image network whose map is a square")
    means = pooling(boxes, side).astype(np.float32) @ np.asarray(grid, np.float32)
    return np.concatenate([means, boxes, box_table.areas(boxes)[:, None]], axis=1, dtype=np.float32)


def pooled_all(grids: np.ndarray, boxes: Iterable[np.ndarray]) -> np.ndarray:
    """Pool the boxes of N pictures from grids (N, 1, side * side, D): (N, 1, R, D + 5)."""
    return np.stack([pooled_regions(grid[0], of_picture)
                     for grid, of_picture in zip(grids, boxes, strict=True)])[:, None]


class FrozenRegions(FrozenImages):
    """A part of an images spec whose kind is a detector, which runs on the CPU, ready to encode."""

    def __init__(self, part: ImagePart, device: str = "cpu") -> None:
        super().__init__(part, device)
        self.grid = FrozenImages(part._replace(kind="grid", regions=0), device)
        self.detector = DETECTORS[part.kind]()

    @property
    def identity(self) -> list:
        """As that of `FrozenImages`, with the boxes."""
        name, version, settings = self.grid.identity
        boxes = [self.detector.version, self.detector.settings]
        return [name, version, settings | {"kind": self.detector.name, "regions": self.part.regions,
                                           "boxes": boxes, "pooling": VERSION}]

    def encode(self, images: Iterable[Image.Image]) -> np.ndarray:
        """Encode RGB pictures, (N, 1, R, D + 5) float32; the detector looks at each."""
        pictures = list(images)
        boxes = [choose_regions(self.detector.detect(picture), self.part.regions)[0]
                 for picture in pictures]
        return pooled_all(self.grid.encode(pictures), boxes)

    def computing(self, dataset: RetrievalDataset, folder: Path) -> Compute:
        """Make what computes rows from grid and boxes, both asked for when the first row is."""

        @functools.cache
        def sources() -> tuple[np.ndarray, np.ndarray]:
            boxes = [one.boxes for one in self.boxes(dataset, folder).values()]
            return dataset_rows(dataset, self.grid, folder), np.concatenate(boxes)

        def compute(start: int, stop: int) -> np.ndarray:
            return pooled_all(*(values[start:stop] for values in sources()))

        return compute

    def boxes(self, dataset: RetrievalDataset, folder: Path) -> dict[str, RegionBoxes]:
        """Find the regions of the pictures of each split, in the order of their features."""
        table, boxes = dataset_boxes(dataset, self.detector, folder), {}
        for name, split in dataset.splits.items():
            chosen = (choose_regions(table.of(image), self.part.regions)
                      for image in split.image_ids)
            boxes[name] = RegionBoxes(*map(np.stack, zip(*chosen, strict=True)))
        return boxes


def freeze(parts: Iterable[ImagePart], device: str = "cpu") -> dict[ImagePart, FrozenImages]:
    """Freeze the networks of the parts that have one: the first stages count as one, too."""
    made = dict.fromkeys(KINDS, FrozenImages) | dict.fromkeys(DETECTORS, FrozenRegions)
    kinds = {part: KINDS[0] if part.stage else part.kind for part in parts}
    return {part: made[kind](part, device) for part, kind in kinds.items() if kind in made}
