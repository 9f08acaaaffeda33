"""Published region features: {split}_ims.npy, {split}_caps.txt, {split}_ids.txt in one folder.

The layout of VSE++, SCAN and their successors: a row of features for each image, a caption a
line, and an image id a line (one per caption or one per image). Some releases repeat each row
of features once per caption; such rows are recognised, verified and read once.
"""

import hashlib
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from itr_study.data.assemble import REMEDY, Caption, build_splits, fingerprint
from itr_study.data.base import (
    SPLITS,
    DataError,
    DataReport,
    Problem,
    Regions,
    RetrievalDataset,
    Split,
    read_lines,
)
from itr_study.data.picture_checks import CheckCache
from itr_study.data.picture_files import SUFFIXES, open_picture
from itr_study.progress import progress

BLOCK = 256  # images read at a time
NAMES = {"train": ("train",), "dev": ("dev", "val"), "test": ("testall", "test")}


class _Part(NamedTuple):
    images: list[str]  # ids, in the order of the features
    captions: list[Caption]
    features: np.ndarray  # (len(images) * step, D) or (len(images) * step, R, D)
    step: int  # rows per image, all equal
    path: Path


def load(name: str, folder: Path, *, splits: tuple[str, ...] = SPLITS,
         cache: Path | None = None, seen_by: tuple[str, ...] = (), terms: str = ""
         ) -> RetrievalDataset:
    """Read one folder of precomputed features; they are memory-mapped, never loaded whole.

    The features are `dataset.features["given"](split)`: Regions (I, R, D), R = 1 where the file
    is (I, D), every region present. Of `testall` and `test` the former (all 5,000 test images of
    COCO) is read where both exist. Pictures that lie beside, as images/<id>.jpg, are opened;
    without them `open_image` gives a card with the id.

    Args:    folder: where the files lie; splits: which are read; cache: memory of checks.
    Raises:  DataError listing all problems: missing files, counts, shapes, NaN, pickles.
    """
    report = DataReport(remedy=REMEDY)
    parts: dict[str, _Part] = {}
    for split in splits:
        try:
            parts[split] = part = _read_split(folder, split, report)
        except DataError as error:  # listed with all others, refused by build_splits
            report.error("unreadable split", split, str(error))
        else:
            report.errors += feature_problems(part.path, part.features, part.step, cache)
    shapes = {split: part.features.shape[1:] for split, part in parts.items()}
    if len(set(shapes.values())) > 1:
        listed = ", ".join(f"{split} {shape}" for split, shape in shapes.items())
        report.error("wrong feature shape", "all splits",
                     f"regions and size must be equal, found {listed}")
    built = build_splits({split: part.images for split, part in parts.items()},
                         [c for part in parts.values() for c in part.captions], report)
    files = [(part.path.name, f"{part.path.stat().st_size}:{sample_digest(part.features)}")
             for part in parts.values()]
    report.counts.update(images=sum(len(part.images) for part in parts.values()),
                         texts=sum(len(part.captions) for part in parts.values()))
    pictures = {path.stem: path for path in (folder / "images").glob("*")
                if path.suffix.lower() in SUFFIXES}
    return RetrievalDataset(
        name, built, partial(_open, pictures), fingerprint(built, files), report,
        features={"given": lambda split: _regions(parts[split.name], split)},
        seen_by=seen_by, terms=terms, has_pictures=bool(pictures))


def lies_in(folder: Path) -> bool:
    """Tell whether a folder holds published features."""
    return any(folder.glob("*_ims.npy"))


def read_captions(folder: Path, split: str) -> Split:
    """Read texts and image ids of a split without its features, as of evaluation sets.

    Raises:  DataError where captions or ids are missing or do not fit together.
    """
    report = DataReport(remedy=REMEDY)
    stem = _stem(folder, split, "_caps.txt")
    lines, ids = (read_lines(_file(folder, f"{stem}_{what}.txt")) for what in ("caps", "ids"))
    captions = _captions(split, stem, lines, ids, report)
    images = list(dict.fromkeys(caption.image for caption in captions))
    return build_splits({split: images}, captions, report)[split]


def open_features(path: Path) -> np.ndarray:
    """Map (rows, D) or (rows, R, D) of a .npy file of floats; pickles are never read.

    Raises:  DataError: another format, a pickle, a truncated file, another shape or type.
    """
    try:
        features = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise DataError(f"{path.name} cannot be read as an .npy file of numbers ({error}); pickled "
                        "objects are never read: save it again with numpy.save") from error
    if not isinstance(features, np.ndarray):
        raise DataError(f"{path.name} is an archive of arrays, expected one array of numpy.save")
    if features.ndim not in (2, 3) or 0 in features.shape:
        raise DataError(f"{path.name}: wrong feature shape {features.shape}, expected (images, D) "
                        "or (images, regions, D), nothing empty")
    if features.dtype.kind != "f":
        raise DataError(f"{path.name}: features must be floating point, got {features.dtype}")
    return features


