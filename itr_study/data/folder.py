"""The user's own pictures: with images/ and captions.csv (image, text, split), or without texts."""

import csv
import hashlib
import io
from collections.abc import Iterable
from itertools import count
from pathlib import Path, PurePosixPath
from unicodedata import normalize

import numpy as np

from itr_study.data.assemble import Caption, assemble, fingerprint
from itr_study.data.base import (
    SPLITS,
    DataError,
    DataReport,
    DatasetRecord,
    Problem,
    RetrievalDataset,
    Split,
    find_part,
    find_root,
    read_text,
    repeated,
)
from itr_study.data.caption_noise import repetitions
from itr_study.data.picture_checks import check_pictures
from itr_study.data.picture_files import SUFFIXES, open_picture, pictures_below

TABLE = "captions.csv"
PICTURES = "pictures"  # name of a data set without texts, and of its only split
FEWEST = 100  # images of dev and test: below, one image moves R@K by more than a point
SPLIT_NAMES = {"train": "train", "dev": "dev", "val": "dev", "validation": "dev", "test": "test"}
OBTAIN = (f"Make a folder with images/ and {TABLE}: columns image (file name below images/), text "
          "(one caption a line, any number for each image) and, if you like, split (train, dev or "
          "test). Pictures without captions are searched by itr-study search --pictures FOLDER.")
TERMS = "Your own pictures and captions."


def load(root: Path | str | None = None, *, skip_bad: bool = False, cache: Path | None = None
         ) -> RetrievalDataset:
    """Read the user's pictures and captions.

    Without a split column the splits are made from a hash of each image id: 80 / 10 / 10 %,
    the same on every machine, and an image stays where it is when others are added (`hash_splits`).

    Args:    root: the folder, or one that holds it as `folder/`; skip_bad: leave out pictures
             that cannot be decoded; cache: folder of the memory of checks, None = the home.
    Raises:  DataError listing everything that is wrong, with the remedy.
    """
    root = find_root(root, "folder", marks=(TABLE,), obtain=OBTAIN)
    report = DataReport(remedy=f"Correct {TABLE} or images/. {OBTAIN}")
    folder = find_part(root, ("images",), "folder: the pictures")
    rows = _rows(find_part(root, (TABLE,), "folder: the captions"), report)
    images = _splits(rows, report)
    numbers = {image: count() for image, _, _ in rows}
    captions = [Caption(image, f"{image}#{next(numbers[image])}", text) for image, text, _ in rows]
    on_disk = pictures_below(folder).keys()
    file_of = _files(numbers, on_disk)
    report.errors += [Problem("image without captions", name, f"{TABLE} does not name it")
                      for name in sorted(on_disk - set(file_of.values()))]
    report.counts.update(images=len(on_disk), texts=len(captions))
    pictures = {image: folder / name for image, name in file_of.items()}
    dataset = assemble("folder", images, captions, pictures, report, cache=cache,
                       skip_bad=skip_bad, terms=TERMS)
    report.notes += repetitions(dataset.splits, pictures)
    return dataset


def _files(images: Iterable[str], on_disk: Iterable[str]) -> dict[str, str]:
    """Image id -> file name: equal but for how accented letters are written (NFC or NFD)."""
    alike = {normalize("NFC", name): name for name in on_disk}
    return {image: image if image in on_disk else alike.get(normalize("NFC", image), image)
            for image in images}


def hash_splits(ids: list[str]) -> dict[str, list[str]]:
    """Split 80 / 10 / 10 % by a hash of each id; the order of ids is kept.

    A split that stays empty, as happens with few images, is given one image of the fullest.
    """
    place = {i: int(hashlib.sha256(i.encode()).hexdigest()[:8], 16) / 2**32 for i in ids}
    split = {i: "train" if p < 0.8 else "dev" if p < 0.9 else "test" for i, p in place.items()}
    for name in SPLITS:
        members = {s: [i for i in split if split[i] == s] for s in SPLITS}
        fullest = max(SPLITS, key=lambda s: len(members[s]))
        if not members[name] and len(members[fullest]) > 1:
            split[max(members[fullest], key=place.get)] = name
    return {name: [i for i in split if split[i] == name] for name in SPLITS}


