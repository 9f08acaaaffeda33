"""Published region features: {split}_ims.npy, {split}_caps.txt, {split}_ids.txt in one folder.

The layout of VSE++, SCAN and their successors: a row of features for each image, a caption a
line, and an image id a line (one per caption or one per image). Some releases repeat each row
of features once per caption; such rows are recognised, verified and read once. CAMERA's release
adds {split}_boxes.npy (left, top, right, bottom in pixels) and {split}_img_sizes.npy (width and
height); `python -m tools.regions` writes all of them from files of bottom-up attention.
"""

import hashlib
import re
import textwrap
from collections import Counter
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from itr_study.data import base
from itr_study.data.assemble import REMEDY, Caption, build_splits, fingerprint
from itr_study.data.base import DataError, DataReport, Problem, RetrievalDataset
from itr_study.data.box_table import areas
from itr_study.data.picture_files import CheckCache, check_pictures, open_picture, pictures_below
from itr_study.progress import progress

BLOCK = 256  # images read at a time
PUBLISHED = 5  # captions an image of Flickr30k and COCO, as they were published
NAMES = {"train": ("train",), "dev": ("dev", "val"), "test": ("testall", "test")}
PLAIN = re.compile(r"^(COCO_\w+_)?0*(?=\d)|\.(jpe?g|png)$", re.IGNORECASE)  # not part of an id


class _Part(NamedTuple):
    images: list[str]  # ids, in the order of the features
    captions: list[Caption]
    features: np.ndarray  # (len(images) * step, D) or (len(images) * step, R, D)
    step: int  # rows per image, all equal
    path: Path
    shared: bool  # whether captions were shared out among images by their number
    boxes: np.ndarray | None  # (len(features), R, 4) in fractions, where they lie beside


def load(name: str, folder: Path, *, splits: tuple[str, ...] = base.SPLITS,
         cache: Path | None = None, seen_by: tuple[str, ...] = (), terms: str = ""
         ) -> RetrievalDataset:
    """Read one folder of precomputed features; they are memory-mapped, never loaded whole.

    The features are `dataset.features["given"](split)`: Regions (I, R, D), R = 1 where the file is
    (I, D), every region present. `testall` (all 5,000 test images of COCO) comes before `test`.
    Pictures that lie beside, as images/<id>.jpg or as COCO names them, are opened, for others
    `open_image` gives a card with id and caption. Ids that count from 0 in several splits are no
    names.

    Args:    folder: where the files lie; splits: which are read; cache: memory of checks.
    Raises:  DataError listing all problems: missing files, counts, shapes, NaN, pickles.
    """
    report = DataReport(remedy=REMEDY)
    parts: dict[str, _Part] = {}
    digests: list[tuple[str, ...]] = []
    counted = _counted(folder, splits)
    for split in splits:
        try:
            parts[split] = part = _read_split(folder, split, counted, report)
        except DataError as error:  # listed with all others, refused by build_splits
            report.error("unreadable split", split, str(error))
            continue
        seen = look_at_features(part.path, part.features, part.step, cache)
        (report.errors if isinstance(seen, Problem) else digests).append(seen)
    _compare(parts, report)
    if len(set(digests)) < len(digests):
        report.notes.append(Problem("splits alike", "features", "two splits hold the same to the "
                                    "bit; what is chosen on dev must be measured on other images"))
    built = build_splits({split: part.images for split, part in parts.items()},
                         [c for part in parts.values() for c in part.captions], report)
    images = [image for part in parts.values() for image in part.images]
    report.counts.update(images=len(images), texts=sum(len(p.captions) for p in parts.values()))
    named = {name: path for path in pictures_below(folder / "images")[0].values()
             for name in (path.stem, path.name)}
    beside = {PLAIN.sub("", name): path for name, path in named.items()} | named
    pictures = {image: path for image in images
                if (path := beside.get(image, beside.get(PLAIN.sub("", image))))}
    bad, found, _ = check_pictures(pictures, cache)
    report.notes += bad
    if beside and (missing := len(images) - len(pictures)):
        report.notes.append(Problem("pictures missing", "images", f"{missing:,} of "
                                    f"{len(images):,}, so none is shown"))
    boxes = {split: part.boxes for split, part in parts.items() if part.boxes is not None}
    if boxes and len(boxes) < len(parts):
        lacking = ", ".join(split for split in parts if split not in boxes)
        report.notes.append(Problem("no boxes", lacking, "so boxes of other splits are not used"))
    return RetrievalDataset(
        name, built, partial(_open, {image: pictures[image] for image in found}, {
            one.image: one.text for part in parts.values() for one in reversed(part.captions)}),
        fingerprint(built, [*digests, *(found.values() if len(found) == len(images) else ())]),
        report,
        features={"given": lambda split: _regions(parts[split.name], split)},
        places=(lambda split: boxes[split.name][_rows(parts[split.name], split)])
        if len(boxes) == len(parts) else None,
        seen_by=seen_by, terms=terms, has_pictures=len(found) == len(images))