def feature_problems(path: Path, features: np.ndarray, step: int, cache: Path | None
                     ) -> list[Problem]:
    """Find the first NaN or infinite value, or rows that should repeat the one before and do not.

    Args:    step: how many rows each image has (1, or as many as captions), all equal.
    """
    memory = CheckCache(cache, f"features{step}", path.parent)
    stat = path.stat()
    if memory.knows(path.name, stat):
        return []
    starts = range(0, len(features), BLOCK * step)
    for start in progress(starts, f"check {path.name}"):
        block = np.asarray(features[start:start + BLOCK * step])
        bad = np.flatnonzero(~np.isfinite(block).all(axis=tuple(range(1, block.ndim))))
        if len(bad):
            return [Problem("NaN or infinite features", path.name,
                            f"first in row {start + bad[0]}")]
        groups = block.reshape(-1, step, *block.shape[1:])
        differ = np.flatnonzero((groups != groups[:, :1]).reshape(len(groups), -1).any(axis=1))
        if len(differ):
            first = start + differ[0] * step
            return [Problem("rows are not repeated", path.name,
                            f"rows {first} to {first + step - 1} should be equal")]
    memory.remember(path.name, stat)
    memory.save()
    return []


def sample_digest(features: np.ndarray, rows: int = 64) -> str:
    """Hash shape, type and some rows: tells apart features of the same size; 16 hex digits."""
    index = np.unique(np.linspace(0, len(features) - 1, rows).astype(np.int64))
    digest = hashlib.sha256(f"{features.shape}{features.dtype}".encode())
    digest.update(np.ascontiguousarray(features[index]).tobytes())
    return digest.hexdigest()[:16]


def _read_split(folder: Path, split: str, report: DataReport) -> _Part:
    stem = _stem(folder, split, "_ims.npy")
    path, ids_file = folder / f"{stem}_ims.npy", folder / f"{stem}_ids.txt"
    features = open_features(path)
    lines = read_lines(_file(folder, f"{stem}_caps.txt"))
    ids = read_lines(ids_file) if ids_file.is_file() else _row_ids(split, features, lines)
    captions = _captions(split, stem, lines, ids, report)
    images = list(dict.fromkeys(caption.image for caption in captions))
    step = len(features) // max(len(images), 1)
    repeats = len(features) == len(captions) == len(images) * step
    if len(features) != len(images) and not repeats:
        raise DataError(f"{path.name} has {len(features)} rows for {len(images)} images with "
                        f"{len(captions)} captions; expected a row per image, or each row repeated "
                        "per caption")
    return _Part(images, captions, features, step, path)


def _stem(folder: Path, split: str, end: str) -> str:
    """Beginning of the file names of a split, such as "testall"."""
    for stem in NAMES[split]:
        if (folder / f"{stem}{end}").is_file():
            return stem
    looked = " or ".join(f"{stem}{end}" for stem in NAMES[split])
    raise DataError(f"{looked} is missing in {folder}")


def _file(folder: Path, name: str) -> Path:
    if not (folder / name).is_file():
        raise DataError(f"{name} is missing in {folder}")
    return folder / name


def _row_ids(split: str, features: np.ndarray, lines: list[str]) -> list[str]:
    """Image ids, one per caption, where no ids file is given: the number of the image's row.

    As many rows as captions: rows are repeated as often as the first one is (1 = not at all);
    whether the others are too is verified with the values (`feature_problems`).
    """
    n_rows = len(features)
    per_image = len(lines) // n_rows
    if n_rows == len(lines):
        per_image = next((n for n in range(1, n_rows)
                          if not np.array_equal(features[n], features[0])), n_rows)
    if per_image == 0 or len(lines) % per_image or len(lines) % n_rows:
        raise DataError(f"{len(lines)} captions cannot be shared out over {n_rows} rows of "
                        "features without an ids file; add it")
    return [f"{split}_{number // per_image}" for number in range(len(lines))]


def _captions(split: str, stem: str, lines: list[str], ids: list[str], report: DataReport
              ) -> list[Caption]:
    """Captions in the order of the features; ids are per caption or per image."""
    ids = [line.strip() for line in ids]
    if ids and len(lines) % len(ids) == 0:
        ids = [image for image in ids for _ in range(len(lines) // len(ids))]
    if len(ids) != len(lines):
        raise DataError(f"{stem}_ids.txt has {len(ids)} lines for {len(lines)} captions; expected "
                        "one per caption, or one per image with equally many captions each")
    seen: set[str] = set()
    for number, (image, before) in enumerate(zip(ids, [None, *ids], strict=False), start=1):
        if image in seen and image != before:
            report.error("order", f"{stem}_ids.txt:{number}",
                         f"captions of image {image} do not lie together")
        seen.add(image)
    return [Caption(image, f"{split}#{number}", line.strip())
            for number, (image, line) in enumerate(zip(ids, lines, strict=True))]


def _regions(part: _Part, split: Split) -> Regions:
    """Regions of the images of a split: a view of the memory map of the whole, a copy of a part."""
    if list(split.image_ids) == part.images:
        chosen = part.features[::part.step]
    else:
        row = {image: number * part.step for number, image in enumerate(part.images)}
        chosen = part.features[[row[image] for image in split.image_ids]]
    chosen = chosen[:, None, :] if chosen.ndim == 2 else chosen
    return Regions(chosen, np.ones(chosen.shape[:2], dtype=bool))


def _open(files: dict[str, Path], image: str) -> Image.Image:
    if image in files:
        return open_picture(files[image])
    card = Image.new("RGB", (224, 224), "lightgrey")
    ImageDraw.Draw(card).text((112, 112), f"no picture\n{image}", "black", anchor="mm",
                              align="center", font_size=24)
    return card
