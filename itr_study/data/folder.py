"""The user's own pictures: with images/ and captions.csv (image, text, split), or without texts."""

import csv
import hashlib
import io
import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection
from itertools import count, zip_longest
from pathlib import Path, PurePosixPath
from unicodedata import normalize

import numpy as np

from itr_study.data import base
from itr_study.data.assemble import Caption, assemble, fingerprint
from itr_study.data.base import DataError, DataReport, DatasetRecord, Problem, RetrievalDataset
from itr_study.data.caption_noise import repetitions
from itr_study.data.picture_files import NO_PICTURE, check_pictures, open_picture, pictures_below

TABLE = "captions.csv"
PICTURES = "pictures"  # name of a data set without texts, and of its only split
FEWEST = 100  # images of dev and test: below, one image moves R@K by more than a point
COLUMNS = "image", "text"  # and, if there is one, split
DELIMITERS = ",;\t|"
SPLIT_NAMES = {"train": "train", "dev": "dev", "val": "dev", "validation": "dev", "test": "test"}
OBTAIN = (f"Make a folder with images/ and {TABLE}: columns image (file name below images/), text "
          "(one caption a line, any number for each image) and, if you like, split (train, dev or "
          "test). Pictures without captions are searched by itr-study search --pictures FOLDER.")
UNEVEN = ("too many or too few columns: the header and all lines need the same separator, and a "
          "text that holds it belongs in double quotes")
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
    root = base.find_root(root, "folder", marks=(TABLE,), obtain=OBTAIN)
    report = DataReport(remedy=f"Correct {TABLE} or images/: a line of the table names a file "
                               "below images/, each file there has a line, each split an image.")
    folder = base.find_part(root, ("images",), "folder: the pictures")
    on_disk, report.excluded = pictures_below(folder)
    rows = _rows(base.find_part(root, (TABLE,), "folder: the captions (image, text)"), report)
    id_of, file_of = _files(dict.fromkeys(image for image, _, _ in rows), on_disk, folder, report)
    rows = [(id_of[image], text, split) for image, text, split in rows]
    images = _splits(rows, report)
    numbers = {image: count() for image, _, _ in rows}
    captions = [Caption(image, f"{image}#{next(numbers[image])}", text) for image, text, _ in rows]
    named = {os.path.realpath(path) for path in file_of.values()}
    report.errors += [Problem("image without captions", name, f"no usable line of {TABLE} names it")
                      for name, path in on_disk.items() if os.path.realpath(path) not in named]
    report.counts.update(images=len(on_disk), texts=len(captions))
    dataset = assemble("folder", images, captions, file_of, report, cache=cache,
                       skip_bad=skip_bad, terms=TERMS)
    report.notes += repetitions(dataset.splits, dataset.sha256)
    return dataset


def _files(names: dict[str, None], on_disk: dict[str, Path], folder: Path, report: DataReport
           ) -> tuple[dict[str, str], dict[str, Path]]:
    """Name in the table -> id of the image, and id -> file; how most others differ is said once."""
    alike, stems, same = defaultdict(list), defaultdict(list), {}
    for file in on_disk:
        alike[_parts(file)].append(file)
    for name in names:
        parts = _parts(name)
        below = parts[parts.index("images") + 1:] if "images" in parts else parts
        files = alike.get(parts) or alike.get(below) or []
        if name in on_disk or len(files) == 1:
            same[name] = name if name in on_disk else files[0]
    missing = [name for name in names if name not in same and not os.path.isfile(folder / name)]
    for file in on_disk.keys() - same.values():
        stems[PurePosixPath(_parts(file)[-1]).stem].append(file)
    near = {name: files[0] for name in missing
            if len(files := stems.get(PurePosixPath(_parts(name)[-1]).stem, [])) == 1}
    if 2 * len(near) > len(missing):
        name, file = next(iter(near.items()))
        report.error("names that are not those of files", TABLE, f"{len(near):,}, such as {name!r}:"
                     f" should that be {file!r}?")
        same |= near
    id_of = {name: file if file in names else normalize("NFC", file) for name, file in same.items()}
    file_of = {id_of[name]: on_disk[file] for name, file in same.items()}
    file_of |= {name: folder / re.sub(r"\A(.*/)?images/|\.\./|\A/+", "", name) for name in names
                if name not in same}
    return {name: id_of.get(name, name) for name in names}, file_of


def _parts(name: str) -> tuple[str, ...]:
    """The folders and the file of a name, all that may differ between systems made equal."""
    plain = normalize("NFC", name).casefold().replace("\\", "/")
    return tuple(part for part in plain.split("/") if part not in ("", ".")) or ("",)


def hash_splits(ids: list[str]) -> dict[str, list[str]]:
    """Split 80 / 10 / 10 % by a hash of each id; the order of ids is kept.

    With few images, a split that has too few is given one of the split that can best spare it:
    there is no training on one image.
    """
    place = {i: int(hashlib.sha256(i.encode()).hexdigest()[:8], 16) / 2**32 for i in ids}
    split = {i: "train" if p < 0.8 else "dev" if p < 0.9 else "test" for i, p in place.items()}
    least = {"train": 2 if len(ids) > 3 else 1, "dev": 1, "test": 1}
    for name in (*least, "train"):  # that may need two
        members = {s: [i for i in split if split[i] == s] for s in least}
        spare = max(least, key=lambda s: len(members[s]) - least[s])
        if len(members[name]) < least[name] and len(members[spare]) > least[spare]:
            split[max(members[spare], key=place.get)] = name
    return {name: [i for i in split if split[i] == name] for name in base.SPLITS}


