"""The human judgements of Flickr8k: captions of one image held against another.

Source: Hodosh, Young and Hockenmaier, JAIR 47, 2013, Secs. 5.2 and 5.3.
"""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from itr_study.data.base import DataReport, Problem
from itr_study.data.judgements import Judgements
from itr_study.data.roots import find_part, find_root, read_lines

EXPERT, CROWD = "ExpertAnnotations.txt", "CrowdFlowerAnnotations.txt"
TEXT_ID = re.compile(r"(?P<image>[^#\s]+)#\d+")
GRADES = ("1", "2", "3", "4")
OBTAIN = "It is part of Flickr8k_text.zip, beside Flickr8k.token.txt."
TERMS = ("Flickr8k's human judgements: for non-commercial research and education; cite Hodosh, "
         "Young and Hockenmaier, Framing Image Description as a Ranking Task, JAIR 47, 2013.")


def read_expert(root: Path | str | None) -> Judgements:
    """Expert judgements: 1 (does not describe it) to 4 (describes it), three experts a pair.

    Args:    root: a folder that holds `flickr8k/`, or that folder.
    Raises:  DataError listing everything that is wrong with the file.
    """
    return _read(root, "expert", EXPERT, "c", _grades, "three grades from 1 to 4")


def read_crowdflower(root: Path | str | None) -> Judgements:
    """CrowdFlower judgements: the share of people who said that the text describes the image."""
    return _read(root, "crowdflower", CROWD, "b", _share,
                 "the share of yes, the number of yes and of no, which agree")


def _read(root: Path | str | None, name: str, file: str, tau: str,
          rating: Callable[[list[str]], list[float] | None], expected: str) -> Judgements:
    """All pairs of one file; one error that lists what is wrong with it."""
    root = find_root(root, "flickr8k", marks=(file, f"Flickr8k_text/{file}"), obtain=OBTAIN)
    path = find_part(root, (file, f"Flickr8k_text/{file}"), f"Flickr8k: {file}")
    report = DataReport(remedy=f"Obtain {file} again, then read again. {OBTAIN}")
    pairs: list[tuple[str, str]] = []
    ratings, own = [], []
    for number, line in enumerate(read_lines(path), start=1):
        image, text, *numbers = line.split("\t") if line.count("\t") == 4 else ("", "")
        parts, value = TEXT_ID.fullmatch(text), rating(numbers)
        if not (image and parts and value):
            report.errors.append(Problem(
                "malformed line", f"{path.name}:{number}", "expected image<TAB>name.jpg#i, and "
                f"{expected}, parted by tabs; got {line[:80]!r}"))
            continue
        pairs.append((image, text))
        ratings.append(value)
        own.append(parts["image"] == image)
    report.errors += [Problem("judged twice", f"{image} {text}", f"{times} lines of {file}")
                      for (image, text), times in Counter(pairs).items() if times > 1]
    if not pairs:
        report.errors.append(Problem("no judgements", path.name, "not one line could be read"))
    report.refuse_errors()
    images, texts = zip(*pairs, strict=True)
    return Judgements(name, images, texts, np.array(ratings), np.array(own), tau, TERMS)


def _grades(numbers: list[str]) -> list[float] | None:
    """Three expert grades; None if they are not."""
    fine = len(numbers) == 3 and all(number in GRADES for number in numbers)
    return [float(number) for number in numbers] if fine else None


def _share(numbers: list[str]) -> list[float] | None:
    """The share of yes; None unless it is that of the two counts."""
    if len(numbers) != 3 or not (numbers[1].isdecimal() and numbers[2].isdecimal()):
        return None
    yes, no = int(numbers[1]), int(numbers[2])
    if yes + no == 0 or not re.fullmatch(r"[01](\.\d+)?", numbers[0]):
        return None
    return [yes / (yes + no)] if abs(float(numbers[0]) - yes / (yes + no)) < 1e-6 else None
