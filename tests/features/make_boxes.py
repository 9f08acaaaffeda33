"""Write the table of boxes in Flickr8k's images again: a quarter of an hour of one core.

    python -m tests.features.make_boxes DATA
"""

import sys
from collections.abc import Sequence

from itr_study.data import load_dataset
from itr_study.data.box_table import KEPT, BoxTable
from itr_study.encoders.nanodet import NanoDet
from itr_study.features.images import computed_boxes
from itr_study.files.paths import home


def main(arguments: Sequence[str]) -> None:
    """Detect, or go on with it; write."""
    found = computed_boxes(load_dataset("flickr8k", *arguments), NanoDet(), home() / "features")
    images = sorted(found.images)
    table = BoxTable.join(images, [found.of(image) for image in images], found.made_with)
    table.write(KEPT["flickr8k"])
    print(f"{len(table.found.scores)} boxes of {len(images)} images")


if __name__ == "__main__":
    main(sys.argv[1:])
