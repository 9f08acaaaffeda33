"""What a retrieval data set is: splits of images and texts, and a report of what was checked."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from PIL import Image

from itr_study.data.judgements import Judgements

SPLITS = ("train", "dev", "test")


class DataError(ValueError):
    """The data on disk cannot be used; the message lists every problem and its remedy."""


@dataclass(frozen=True, eq=False)
class Split:
    """One split: I images, T texts, and which image each text describes.

    Ids are unique over the whole data set. Every image has at least one text; the number of
    texts an image has is free and may differ between images.
    """

    name: str
    image_ids: tuple[str, ...]  # I
    text_ids: tuple[str, ...]  # T
    texts: tuple[str, ...]  # T, as written by the annotator
    image_of_text: np.ndarray  # (T,) int64, index into image_ids


class Problem(NamedTuple):
    """One thing a reader found: `kind` groups like problems, `where` names the file or id."""

    kind: str
    where: str
    detail: str


@dataclass
class DataReport:
    """What was read, what was left out with its reason, and what cannot be explained."""

    counts: dict[str, int] = field(default_factory=dict)  # "images": 8091, "texts": 40460, ...
    excluded: list[Problem] = field(default_factory=list)  # explained: left out, go on
    notes: list[Problem] = field(default_factory=list)  # used as it is, but worth knowing
    errors: list[Problem] = field(default_factory=list)  # unexplained: refuse
    remedy: str = ""  # one sentence: what the user can do about the errors

    def refuse_errors(self) -> None:
        """Raise one DataError that lists all errors at once, if there are any."""
        if self.errors:
            count = len(self.errors)
            lines = "\n".join(f"  {p.kind}: {p.where}: {p.detail}" for p in self.errors[:50])
            rest = f"\n  ... and {count - 50} more" if count > 50 else ""
            raise DataError(f"{count} problem{'s' * (count != 1)} in the data:\n{lines}{rest}\n"
                            f"{self.remedy}")


class Regions(NamedTuple):
    """Region features of the images of one split, in the order of `Split.image_ids`."""

    features: np.ndarray  # (I, R, D) float
    mask: np.ndarray  # (I, R) bool, True where a region exists


@dataclass(eq=False)
class RetrievalDataset:
    """Images, texts and splits, whatever they were read from.

    `features` holds region features that come with the data (name -> function of a split), such
    as the detector features of `scenes`. `relevance` gives exact graded relevance (I, T) in
    [0, 1] for a split where the data has it (1 for matches, at most 1 - 1e-4 otherwise).
    `part_of` is the whole data set of which this one holds some pictures with all their texts: what
    is encoded is taken from there. `content` is the key of features and sentence vectors: data sets
    that differ only in who belongs to whom share them. `classes` names the class of each image
    where retrieval is measured by class (CUB's species); a match stays what it is, an image and a
    text written about it.
    """

    name: str
    splits: dict[str, Split]
    open_image: Callable[[str], Image.Image]  # image id -> RGB picture
    fingerprint: str  # sha256 over ids, texts, splits and what identifies the pictures
    report: DataReport = field(default_factory=DataReport)
    features: dict[str, Callable[[Split], Regions]] = field(default_factory=dict)
    relevance: Callable[[Split], np.ndarray] | None = None
    boxes: Callable[[str], list] | None = None  # image id -> boxes with names, where known
    seen_by: tuple[str, ...] = ()  # text encoders trained on these captions (leakage)
    terms: str = ""  # licence and citation, one sentence
    judgements: dict[str, Judgements] = field(default_factory=dict)  # of pairs, by people
    classes: dict[str, str] = field(default_factory=dict)  # image id -> class
    part_of: "RetrievalDataset | None" = None
    content: str = ""  # fingerprint of what is encoded, pictures and texts in their order

    def __post_init__(self) -> None:
        self.content = self.content or self.fingerprint
