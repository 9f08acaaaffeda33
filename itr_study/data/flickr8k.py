"""Flickr8k: 8,091 photographs with five captions each, 6,000 / 1,000 / 1,000.

Source: Hodosh, Young and Hockenmaier, JAIR 47, 2013 (Secs. 5.2 and 5.3: human judgements).
The published caption file holds lines for pictures that do not exist, one of them under a
malformed name, and 91 pictures are in no split: all are left out and reported.
"""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from itr_study.data import base
from itr_study.data.assemble import Caption, assemble
from itr_study.data.assemble import leave_out as without
from itr_study.data.base import DataReport, DatasetRecord, Problem, RetrievalDataset
from itr_study.data.caption_noise import to_leave_out, with_caption_noise
from itr_study.data.picture_files import SUFFIXES

TOKENS, INNER = "Flickr8k.token.txt", "Flickr8k_text"  # texts lie in the folder or in INNER
PICTURES = ("images", "Flicker8k_Dataset", "Flickr8k_Dataset", "Images")
OBTAIN = (f"Flickr8k is {TOKENS}, Flickr_8k.{{train,dev,test}}Images.txt (Flickr8k_text.zip) and "
          "the photographs in images/ (Flickr8k_Dataset.zip); its authors at the University of "
          "Illinois hand it out on request, and mirrors of the two archives exist.")
TERMS = ("Flickr8k: for non-commercial research and education only, the photographs remain their "
         "owners' under Flickr's terms of use; cite Hodosh, Young and Hockenmaier, Framing Image "
         "Description as a Ranking Task, JAIR 47, 2013.")
LINE = re.compile(r"(?P<image>[^#\t]+)#(?P<number>\d+)\t(?P<text>.*)")
OBTAIN_JUDGEMENTS = f"It is part of Flickr8k_text.zip, beside {TOKENS}."
JUDGEMENT_TERMS = ("Flickr8k's human judgements: for non-commercial research and education; cite "
                   "Hodosh, Young and Hockenmaier, Framing Image Description as a Ranking Task, "
                   "JAIR 47, 2013.")
# What the published Flickr8k holds: a part of it, or an altered copy, is not taken for it.
KIND = "not as published"
REMEDY = ("Numbers of a part or an altered copy compare with no others; to read one on purpose "
          "give as_published=False (of a command: --set data_options.as_published=false).")
# Images of each split and the digest of their names; digest of the five captions of each of them.
SPLITS = {"train": (6000, "36510bd90ccee351"), "dev": (1000, "51c9cff8a4e3cd84"),
          "test": (1000, "dcb37c9f44f9c087")}
CAPTIONS = "219a1bae6f664385"
# `digest_of` the photographs, by `leave_out`.
PHOTOGRAPHS = {"nothing": "0d1fb4f995f9fae0", "near_duplicates": "e0999c032d6520c7",
               "as_many_others": "3eaa503c3abfca97"}
FIVE = ["0", "1", "2", "3", "4"]
PAIRS = {"expert": 5822, "crowdflower": 47830}


class Collection(NamedTuple):
    """A file of human judgements: a pair of an image and a text a line, parted by tabs."""

    file: str
    tau: str  # as of `Judgements`
    numbers: str  # pattern of what follows the pair
    expected: str  # the same in words


_PAIR = r"(?P<image>[^\t]+)\t(?P<text>(?P<own>[^#\s]+)#\d+)\t"
# Three experts a pair, from 1 (does not describe it) to 4 (describes it); or the share of people
# who said that the text describes the image.
JUDGEMENTS = {
    "expert": Collection("ExpertAnnotations.txt", "c", r"([1-4])\t([1-4])\t([1-4])",
                         "three grades from 1 to 4"),
    "crowdflower": Collection("CrowdFlowerAnnotations.txt", "b", r"([01](?:\.\d+)?)\t(\d+)\t(\d+)",
                              "the share of yes, the number of yes and of no, which agree")}


