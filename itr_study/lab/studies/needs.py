"""Sections of a notebook that a data set cannot fill, left out with a sentence in their place.

A cell says in its first line what it cannot do without: `# needs: people's grades, boxes`.
"""

import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from itr_study.checks import check_choice
from itr_study.data.base import RetrievalDataset
from itr_study.data.box_table import kept_boxes

if TYPE_CHECKING:
    from itr_study.lab.studies.study import Study

MARK = "# needs: "
SENTENCE = re.compile(r"^Left out: (.+) has (.+) \(needed here\)$", re.MULTILINE)
# What a cell may need: words for a data set without it, and whether it is there.
NEEDS: dict[str, tuple[str, Callable[[RetrievalDataset], bool]]] = {
    "people's grades": ("no people's grades", lambda data: bool(data.judgements)),
    "exact relevance": ("no exact relevance", lambda data: data.relevance is not None),
    "boxes": ("no boxes of objects", lambda data: data.boxes is not None
              or kept_boxes(data.name) is not None),
    "pictures": ("no pictures", lambda data: data.has_pictures),
    "classes": ("no classes", lambda data: bool(data.classes)),
    "many texts an image": ("one text an image", lambda data: bool(
        np.bincount(data.splits["test"].image_of_text).min() > 1)),
}
IMAGES = re.compile(r"at least (\d+) images")


def lacking(data: RetrievalDataset, need: str) -> str:
    """Say in words what a data set lacks of a need; "" if it has it.

    Raises:
        ValueError: A need that there is not.
    """
    if least := IMAGES.fullmatch(need):
        found = len(data.splits["test"].image_ids)
        return f"{found} images in test, fewer than {least[1]}" * (found < int(least[1]))
    check_choice("need of a cell", need, [*NEEDS, "at least 100 images"])
    words, is_there = NEEDS[need]
    return "" if is_there(data) else words


def leave_out(study: "Study") -> None:
    """Replace cells of the running notebook whose needs the data set lacks, one sentence a section.
    """
    def replaced(lines: Sequence[str]) -> list[str]:
        if not lines or not lines[0].startswith(MARK):
            said.clear()
            return list(lines)
        needs = lines[0].removeprefix(MARK).strip().split(", ")
        absent = [words for need in needs if (words := lacking(study.dataset, need))]
        if not absent:
            said.clear()
            return list(lines)
        sentence = f"Left out: {study.dataset_name} has {' and '.join(absent)} (needed here)"
        new = sentence not in said
        said.add(sentence)
        return [f"print({sentence!r})\n" if new else "pass\n"]

    said: set[str] = set()
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None:
        known = shell.input_transformers_cleanup
        known[:] = [one for one in known if getattr(one, "__name__", "") != replaced.__name__]
        known.append(replaced)


def left_out(texts: Sequence[str]) -> str:
    """Count the sections that the output of a notebook says were left out: "2 sections left out: no
    boxes of coco"; "" if none was."""
    found = [match for text in texts for match in SENTENCE.findall(text)]
    reasons = dict.fromkeys(f"{lack} of {data}" for data, lack in found)
    count = f"{len(found)} section{'s' * (len(found) != 1)} left out"
    return f"{count}: {'; '.join(reasons)}" * bool(found)
