"""Crisscrossed Captions (CxC): graded ratings of pairs of COCO captions and images.

Source: Parekh, Baldridge, Cer, Waters and Yang, EACL 2021. Captions are known by their sentence
ids in COCO, images by the number in their file names; both are of Karpathy's 5K val and test.
"""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from itr_study.checks import check_choice
from itr_study.data.base import DataError, DataReport, find_root, read_text

SPLITS = ("val", "test")
CAPTION = re.compile(r"COCO_(?:val|train)2014:sentid:(\d+)")
IMAGE = re.compile(r"COCO_(?:val|train)2014_(\d{12})\.jpg")
# Columns with their ids, and what the sampling method calls pairs of one and the same image.
KINDS = {"sits": (("caption", "image"), (CAPTION, IMAGE), "c2i_original"),
         "sts": (("caption1", "caption2"), (CAPTION, CAPTION), "c2c_cocaption"),
         "sis": (("image1", "image2"), (IMAGE, IMAGE), None)}
OBTAIN = ("CxC is {sits,sts,sis}_{val,test}.csv, in the folder data of the repository "
          "google-research-datasets/Crisscrossed-Captions.")
TERMS = ("Crisscrossed Captions: ratings of COCO's captions and images, handed out by Google "
         "Research; cite Parekh et al., EACL 2021.")


@dataclass(frozen=True, eq=False)
class Crisscrossed:
    """N rated pairs: "sits" of a caption and an image, "sts" of captions, "sis" of images."""

    kind: str
    split: str
    first: np.ndarray  # (N,) int64, ids in COCO: of sentences or images
    second: np.ndarray  # (N,) int64
    ratings: np.ndarray  # (N,) in [0, 5], the mean over raters, higher = more alike
    own: np.ndarray  # (N,) bool: both sides belong to the same image
    terms: str = TERMS

    def __len__(self) -> int:
        return len(self.ratings)


def lies_in(root: Path | str | None) -> bool:
    """Tell whether the ratings of images and texts lie below a folder."""
    name = "sits_test.csv"
    try:
        return (find_root(root, "cxc", marks=(name,)) / name).is_file()
    except DataError:
        return False


def read_cxc(root: Path | str | None, kind: str = "sits", split: str = "test") -> Crisscrossed:
    """Read one file of ratings.

    Args:    root: a folder that holds `cxc/`, or that folder; kind: "sits" (caption-image), "sts"
             (caption-caption) or "sis" (image-image); split: "val" or "test".
    Raises:  ValueError for another kind or split; DataError listing all that is wrong.
    """
    check_choice("kind", kind, KINDS)
    check_choice("split", split, SPLITS)
    name = f"{kind}_{split}.csv"
    path = find_root(root, "cxc", marks=(name,), obtain=OBTAIN) / name
    if not path.is_file():
        raise DataError(f"cxc: there is no {path}. {OBTAIN}")
    columns, patterns, same = KINDS[kind]
    rows = csv.reader(read_text(path).splitlines())
    expected, header = [*columns, "agg_score", "sampling_method"], next(rows, [])
    if header != expected:
        raise DataError(f"{path}: expected the columns {', '.join(expected)}, found "
                        f"{', '.join(header) or 'none'}. {OBTAIN}")
    report = DataReport(remedy=f"Obtain {name} again, then read again. {OBTAIN}")
    read = []
    for number, row in enumerate(rows, start=2):
        if rated := _rated(row, patterns):
            read.append((*rated, row[3] == same))
        else:
            report.error("malformed row", f"{name}:{number}", "expected two ids, a rating from 0 "
                         f"to 5 and a method, got {','.join(row)[:90]!r}")
    report.refuse_ratings(name, read)
    return Crisscrossed(kind, split, *(np.array(values) for values in zip(*read, strict=True)))


def _rated(row: list[str], patterns: tuple[re.Pattern, ...]) -> tuple[int, int, float] | None:
    """Both ids of a row and its rating; None if they are not ids, or no number in [0, 5]."""
    try:
        *cells, rating, _ = row
        value = float(rating)
    except ValueError:  # another number of columns, too
        return None
    ids = [pattern.fullmatch(cell) for pattern, cell in zip(patterns, cells, strict=False)]
    fine = len(cells) == 2 and all(ids) and 0 <= value <= 5
    return (int(ids[0][1]), int(ids[1][1]), value) if fine else None