def read_table(path: Path, needed: Collection[str], remedy: str
               ) -> list[tuple[int, dict[str, str] | None]]:
    """Read a CSV file as spreadsheets save it: of every line its number and its cells by column.

    The delimiter is the one by which the header has the columns, whose names are read in lower
    case. Lines of empty cells are none; None: a line has too many or too few cells.

    Raises:  DataError: a needed column is missing (then `remedy` is said), or there twice; no CSV.
    """
    text = re.sub(r"\Asep=.(?=\r?\n)", "", base.read_text(path))  # Excel's own line
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = next((d for d in DELIMITERS if set(_cells(first, d)) >= set(needed)), ",")
    header = _cells(first.rstrip(f"{delimiter} "), delimiter)  # the first may number the lines
    if twice := base.repeated(filter(None, header)):
        raise DataError(f"{path} has the column {twice[0][0]} twice; rename or remove one")
    if not set(header) >= set(needed):
        raise DataError(f"{path}: expected the columns {', '.join(needed)}; found "
                        f"{', '.join(header) or 'none'}. {remedy}")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True,
                        skipinitialspace=f"{delimiter} " in first)
    try:
        lines = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader]
    except csv.Error as error:
        how = f"a text with {delimiter!r} or quotes belongs in double quotes, its own doubled"
        if "field limit" in str(error):
            how = (f"a text is longer than {csv.field_size_limit():,} characters: is a quote "
                      "never closed?")
        raise DataError(f"{path}:{reader.line_num} is not CSV ({error}); {how}") from error
    rows: list[tuple[int, dict[str, str] | None]] = []
    for number, cells in [line for line in lines if any(line[1])][1:]:
        pairs = list(zip_longest(header, cells, fillvalue=""))
        fits = len(cells) >= len(header) and not any(cell and not name for name, cell in pairs[1:])
        rows.append((number, {name: cell for name, cell in pairs if name} if fits else None))
    return rows


def _rows(path: Path, report: DataReport) -> list[tuple[str, str, str | None]]:
    """(image, text, split or None) of every line; lines that cannot be used become errors."""
    rows, table = [], read_table(path, COLUMNS, "Name them in the first line: image,text")
    if rest := next((set(row) - {*COLUMNS} for _, row in table if row and "split" not in row), ()):
        report.notes.append(Problem("columns not read", path.name, ", ".join(sorted(rest))
                                    + "; splits are read from a column named split"))
    for number, row in table:
        problem = (UNEVEN if row is None else _row_problem(row["image"], row.get("split", "train")))
        if problem:
            report.error("malformed line", f"{path.name}:{number}", problem)
        else:
            split = SPLIT_NAMES[row["split"].lower()] if "split" in row else None
            rows.append((PurePosixPath(row["image"]).as_posix(), row["text"], split))
    return rows


def _cells(header: str, delimiter: str) -> list[str]:
    """The names of the columns, as a delimiter parts them."""
    return [cell.strip().lower() for cell in next(csv.reader([header], delimiter=delimiter), [])]


def _row_problem(image: str, split: str) -> str | None:
    """What keeps a line from being used, or None."""
    parts = PurePosixPath(image).parts
    if not image.strip("./") or ".." in parts and "images" not in parts:
        return f"image {image!r} is not a file name below images/"
    if split.lower() not in SPLIT_NAMES:
        return f"split {split!r} is none of {', '.join(SPLIT_NAMES)}; or delete the column"
    return None


def _splits(rows: list[tuple[str, str, str | None]], report: DataReport) -> dict[str, list[str]]:
    """Image ids by split, in order of first mention, from the split column or by hash."""
    if not rows:
        report.error("empty split", TABLE, "it holds no usable line")
        return {}
    if rows[0][2] is None:
        ids = list(dict.fromkeys(image for image, _, _ in rows))
        if len(ids) < len(base.SPLITS):
            report.error("empty split", TABLE, f"it names {len(ids)} images, and three splits need "
                         f"at least {len(base.SPLITS)}")
        return hash_splits(ids)
    return {name: list(dict.fromkeys(image for image, _, split in rows if split == name))
            for name in base.SPLITS}


FOLDER = DatasetRecord("folder", load, folders=("folder",), searched="all")


def load_pictures(folder: Path | str, cache: Path | None = None) -> RetrievalDataset:
    """Read all pictures below a folder as one split without texts; their names are their ids.

    Those that cannot be decoded are left out, with the reason, in `report.excluded`; a note counts
    all files that were left out by kind.

    Args:    cache: folder of the memory of checks, None = the home.
    Raises:  DataError where there is no folder, or no picture that can be decoded.
    """
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}; expected a folder of pictures")
    files, others = pictures_below(folder)
    bad, found, notes = check_pictures(files, cache)
    kinds = Counter(problem.kind for problem in others)
    counted = f"left out: {', '.join(f'{n:,} x {kind}' for kind, n in kinds.items()) or 'nothing'}"
    if not found:
        raise DataError(f"{folder} holds no picture that can be decoded ({len(bad)} broken); "
                        f"{counted}")
    notes += [Problem("left out", str(folder), counted)] * bool(others)
    bad += [problem for problem in others if NO_PICTURE not in problem.kind]
    ids = tuple(name for name in files if name in found)
    splits = {PICTURES: base.Split(PICTURES, ids, (), (), np.zeros(0, np.int64))}
    return RetrievalDataset(
        PICTURES, splits, lambda image: open_picture(files[image]),
        fingerprint(splits, [found[name] for name in ids]),
        DataReport(counts={"images": len(files)}, excluded=bad, notes=notes),
        sha256={image: of[0] for image, of in found.items()})


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
                "more, or do not rely on its numbers")
    return sentences
