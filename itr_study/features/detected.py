"""Boxes that a detector found in the pictures of a data set: computed once, kept in the cache."""

from pathlib import Path

import numpy as np

from itr_study.data.base import RetrievalDataset
from itr_study.encoders.nanodet import NanoDet
from itr_study.features.cache import CacheKey, cached
from itr_study.features.images import BLOCK, open_picture
from itr_study.features.parallel import cores

DIGITS_OF_SCORES, DIGITS_OF_SIDES = 3, 4  # what is kept: more says nothing, and differs by machine


def dataset_boxes(dataset: RetrievalDataset, detector: NanoDet, folder: Path) -> np.ndarray:
    """Rows (I, most, 6) of the pictures of all splits, in the order of the splits: class, score,
    left, top, right, bottom; the highest score first, rows of zeros after the last box.

    A picture takes about 0.1 seconds of a core. A stopped computation goes on where it was.
    """
    ids = [image for split in dataset.splits.values() for image in split.image_ids]

    def compute(start: int, stop: int) -> np.ndarray:
        return np.stack([as_rows(detector, open_picture(dataset, image))
                         for image in ids[start:stop]])

    key = CacheKey(dataset.name, dataset.content, detector.name, detector.version,
                   detector.settings)
    return cached(key, len(ids), compute, folder, dtype="float32", block=BLOCK, workers=cores())


def as_rows(detector: NanoDet, picture: object) -> np.ndarray:
    """(most, 6) float32 of one picture."""
    found = detector.detect(picture)
    rows = np.zeros((detector.settings["most"], 6), np.float32)
    rows[:len(found.classes)] = np.column_stack([
        found.classes, found.scores.round(DIGITS_OF_SCORES), found.boxes.round(DIGITS_OF_SIDES)])
    return rows
