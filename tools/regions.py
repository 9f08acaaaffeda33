"""Write files of bottom-up attention in the layout of published region features.

    python -m tools.regions coco --data DATA trainval_36.tsv test2014_36.tsv
    python -m tools.regions flickr30k --data DATA regions/        a folder of <image>.npz

Splits and captions are those of Karpathy's JSON in DATA/<data set>/. Beside it are written, for
train, dev and test: <split>_ims.npy (images, regions, size), <split>_boxes.npy (left, top, right,
bottom in pixels), <split>_img_sizes.npy (width, height), <split>_caps.txt and <split>_ids.txt.
Every image must have equally many regions, such as 36. Nothing is kept in memory but one image.

A line of a .tsv has image_id, image_w, image_h, num_boxes, boxes and features, these two as
float32 in base64 (Anderson et al., CVPR 2018, tools/generate_tsv.py). An .npz has `features` or
`x`, `boxes` or `bbox`, `image_w` and `image_h`, and is named by its image.
"""

import argparse
import base64
import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from itr_study.data import DATASETS
from itr_study.data.base import DataError, find_root
from itr_study.data.karpathy import read_splits
from itr_study.files.atomic import replace, write_atomic
from itr_study.progress import progress

COLUMNS = ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features")
ARRAYS = ("ims", "boxes", "img_sizes")


class Found(NamedTuple):
    """The regions of one image."""

    image: str
    ims: np.ndarray  # (R, D)
    boxes: np.ndarray  # (R, 4)
    img_sizes: np.ndarray  # (2,) width and height


def read(path: Path) -> Iterator[Found]:
    """Read the images of a .tsv, or of a folder of .npz; DataError for a line or a file."""
    if path.is_dir():
        for file in sorted(path.rglob("*.npz")):
            with np.load(file, allow_pickle=False) as arrays:
                yield of_arrays(file, arrays)
        return
    csv.field_size_limit(sys.maxsize)
    with open(path, encoding="ascii", newline="") as lines:
        for number, row in enumerate(csv.DictReader(lines, COLUMNS, delimiter="\t"), start=1):
            try:
                boxes, features = (np.frombuffer(base64.b64decode(row[name]), np.float32).reshape(
                    int(row["num_boxes"]), -1) for name in ("boxes", "features"))
                yield Found(row["image_id"], features, boxes, np.array(
                    [row["image_w"], row["image_h"]], np.float32))
            except (ValueError, TypeError) as error:
                raise DataError(f"{path}:{number} is no line of bottom-up attention ({error}); "
                                f"expected {', '.join(COLUMNS)}, separated by tabs") from error


def of_arrays(file: Path, arrays: np.lib.npyio.NpzFile) -> Found:
    """Take the regions of an image from its .npz."""
    def array(*names: str) -> np.ndarray:
        for name in names:
            if name in arrays:
                return np.asarray(arrays[name], np.float32)
        raise DataError(f"{file} has no array {' or '.join(names)}; it has "
                        f"{', '.join(arrays.files)}")

    sizes = np.stack([array("image_w"), array("image_h")])
    return Found(file.stem, array("features", "x"), array("boxes", "bbox"), sizes)


def convert(dataset: str, folder: Path, paths: list[Path]) -> dict[str, int]:
    """Write all files of the layout; how many images of each split.

    Raises:  DataError: an image of the JSON that no file has, or that has another number of
             regions than the others. Nothing is left half-written.
    """
    splits = read_splits(folder, dataset)
    place = {Path(image).stem: (name, row) for name, split in splits.items()
             for row, image in enumerate(split.image_ids)}
    outputs: dict[str, np.memmap] = {}
    temporary = {f"{name}_{what}": folder / f".{name}_{what}.npy.tmp"
                 for name in splits for what in ARRAYS}
    missing, first = dict(place), None
    try:
        for found in (one for path in paths for one in progress(read(path), path.name)):
            if found.image not in missing:
                continue
            first = first or found
            if found.ims.shape != first.ims.shape or found.boxes.shape != (len(found.ims), 4):
                raise DataError(f"image {found.image} has regions of {found.ims.shape} and boxes "
                                f"of {found.boxes.shape}, image {first.image} regions of "
                                f"{first.ims.shape}; take files with a fixed number of regions")
            name, row = missing.pop(found.image)
            for what in ARRAYS:
                values, key = getattr(found, what), f"{name}_{what}"
                if key not in outputs:
                    outputs[key] = np.lib.format.open_memmap(
                        temporary[key], "w+", np.float32,
                        (len(splits[name].image_ids), *values.shape))
                outputs[key][row] = values
        if missing:
            raise DataError(f"{len(missing):,} images of {dataset} are in none of these files, "
                            f"such as {', '.join(list(missing)[:3])}; give all files of its splits")
        for key, output in outputs.items():
            output.flush()
            replace(temporary[key], folder / f"{key}.npy")
    finally:
        for path in temporary.values():
            path.unlink(missing_ok=True)
    for name, split in splits.items():
        ids = [Path(split.image_ids[image]).stem for image in split.image_of_text]
        for what, lines in (("ids", ids), ("caps", split.texts)):
            text = "".join(f"{' '.join(line.split())}\n" for line in lines)
            write_atomic(folder / f"{name}_{what}.txt", text.encode())
    return {name: len(split.image_ids) for name, split in splits.items()}


def main() -> None:
    """Convert what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset", choices=["flickr30k", "coco"])
    parser.add_argument("files", nargs="+", type=Path, help=".tsv files, or folders of .npz")
    parser.add_argument("--data", type=Path, required=True, help="folder that holds the data set")
    given = parser.parse_args()
    also, marks = DATASETS[given.dataset].folders[1:], (f"dataset_{given.dataset}.json",)
    folder = find_root(given.data, given.dataset, also=also, marks=marks)
    for name, count in convert(given.dataset, folder, given.files).items():
        print(f"{name}: {count:,} images in {folder}")


if __name__ == "__main__":
    main()