def load(root: Path | str | None = None, *, skip_bad: bool = False, as_published: bool = True,
         cache: Path | None = None, leave_out: str = "nothing", caption_noise: float = 0.0,
         noise_seed: int = 0) -> RetrievalDataset:
    """Read Flickr8k with its standard splits, after checking all of it.

    Args:    root: a folder that holds `flickr8k/`, or that folder; skip_bad: leave out pictures
             that cannot be decoded; as_published: refuse other splits, captions and judgements
             than those published, else note them in the report; cache: folder of the memory of
             checks, None = the home; leave_out: of training images, "near_duplicates", as many
             others, "as_many_others", "half", "three_quarters", or "nothing"; caption_noise,
             noise_seed: see `with_caption_noise`.
    Raises:  DataError listing everything that cannot be explained, with the remedy.
    Leakage: sentence encoders such as MiniLM were trained on Flickr30k, which contains Flickr8k:
             they have seen these captions, those of the test split included (`seen_by`).
    """
    root = base.find_root(root, "flickr8k", marks=_places(TOKENS), obtain=OBTAIN)
    report = DataReport(remedy=f"Obtain these files again, then load again. {OBTAIN}")
    folder = base.find_part(root, PICTURES, "Flickr8k: folder of the photographs")
    on_disk = {p.name for p in folder.iterdir() if not p.name.startswith(".")}
    images = {split: base.read_names(_text(root, f"Flickr_8k.{split}Images.txt"))
              for split in SPLITS}
    captions = _captions(_text(root, TOKENS), report)
    report.counts.update(images=len(on_disk), texts=len(captions))
    captions = _explain(images, captions, on_disk, report)
    judgements = {name: read_judgements(root, name) for name, collection in JUDGEMENTS.items()
                  if any((root / place).is_file() for place in _places(collection.file))}
    note_differences(differences(images, captions, judgements), as_published, report)
    dropped = to_leave_out(leave_out, images["train"])
    report.excluded += [Problem(leave_out, *pair) for pair in dropped.items()]
    images, captions = without(set(dropped), images, captions)
    pictures = {image: folder / image for ids in images.values() for image in ids}
    dataset = assemble("flickr8k", images, captions, pictures, report, cache=cache,
                       skip_bad=skip_bad, seen_by=("minilm",), terms=TERMS,
                       published=PHOTOGRAPHS.values())
    dataset.judgements = judgements
    if dropped:
        dataset.part_of = load(root, skip_bad=skip_bad, as_published=as_published, cache=cache)
    return with_caption_noise(dataset, caption_noise, noise_seed)


def read_judgements(root: Path | str | None, name: str) -> base.Judgements:
    """Read a collection of human judgements, published apart from the captions.

    Args:    root: a folder that holds `flickr8k/`, or that folder; name: one of JUDGEMENTS.
    Raises:  DataError listing everything that is wrong with the file.
    """
    file, tau, numbers, expected = JUDGEMENTS[name]
    root = base.find_root(root, "flickr8k", marks=_places(file), obtain=OBTAIN_JUDGEMENTS)
    path, line_of = _text(root, file), re.compile(_PAIR + numbers)
    report = DataReport(remedy=f"Obtain {file} again, then read again. {OBTAIN_JUDGEMENTS}")
    judged = []
    for number, line in enumerate(base.read_lines(path), start=1):
        parts = line_of.fullmatch(line)
        rating = parts and _rating(name, [float(value) for value in parts.groups()[3:]])
        if rating:
            judged.append((parts["image"], parts["text"], rating, parts["image"] == parts["own"]))
        else:
            report.error("malformed line", f"{path.name}:{number}", "expected image<TAB>name.jpg"
                         f"#i, and {expected}, parted by tabs; got {line[:80]!r}")
    report.refuse_ratings(file, judged)
    images, texts, ratings, own = zip(*judged, strict=True)
    return base.Judgements(name, images, texts, np.array(ratings), np.array(own), tau,
                           JUDGEMENT_TERMS)


def _rating(name: str, numbers: list[float]) -> list[float] | None:
    """The grades of the experts, or the crowd's share of yes; None unless its counts agree."""
    if name == "expert":
        return numbers
    share, yes, no = numbers
    agree = yes + no > 0 and abs(share - yes / (yes + no)) < 1e-6
    return [yes / (yes + no)] if agree else None


def digest(lines: Iterable[str]) -> str:
    """Hash lines in any order: 16 hex digits."""
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


