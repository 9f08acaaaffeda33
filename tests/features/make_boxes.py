"""Write the table of boxes in Flickr8k's images again: a quarter of an hour of one core.

    python -m tests.features.make_boxes DATA
"""

import io
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from itr_study.data import load_dataset
from itr_study.data.box_table import KEPT, SCORE_DIGITS, SIDE_DIGITS, BoxTable
from itr_study.encoders.nanodet import NanoDet
from itr_study.features.images import computed_boxes
from itr_study.files.atomic import write_atomic
from itr_study.files.paths import home


def write(table: BoxTable, path: Path) -> None:
    """Keep the table as whole numbers; equal tables are equal files."""
    buffer = io.BytesIO()
    classes, scores, boxes = table.found
    counts = np.diff(table.starts)
    np.savez_compressed(
        buffer, images=np.array(table.images), made_with=np.array(table.made_with),
        counts=counts.astype(np.min_scalar_type(counts.max(initial=0))),
        classes=classes.astype(np.uint8),
        scores=np.rint(scores * 10 ** SCORE_DIGITS).astype(np.uint16),
        boxes=np.rint(boxes * 10 ** SIDE_DIGITS).astype(np.uint16))
    write_atomic(path, buffer.getvalue())


def main(arguments: Sequence[str]) -> None:
    """Detect, or go on with it; write."""
    found = computed_boxes(load_dataset("flickr8k", *arguments), NanoDet(), home() / "features")
    images = sorted(found.images)
    table = BoxTable.join(images, [found.of(image) for image in images], found.made_with)
    write(table, KEPT["flickr8k"])
    print(f"{len(table.found.scores)} boxes of {len(images)} images")


if __name__ == "__main__":
    main(sys.argv[1:])