def _rows(path: Path, report: DataReport) -> list[tuple[str, str, str | None]]:
    """(image, text, split or None) of every line; lines that cannot be used become errors."""
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    columns = reader.fieldnames or []
    if twice := repeated(columns):
        raise DataError(f"{path} has the column {twice[0][0]} twice; rename or remove one")
    if not {"image", "text"} <= set(columns):
        raise DataError(f"{path}: expected the columns image, text (and split), found "
                        f"{', '.join(columns) or 'none'}. {OBTAIN}")
    rows = []
    try:
        for row in reader:
            if problem := _row_problem(row):
                report.error("malformed line", f"{path.name}:{reader.line_num}", problem)
            else:
                given = row.get("split")
                split = None if given is None else SPLIT_NAMES[given.strip().lower()]
                image = PurePosixPath(row["image"].strip()).as_posix()
                rows.append((image, row["text"].strip(), split))
    except csv.Error as error:
        line = f"{path}:{reader.reader.line_num}"
        remedy = "a text with commas or quotes belongs in double quotes, a quote in it is doubled"
        if "field limit" in str(error):
            remedy = (f"a text is longer than {csv.field_size_limit():,} characters: is a quote "
                      "never closed?")
        raise DataError(f"{line} is not CSV ({error}); {remedy}") from error
    return rows


def _row_problem(row: dict[str | None, str | list[str] | None]) -> str | None:
    """What keeps a line from being used, or None."""
    if None in row or None in row.values():
        return "too many or too few columns; a text with commas belongs in double quotes"
    name = PurePosixPath(row["image"].strip())
    if not row["image"].strip() or name.is_absolute() or ".." in name.parts:
        return f"image {row['image']!r} is not a file name below images/"
    if "split" in row and row["split"].strip().lower() not in SPLIT_NAMES:
        return f"split {row['split']!r} is none of {', '.join(SPLIT_NAMES)}"
    return None


def _splits(rows: list[tuple[str, str, str | None]], report: DataReport) -> dict[str, list[str]]:
    """Image ids by split, in order of first mention, from the split column or by hash."""
    if not rows:
        report.error("empty split", TABLE, "it holds no usable line")
        return {}
    if rows[0][2] is None:
        ids = list(dict.fromkeys(image for image, _, _ in rows))
        if len(ids) < len(SPLITS):
            report.error("empty split", TABLE, f"it names {len(ids)} images, and three splits need "
                         f"at least {len(SPLITS)}")
        return hash_splits(ids)
    return {name: list(dict.fromkeys(image for image, _, split in rows if split == name))
            for name in SPLITS}


FOLDER = DatasetRecord("folder", load, folders=("folder",), searched="all")


def load_pictures(folder: Path | str, cache: Path | None = None) -> RetrievalDataset:
    """Read all pictures below a folder as one split without texts; their names are their ids.

    Those that cannot be decoded are left out, with the reason, in `report.excluded`.

    Args:    cache: folder of the memory of checks, None = the home.
    Raises:  DataError where there is no folder, or no picture that can be decoded.
    """
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}; expected a folder of pictures")
    files = pictures_below(folder)
    bad, sizes, notes = check_pictures(files, cache)
    ids = tuple(name for name in files if name not in {problem.where for problem in bad})
    if not ids:
        raise DataError(f"{folder} holds no picture that can be decoded ({len(bad)} broken); "
                        f"looked for {', '.join(SUFFIXES)}")
    splits = {PICTURES: Split(PICTURES, ids, (), (), np.zeros(0, np.int64))}
    return RetrievalDataset(
        PICTURES, splits, lambda image: open_picture(files[image]),
        fingerprint(splits, [(name, sizes[name]) for name in ids]),
        DataReport(counts={"images": len(files)}, excluded=bad, notes=notes))


def too_small(dataset: RetrievalDataset) -> list[str]:
    """Warn, in a sentence each, of splits that measure models and have fewer than 100 images.

    Example:  of a test split with one image: "test has 1 image: R@10 is 100 % by chance, ..."
    """
    sentences = []
    for name, split in dataset.splits.items():
        count = len(split.image_ids)
        if name != "train" and count < FEWEST:
            chance, step = min(100, 1000 / count), 100 / count
            sentences.append(
                f"{name} has {count} image{'s' * (count != 1)}: R@10 is {chance:.0f} % by chance, "
                f"and one image more or less moves R@K by {step:.0f} points; give it {FEWEST} or "
                "more, or do not believe its numbers")
    return sentences
