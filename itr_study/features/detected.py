"""Boxes that a detector found in the pictures of a data set: kept beside the code, or computed."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from itr_study.data.base import RetrievalDataset
from itr_study.data.box_table import BoxTable, Detections, kept_boxes
from itr_study.encoders.nanodet import NanoDet
from itr_study.features.cache import CacheKey, cached
from itr_study.features.images import BLOCK, open_picture
from itr_study.features.parallel import cores
from itr_study.features.whole import all_images
from itr_study.files.atomic import canonical_json


def made_with(detector: NanoDet) -> str:
    """What boxes depend on beside the pictures."""
    return canonical_json([detector.name, detector.version, detector.settings])


def dataset_boxes(dataset: RetrievalDataset, detector: NanoDet, folder: Path) -> BoxTable:
    """The boxes of all pictures of a data set: from the table that is kept beside the code if this
    detector made it, else from the detector, through the cache.

    Raises:  WeightsError where the detector is needed and its files are missing.
    """
    images = all_images(dataset)
    kept = kept_boxes(dataset.name)
    if kept is not None and kept.made_with == made_with(detector) and kept.has(images):
        return kept
    return computed_boxes(dataset, detector, folder)


def computed_boxes(dataset: RetrievalDataset, detector: NanoDet, folder: Path) -> BoxTable:
    """The boxes that the detector finds, whatever is kept beside the code: 0.1 seconds of a core a
    picture, once. A stopped computation goes on where it was."""
    images = all_images(dataset)

    def compute(start: int, stop: int) -> np.ndarray:
        pictures = (open_picture(dataset, image) for image in images[start:stop])
        return np.stack([as_rows(detector.detect(picture), detector.settings["most"])
                         for picture in pictures])

    key = CacheKey(dataset.name, dataset.content, detector.name, detector.version,
                   detector.settings)
    rows = cached(key, len(images), compute, folder, dtype="float32", block=BLOCK, workers=cores())
    return BoxTable.join(images, [from_rows(of_picture) for of_picture in rows],
                         made_with(detector))


def as_rows(found: Detections, most: int) -> np.ndarray:
    """(most, 6) float32: class, score, left, top, right, bottom; zeros after the last box."""
    rows = np.zeros((most, 6), np.float32)
    rows[:len(found.classes)] = np.column_stack(found)
    return rows


def from_rows(rows: Sequence) -> Detections:
    """What `as_rows` was given."""
    rows = np.asarray(rows, np.float64)
    rows = rows[rows[:, 1] > 0]
    return Detections(rows[:, 0].astype(np.int64), rows[:, 1], rows[:, 2:]).rounded()