def note_differences(found: list[Problem], as_published: bool, report: DataReport) -> None:
    """Report differences from the published data: errors where it is wanted, else notes."""
    if as_published and found:
        report.errors += found
        report.remedy += f" {REMEDY}"
    else:
        report.notes += found


def differences(images: dict[str, list[str]], captions: list[Caption],
                judgements: dict[str, base.Judgements]) -> list[Problem]:
    """Find where splits, captions and judgements differ from those published.

    Args:    images: split -> image ids; captions: those of these images only.
    """
    problems = [Problem(KIND, f"Flickr_8k.{split}Images.txt", detail)
                for split, ids in images.items() if (detail := split_difference(split, ids))]
    numbers: dict[str, list[str]] = {}
    for caption in captions:
        numbers.setdefault(caption.image, []).append(caption.text_id.rpartition("#")[2])
    problems += [Problem(KIND, image, f"expected the captions #{', #'.join(FIVE)}, found "
                         f"#{', #'.join(sorted(numbers[image]))}")
                 for ids in images.values() for image in dict.fromkeys(ids)
                 if sorted(numbers.get(image, FIVE)) != FIVE]  # without any: reported elsewhere
    if not problems and digest(f"{c.text_id}\t{c.text}" for c in captions) != CAPTIONS:
        problems.append(Problem(KIND, TOKENS, "a caption has other words, or stands with another "
                                "image, than in the published file"))
    known = {image for ids in images.values() for image in ids}
    for name, pairs in judgements.items():
        if len(pairs) != PAIRS[name]:
            problems.append(Problem(KIND, f"{name} judgements",
                                    f"expected {PAIRS[name]:,} pairs, found {len(pairs):,}"))
        problems += [Problem(KIND, f"{name} judgements", f"no split has the judged image {image}")
                     for image in sorted(set(pairs.image_ids) - known)]
    return problems


def split_difference(split: str, ids: list[str]) -> str:
    """Say how a list of images differs from the published one; empty where it does not."""
    count, expected = SPLITS[split]
    if (found := digest(ids)) == expected:
        return ""
    other = [name for name, (_, names) in SPLITS.items() if names == found]
    return (f"expected the {count:,} {split} images, found {len(ids):,}"
            + (f", those of {other[0]}: were the lists exchanged?" if other else
               ", not all of them the same" * (len(ids) == count)))


def _places(name: str) -> tuple[str, str]:
    return name, f"{INNER}/{name}"


def _text(root: Path, name: str) -> Path:
    return base.find_part(root, _places(name), f"Flickr8k: {name}")


def _captions(path: Path, report: DataReport) -> list[Caption]:
    """Captions of the token file; lines that are none are errors."""
    captions = []
    for number, line in enumerate(base.read_lines(path), start=1):
        if parts := LINE.fullmatch(line):
            text_id = f"{parts['image']}#{parts['number']}"
            captions.append(Caption(parts["image"], text_id, parts["text"].strip()))
        else:
            report.error("malformed line", f"{path.name}:{number}",
                         f"expected name.jpg#i<TAB>caption, got {line[:60]!r}")
    return captions


def _explain(images: dict[str, list[str]], captions: list[Caption], on_disk: set[str],
             report: DataReport) -> list[Caption]:
    """Captions of images in a split, missing ones too; others are left out with their reason."""
    in_split = {image for ids in images.values() for image in ids}
    report.excluded += [Problem("in no split", image, "the standard splits leave it out")
                        for image in sorted(on_disk - in_split)]
    for caption in captions:
        if caption.image not in in_split and caption.image not in on_disk:
            named = caption.image.lower().endswith(SUFFIXES)
            report.excluded.append(Problem(
                "caption of an unknown image" if named else "malformed name", caption.text_id,
                "no such picture exists and no split asks for it"))
    return [caption for caption in captions if caption.image in in_split]


FLICKR8K = DatasetRecord(
    "flickr8k", load, folders=("flickr8k",), graded_by=("sentence", "cider"),
    human_columns={"test": ("expert_tau_c", "crowdflower_tau_b")},
    judged_by="the three experts of Flickr8k",
    kept_judgements=("expert",))  # 11 KB a run; the crowd's 48,000 pairs would be 94