def lies_in(folder: Path) -> bool:
    """Tell whether a folder holds published features."""
    return any(folder.glob("*_ims.npy"))


def read_captions(folder: Path, split: str) -> base.Split:
    """Read texts and image ids of a split without its features, as of evaluation sets.

    Raises:  DataError where captions or ids are missing or do not fit together.
    """
    report = DataReport(remedy=REMEDY)
    stem = _stem(folder, split, "_caps.txt")
    lines, ids = (base.read_lines(_file(folder, f"{stem}_{what}.txt")) for what in ("caps", "ids"))
    captions = _captions(split, stem, lines, ids, report)
    images = list(dict.fromkeys(caption.image for caption in captions))
    return build_splits({split: images}, captions, report)[split]


def open_features(path: Path, kinds: str = "f") -> np.ndarray:
    """Map (rows, D) or (rows, R, D) of a .npy file of numbers; pickles are never read.

    kinds: letters of numpy for the types it may have.
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
    if features.dtype.kind not in kinds:
        raise DataError(f"{path.name}: features must be floating point, got {features.dtype}; save "
                        "them again with .astype('float32')")
    return features


def look_at_features(path: Path, features: np.ndarray, step: int, cache: Path | None
                     ) -> tuple[str, ...] | Problem:
    """Hash shape, type and all values, once; or find the first value that cannot be.

    Args:    step: how many rows each image has (1, or as many as captions), all equal.
    """
    memory = CheckCache(cache, f"features{step}", path.parent)
    stat = path.stat()
    if memory.knows(path.name, stat):
        return memory.seen(path.name)
    digest = hashlib.sha256(f"{features.shape}{features.dtype.str}".encode())
    starts = range(0, len(features), BLOCK * step)
    for start in progress(starts, f"check {path.name}"):
        # a map of its own, whose pages go with it: else all of the file would become resident
        block = np.ascontiguousarray(open_features(path)[start:start + BLOCK * step])
        digest.update(block)
        bad = np.flatnonzero(~np.isfinite(block).all(axis=tuple(range(1, block.ndim))))
        if len(bad):
            return Problem("NaN or infinite features", path.name, f"first in row {start + bad[0]}")
        groups = block.reshape(-1, step, *block.shape[1:])
        differ = np.flatnonzero((groups != groups[:, :1]).reshape(len(groups), -1).any(axis=1))
        if len(differ):
            first = start + differ[0] * step
            return Problem("rows are not repeated", path.name,
                           f"rows {first} to {first + step - 1} should be equal")
    memory.remember(path.name, stat, (digest.hexdigest(),))
    memory.save()
    return memory.seen(path.name)


def _counted(folder: Path, splits: tuple[str, ...]) -> list[str]:
    """Splits whose ids count from 0 (or from 1), where those of more than one do: no names."""
    ids = {split: list(dict.fromkeys(base.read_names(path))) for split in splits
           for stem in reversed(NAMES[split]) if (path := folder / f"{stem}_ids.txt").is_file()}
    for first in (0, 1):
        counted = [split for split, of in ids.items()
                   if of and of == [str(first + number) for number in range(len(of))]]
        if len(counted) > 1:
            return counted
    return []


def _compare(parts: dict[str, _Part], report: DataReport) -> None:
    """Refuse splits that differ in regions, or in captions an image where these were counted."""
    shapes = {split: part.features.shape[1:] for split, part in parts.items()}
    if len(set(shapes.values())) > 1:
        listed = ", ".join(f"{split} {shape}" for split, shape in shapes.items())
        report.error("wrong feature shape", "all splits",
                     f"regions and size must be equal, found {listed}")
    counts = {split: {*Counter(c.image for c in part.captions).values()}
              for split, part in parts.items()}
    even = {split: min(of) for split, of in counts.items() if len(of) == 1}
    listed = ", ".join(f"{split} {count} (of {len(parts[split].images):,} images)"
                       for split, count in even.items())
    shared = [split for split, part in parts.items() if part.shared]
    if shared and len(set(even.values())) > 1:
        report.error("captions an image", "all splits", f"{listed}: must be equal without ids of "
                     f"captions ({', '.join(shared)}). Do the features hold all images? If so, "
                     "give {split}_ids.txt with the id of its image for each caption")
    elif shared and {*even.values()} - {PUBLISHED}:
        report.notes.append(Problem("captions an image", "all splits", f"{listed}, by the number "
                                    f"of lines; the published files have {PUBLISHED}"))


def _read_split(folder: Path, split: str, counted: list[str], report: DataReport) -> _Part:
    stem = _stem(folder, split, "_ims.npy")
    path, ids_file = folder / f"{stem}_ims.npy", folder / f"{stem}_ids.txt"
    features = open_features(path)
    lines = base.read_lines(_file(folder, f"{stem}_caps.txt"))
    ids = base.read_lines(ids_file) if ids_file.is_file() else []
    if split in counted:  # what is there once says no more than no id
        ids = [] if len(set(ids)) == len(ids) else [f"{split}_{image}" for image in ids]
    shared = len(lines) not in (len(ids), len(features))
    captions = _captions(split, stem, lines, ids or _row_ids(split, features, lines), report)
    images = list(dict.fromkeys(caption.image for caption in captions))
    step = len(features) // max(len(images), 1)
    repeats = len(features) == len(captions) == len(images) * step
    if len(features) != len(images) and not repeats:
        raise DataError(f"{path.name} has {len(features)} rows for {len(images)} images with "
                        f"{len(captions)} captions; expected a row per image, or each row repeated "
                        "per caption, equally often")
    if step == 1 and len(features) > 1 and np.array_equal(features[0], features[1]):
        report.notes.append(Problem("equal rows", path.name, "the first two, of two ids: each line "
                                    "of ids must name an image, not a caption"))
    boxes = _boxes(folder, stem, features) if (folder / f"{stem}_boxes.npy").is_file() else None
    return _Part(images, captions, features, step, path, shared, boxes)


def _boxes(folder: Path, stem: str, features: np.ndarray) -> np.ndarray:
    """Read boxes as fractions of their pictures, NaN for those without an area (padding)."""
    boxes, sizes = (np.asarray(open_features(_file(folder, f"{stem}_{what}.npy"), "fiu"),
                               np.float32) for what in ("boxes", "img_sizes"))
    if boxes.shape != (*features.shape[:2], 4) or sizes.shape != (len(features), 2):
        raise DataError(f"{stem}_boxes.npy {boxes.shape} and {stem}_img_sizes.npy {sizes.shape} "
                        f"must be (images, regions, 4) and (images, 2) for features of "
                        f"{features.shape}")
    if 0 < boxes.max() <= 1:
        raise DataError(f"{stem}_boxes.npy has fractions of the pictures; it must have pixels, as "
                        f"{stem}_img_sizes.npy has")
    found = boxes / np.tile(sizes, 2)[:, None]
    inside = (found >= -0.01) & (found <= 1.01)  # rounded to pixels, a box may reach out
    fits = inside.all(axis=(1, 2)) & (found[..., 2:] >= found[..., :2]).all(axis=(1, 2))
    if not fits.all():
        row = np.argmin(fits)
        raise DataError(f"{stem}_boxes.npy: a box in row {row} ends before it begins, or lies "
                        f"outside its picture of {sizes[row].tolist()} in {stem}_img_sizes.npy; "
                        "expected left, top, right and bottom in pixels, and sizes as width and "
                        "height")
    return np.where((areas(found) > 0)[..., None], found.clip(0, 1), np.nan)


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
    """Image ids, one per caption, without ids file: the number of the image's row in the features.

    If rows are as many as captions, each is repeated as often as the first (verified later).
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


def _regions(part: _Part, split: base.Split) -> base.Regions:
    """Regions of the images of a split: a view of the memory map of the whole, a copy of a part."""
    chosen = part.features[_rows(part, split)]
    chosen = chosen[:, None, :] if chosen.ndim == 2 else chosen
    return base.Regions(chosen, np.ones(chosen.shape[:2], dtype=bool))


def _rows(part: _Part, split: base.Split) -> slice | list[int]:
    if list(split.image_ids) == part.images:
        return slice(None, None, part.step)
    row = {image: number * part.step for number, image in enumerate(part.images)}
    return [row[image] for image in split.image_ids]


def _open(files: dict[str, Path], captions: dict[str, str], image: str) -> Image.Image:
    if image in files:
        return open_picture(files[image])
    card = Image.new("RGB", (224, 224), "lightgrey")
    said = "\n".join(textwrap.wrap(captions[image], 22)[:6])
    ImageDraw.Draw(card).text((112, 112), f"no picture\n{image}\n\n{said}", "black", anchor="mm",
                              align="center", font_size=18)
    return card
