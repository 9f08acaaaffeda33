"""Replace sections of a notebook that its data or its parameters cannot fill by a sentence.

A cell says in its first line what it cannot do without: `# needs: people's grades, boxes`,
`# needs: people's grades or exact relevance`; an item of a parameter, `# needs: soft in losses`, or
of what cells above have made, `# needs: lines in paired`; later cells of its section `# needs: the
cells above`.
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from itr_study.checks import check_choice
from itr_study.data.base import RetrievalDataset
from itr_study.data.box_table import kept_boxes
from itr_study.data.cxc import lies_in
from itr_study.digits import counted

MARK = "# needs: "
ABOVE = "the cells above"
SENTENCE = re.compile(r"^Left out: (.+) has (.+) \(needed here\)$", re.MULTILINE)
SKIPPED = re.compile(r"^SKIPPED ([^:\n]+):", re.MULTILINE)


class Source(Protocol):
    """What is asked of a `Study`: its data and parameters."""

    dataset: RetrievalDataset
    parameters: Any
    dataset_name: str
    root: Path | str | None


def detects_boxes() -> bool:
    """Tell whether the detector's files are here."""
    from itr_study.encoders.nanodet import network_file  # loads torch, which a batch need not

    return network_file() is not None


# What a cell may need: words for a data set without it, and whether it is there.
NEEDS: dict[str, tuple[str, Callable[[Source], bool]]] = {
    "people's grades": ("no people's grades", lambda study: bool(
        study.dataset.judgements) or study.dataset.name == "coco" and lies_in(study.root)),
    "grades of its pairs": ("no rated pairs",
                            lambda study: bool(study.dataset.judgements)),
    "rated captions": ("no ratings of captions (CxC)", lambda study:
                       study.dataset.relevance is not None or lies_in(study.root)),
    "exact relevance": ("no exact relevance", lambda study: study.dataset.relevance is not None),
    "boxes": ("no boxes of objects", lambda study: study.dataset.boxes is not None
              or study.dataset.published and kept_boxes(study.dataset.name) is not None
              or study.dataset.has_pictures and detects_boxes()),
    "pictures": ("no pictures", lambda study: study.dataset.has_pictures),
    "classes": ("no classes", lambda study: bool(study.dataset.classes)),
    "many texts an image": ("one text an image", lambda study: bool(
        np.bincount(study.dataset.splits["test"].image_of_text).min() > 1)),
    "five texts an image": ("fewer than five texts an image", lambda study: bool(
        np.bincount(study.dataset.splits["train"].image_of_text).max() >= 5)),
}
IMAGES = re.compile(r"at least (\d+) images")
ITEM = re.compile(r"(\S+) in (\w+)")


def lacking(study: Source, need: str, made: Mapping[str, Any] | None = None) -> str:
    """Say in words who lacks what of a need, "scenes has no boxes"; "" if it is there.

    Takes also the variables that the notebook has made. Raises: ValueError: no such need.
    """
    if " or " in need:
        absent = [lacking(study, one, made) for one in need.split(" or ")]
        return joined(absent) * all(absent)
    if item := ITEM.fullmatch(need):
        name, holder = item.groups()
        if holder in vars(study.parameters):
            return f"{holder} has no {name}" * (name not in vars(study.parameters)[holder])
        return f"the table {holder} has no {name}" * (
            made is not None and not len(made.get(holder, ())))
    if least := IMAGES.fullmatch(need):
        found = len(study.dataset.splits["test"].image_ids)
        words, is_there = (f"{counted(found, 'image')} in test, fewer than {least[1]}",
                           found >= int(least[1]))
    else:
        check_choice("need of a cell", need, [*NEEDS, "at least 100 images", "soft in losses"])
        words, is_there = NEEDS[need][0], NEEDS[need][1](study)
    return "" if is_there else f"{study.dataset_name} has {words}"


def joined(absent: Sequence[str]) -> str:
    """Join what is lacking, naming once who lacks several in a row."""
    whose = [one.partition(" has ")[0] for one in absent]
    return " and ".join(one.removeprefix(f"{who} has ") if who == before else one
                        for one, who, before in zip(absent, whose, ["", *whose], strict=False))


def leave_out(study: Source) -> None:
    """Replace cells that lack what they need by a sentence.

    Later cells that need the cells above are then replaced by nothing.
    """
    absent: list[str] = []  # of the last cell that said what it needs
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None

    def replaced(lines: list[str]) -> list[str]:
        if not lines or not lines[0].startswith(MARK):
            return lines
        if (needs := lines[0].removeprefix(MARK).strip()) == ABOVE:
            return ["pass\n"] if absent else lines
        absent[:] = [words for need in needs.split(", ")
                     if (words := lacking(study, need, shell.user_ns))]
        return [f"print({f'Left out: {joined(absent)} (needed here)'!r})\n"] if absent else lines

    if shell is not None:
        known = shell.input_transformers_cleanup
        known[:] = [one for one in known if getattr(one, "__name__", "") != replaced.__name__]
        known.append(replaced)


def left_out(texts: Sequence[str]) -> str:
    """Say what outputs leave out: "2 sections left out: no boxes of coco; skipped: Table I"."""
    found = [match for text in texts for match in SENTENCE.findall(text)]
    reasons = dict.fromkeys(f"{lack} of {data}" for data, lack in found)
    count = f"{len(found)} section{'s' * (len(found) != 1)} left out"
    skipped = dict.fromkeys(what for text in texts for what in SKIPPED.findall(text))
    return "; ".join([f"{count}: {'; '.join(reasons)}"] * bool(found)
                     + [f"skipped: {', '.join(skipped)}"] * bool(skipped))
