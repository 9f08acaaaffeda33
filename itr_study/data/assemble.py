"""From what a reader parsed to a RetrievalDataset: the checks that all readers share."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from itr_study.data.base import DataReport, Problem, RetrievalDataset, Split, repeated
from itr_study.data.picture_files import MISSING, check_pictures, open_picture
from itr_study.data.vocabulary import HALF, tokenize

REMEDY = "Obtain or correct these files, then load again."
SKIP = (" Pictures that cannot be decoded can be left out with skip_bad=True (of a command: --set "
        "data_options.skip_bad=true; of a notebook: data_options={'skip_bad': True}).")
PLAIN = re.compile(r"[0-9A-Za-z]")  # holds a word for certain, and is found sooner than words are


class Caption(NamedTuple):
    """One text of one image, as parsed."""

    image: str
    text_id: str
    text: str


def assemble(name: str, images: dict[str, list[str]], captions: list[Caption],
             pictures: dict[str, Path], report: DataReport, *, cache: Path | None = None,
             skip_bad: bool = False, seen_by: tuple[str, ...] = (), terms: str = "",
             published: Collection[str] = ()) -> RetrievalDataset:
    """Check pictures, splits and captions, refuse all problems at once, else build the data set.

    Args:    images: split -> image ids, in order; captions: in order; pictures: image id ->
             file; report: may hold problems already; cache: see `check_pictures`; skip_bad:
             leave out pictures that cannot be decoded, and their captions, instead of refusing;
             published: `digest_of` the pictures of published runs, which keep the fingerprint that
             those name, of names and sizes.
    Raises:  DataError listing every problem.
    """
    used = {image: pictures[image] for ids in images.values() for image in ids}
    bad, found, notes = check_pictures(used, cache)
    report.notes += notes
    undecodable = [p for p in bad if p.kind != MISSING]
    report.remedy = report.remedy or REMEDY
    if skip_bad:
        report.excluded += undecodable
        images, captions = leave_out({p.where for p in undecodable}, images, captions)
    elif undecodable:
        report.remedy += SKIP
    report.errors += [p for p in bad if not skip_bad or p.kind == MISSING]
    splits = build_splits(images, captions, report)
    files = {image: found[image] for split in splits.values() for image in split.image_ids}
    as_published = digest_of(files.values()) in published
    identity = fingerprint(splits, files.values() if not as_published else [
        (used[image].name, used[image].stat().st_size, *of[1:]) for image, of in files.items()])
    return RetrievalDataset(
        name, splits, lambda image: open_picture(used[image]), identity, report, seen_by=seen_by,
        terms=terms, sha256={image: of[0] for image, of in files.items()}, published=as_published)


def leave_out(bad: set[str], images: dict[str, list[str]], captions: list[Caption]
              ) -> tuple[dict[str, list[str]], list[Caption]]:
    """Drop the bad images and their captions."""
    kept = {split: [i for i in ids if i not in bad] for split, ids in images.items()}
    return kept, [c for c in captions if c.image not in bad]


def build_splits(images: dict[str, list[str]], captions: list[Caption], report: DataReport
                 ) -> dict[str, Split]:
    """Build the splits: texts image by image, however many each image has, in the given order.

    Raises:  DataError listing what the report already held and what is wrong here.
    """
    report.errors += split_problems(images) + caption_problems(images, captions)
    report.refuse_errors()
    texts_of: dict[str, list[Caption]] = {i: [] for ids in images.values() for i in ids}
    for caption in captions:
        texts_of[caption.image].append(caption)
    splits = {}
    for name, ids in images.items():
        of_split = [caption for image in ids for caption in texts_of[image]]
        owners = np.repeat(np.arange(len(ids)), [len(texts_of[image]) for image in ids])
        splits[name] = Split(name, tuple(ids), tuple(c.text_id for c in of_split),
                             tuple(c.text for c in of_split), owners.astype(np.int64))
    return splits


def split_problems(images: dict[str, list[str]]) -> list[Problem]:
    """Find empty splits, ids listed twice, ids in two splits."""
    problems = [Problem("empty split", split, "no image is in it")
                for split, ids in images.items() if not ids]
    first: dict[str, str] = {}
    for split, ids in images.items():
        problems += [Problem("duplicate image id", image, f"{count} times in {split}")
                     for image, count in repeated(ids)]
        problems += [Problem("overlapping splits", image, f"in {first[image]} and in {split}")
                     for image in dict.fromkeys(ids) if image in first]
        first = dict.fromkeys(ids, split) | first
    return problems


def caption_problems(images: dict[str, list[str]], captions: list[Caption]) -> list[Problem]:
    """Find captions of no image, without a word, damaged or given twice; images without any."""
    known = dict.fromkeys(image for ids in images.values() for image in ids)
    problems = [Problem("duplicate caption id", text_id, f"{count} captions have it")
                for text_id, count in repeated(c.text_id for c in captions)]
    for image, text_id, text in captions:
        if image not in known:
            problems.append(Problem("caption of an unknown image", text_id,
                                    f"no split has an image {image!r}"))
        if "\0" in text:  # what a crash leaves of a text file
            problems.append(Problem("damaged caption", text_id, "it holds a NUL byte"))
        elif HALF.search(text):
            problems.append(Problem("damaged caption", text_id, "it holds half a character, such "
                                    f"as of an emoji that was cut: {text[:60]!a}"))
        elif not (PLAIN.search(text) or tokenize(text)):
            problems.append(Problem("empty caption", text_id, f"it holds no word: {text[:60]!a}"))
    with_text = {caption.image for caption in captions}
    return problems + [Problem("image without captions", image, "no caption names it")
                       for image in known if image not in with_text]


def fingerprint(splits: dict[str, Split], files: Iterable[tuple[int | str, ...]]) -> str:
    """Hash ids, texts and splits in their order, and what identifies each file (sha256).

    A file is identified by the sha256 of its bytes and, where it is read in a way of its own,
    `remarks`; its path does not enter. (Published pictures: see `assemble`.)
    """
    digest = hashlib.sha256()
    for split in splits.values():
        parts = [split.name, split.image_ids, split.text_ids, split.texts,
                 split.image_of_text.tolist()]
        digest.update(json.dumps(parts).encode())
    digest.update(json.dumps(list(files)).encode())
    return digest.hexdigest()


def digest_of(files: Iterable[tuple[str, ...]]) -> str:
    """Hash the pictures of a data set in their order: 16 hex digits."""
    return hashlib.sha256(json.dumps(list(files)).encode()).hexdigest()[:16]
