"""From what a reader parsed to a RetrievalDataset: the checks that all readers share."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from itr_study.data.base import DataReport, Problem, RetrievalDataset, Split
from itr_study.data.picture_checks import MISSING, check_pictures
from itr_study.data.picture_files import open_picture

REMEDY = "Obtain or correct these files, then load again."
SKIP = (" Pictures that cannot be decoded can be left out with skip_bad=True (of a command: --set "
        "data_options.skip_bad=true; of a notebook: data_options={'skip_bad': True}).")


class Caption(NamedTuple):
    """One text of one image, as parsed."""

    image: str
    text_id: str
    text: str


def assemble(name: str, images: dict[str, list[str]], captions: list[Caption],
             pictures: dict[str, Path], report: DataReport, *, cache: Path | None = None,
             skip_bad: bool = False, seen_by: tuple[str, ...] = (), terms: str = ""
             ) -> RetrievalDataset:
    """Check pictures, splits and captions, refuse all problems at once, else build the data set.

    Args:    images: split -> image ids, in order; captions: in order; pictures: image id ->
             file; report: may hold problems already; cache: see `check_pictures`; skip_bad:
             leave out pictures that cannot be decoded, and their captions, instead of refusing.
    Raises:  DataError listing every problem.
    """
    used = {image: pictures[image] for ids in images.values() for image in ids}
    bad, found, notes = check_pictures(used, cache)
    report.notes += notes
    skipped = [p for p in bad if skip_bad and p.kind != MISSING]
    report.errors += [p for p in bad if p not in skipped]
    report.excluded += skipped
    images, captions = leave_out({p.where for p in skipped}, images, captions)
    report.remedy = report.remedy or REMEDY
    if bad and not skip_bad and any(p.kind != MISSING for p in bad):
        report.remedy += SKIP
    splits = build_splits(images, captions, report)
    files = [found[i] for s in splits.values() for i in s.image_ids]
    return RetrievalDataset(
        name, splits, lambda image: open_picture(used[image]), fingerprint(splits, files),
        report, seen_by=seen_by, terms=terms)


def leave_out(bad: set[str], images: dict[str, list[str]], captions: list[Caption]
              ) -> tuple[dict[str, list[str]], list[Caption]]:
    """Images and captions without the bad images."""
    kept = {split: [i for i in ids if i not in bad] for split, ids in images.items()}
    return kept, [c for c in captions if c.image not in bad]


def build_splits(images: dict[str, list[str]], captions: list[Caption], report: DataReport
                 ) -> dict[str, Split]:
    """Splits of the given images with their captions, image by image, in the given order.

    Raises:  DataError listing what the report already held and what is wrong here.
    """
    texts_of: dict[str, list[Caption]] = {i: [] for ids in images.values() for i in ids}
    report.errors += split_problems(images) + caption_problems(texts_of, captions)
    report.refuse_errors()
    for caption in captions:
        texts_of[caption.image].append(caption)
    return {split: build_split(split, ids, texts_of) for split, ids in images.items()}


def build_split(name: str, ids: list[str], texts_of: dict[str, list[Caption]]) -> Split:
    """One split; texts lie image by image, however many each image has."""
    captions = [caption for image in ids for caption in texts_of[image]]
    image_of_text = np.repeat(np.arange(len(ids)), [len(texts_of[image]) for image in ids])
    return Split(name, tuple(ids), tuple(c.text_id for c in captions),
                 tuple(c.text for c in captions), image_of_text.astype(np.int64))


def split_problems(images: dict[str, list[str]]) -> list[Problem]:
    """Empty splits, ids listed twice, ids in two splits."""
    problems = [Problem("empty split", split, "no image is in it")
                for split, ids in images.items() if not ids]
    first: dict[str, str] = {}
    for split, ids in images.items():
        for image, count in Counter(ids).items():
            if count > 1:
                problems.append(Problem("duplicate image id", image, f"{count} times in {split}"))
            if image in first:
                problems.append(Problem("overlapping splits", image,
                                        f"in {first[image]} and in {split}"))
            first.setdefault(image, split)
    return problems


def caption_problems(texts_of: dict[str, list[Caption]], captions: list[Caption]
                     ) -> list[Problem]:
    """Captions of unknown images, ids used twice, captions without text or with NUL, images without
    any."""
    problems, with_text = [], set()
    for text_id, count in Counter(c.text_id for c in captions).items():
        if count > 1:
            problems.append(Problem("duplicate caption id", text_id, f"{count} captions have it"))
    for caption in captions:
        with_text.add(caption.image)
        if caption.image not in texts_of:
            problems.append(Problem("caption of an unknown image", caption.text_id,
                                    f"no split has an image {caption.image!r}"))
        if not caption.text.strip():
            problems.append(Problem("empty caption", caption.text_id, "it holds no text"))
        if "\0" in caption.text:  # what a crash leaves of a text file
            problems.append(Problem("damaged caption", caption.text_id, "it holds a NUL byte"))
    return problems + [Problem("image without captions", image, "no caption names it")
                       for image in texts_of if image not in with_text]


def fingerprint(splits: dict[str, Split], files: Iterable[tuple[int | str, ...]]) -> str:
    """sha256 over ids, texts and splits in their order, and over what identifies each file: its
    name, size and, where it is read in a way of its own, `remarks`.

    Contents of pictures are not read: a picture replaced by another of the same name and size
    keeps the fingerprint. The path of the data does not enter.
    """
    digest = hashlib.sha256()
    for split in splits.values():
        parts = [split.name, split.image_ids, split.text_ids, split.texts,
                 split.image_of_text.tolist()]
        digest.update(json.dumps(parts).encode())
    digest.update(json.dumps(list(files)).encode())
    return digest.hexdigest()
