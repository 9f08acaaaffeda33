"""What a retrieval data set is: splits of images and texts, and a report of what was checked."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

SPLITS = ("train", "dev", "test")
LISTED = 10  # problems of a kind; the others are counted


@dataclass(frozen=True, eq=False)
class Judgements:
    """N pairs of an image and a text, and how well people said that the one describes the other."""

    name: str
    image_ids: tuple[str, ...]
    text_ids: tuple[str, ...]
    ratings: np.ndarray  # (N, raters) float64, NaN where absent, higher = describes it better
    own: np.ndarray  # (N,) bool: the text was written about this very image
    tau: str  # which of Kendall's coefficients such ratings are compared by, "b" or "c"
    terms: str = ""  # licence and citation

    def __len__(self) -> int:
        return len(self.image_ids)

    def take(self, pairs: np.ndarray) -> "Judgements":
        """Take these pairs only, in this order; `pairs` are whole numbers in [0, N)."""
        return replace(self, image_ids=tuple(self.image_ids[n] for n in pairs),
                       text_ids=tuple(self.text_ids[n] for n in pairs),
                       ratings=self.ratings[pairs], own=self.own[pairs])


class DataError(ValueError):
    """The data on disk cannot be used; the message lists every problem and its remedy."""


@dataclass(frozen=True, eq=False)
class Split:
    """One split: I images, T >= I texts, and whose each text is; ids are unique over all."""

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

    def error(self, kind: str, where: str, detail: str) -> None:
        """Note an error."""
        self.errors.append(Problem(kind, where, detail))

    def refuse_errors(self) -> None:
        """Raise one DataError that lists all errors at once, if there are any."""
        if self.errors:
            count, lines = len(self.errors), []
            for kind, times in Counter(problem.kind for problem in self.errors).items():
                alike = [f"  {kind}: {p.where}: {p.detail}" for p in self.errors if p.kind == kind]
                lines += alike[:LISTED] + [f"  {kind}: and {times - LISTED:,} more"] * (
                    times > LISTED)
            raise DataError("\n".join([f"{count:,} problem{'s' * (count != 1)} in the data:",
                                       *lines, self.remedy]))

    def refuse_ratings(self, file: str, rated: Sequence[tuple]) -> None:
        """Raise the same, also for a pair (the first two values) rated twice, or no ratings."""
        self.errors += [Problem("rated twice", f"{first}, {second}", f"{times} lines of {file}")
                        for (first, second), times in repeated(row[:2] for row in rated)]
        if not rated:
            self.error("no ratings", file, "not one line could be read")
        self.refuse_errors()


def repeated(items: Iterable[Hashable]) -> list[tuple]:
    """List what occurs more than once, each with how often."""
    return [(item, count) for item, count in Counter(items).items() if count > 1]


class Regions(NamedTuple):
    """Region features of the images of one split, in the order of `Split.image_ids`."""

    features: np.ndarray  # (I, R, D) float
    mask: np.ndarray  # (I, R) bool, True where a region exists


@dataclass(eq=False)
class RetrievalDataset:
    """Images, texts and splits, whatever they were read from.

    `relevance` gives exact graded relevance (I, T) in [0, 1] for a split where the data has it: 1
    for matches, at most 1 - 1e-4 otherwise. `places` gives (I, R, 4) left, top, right and bottom in
    fractions of the picture, NaN without a place. Data sets of equal `content` share features and
    sentence vectors. `classes` are for retrieval by class (CUB's species), no matches.
    """

    name: str
    splits: dict[str, Split]
    open_image: Callable[[str], Image.Image]  # image id -> RGB picture
    fingerprint: str  # sha256 over ids, texts, splits and the bytes of the pictures
    report: DataReport = field(default_factory=DataReport)
    features: dict[str, Callable[[Split], Regions]] = field(default_factory=dict)  # given ones
    places: Callable[[Split], np.ndarray] | None = None  # of regions of features "given"
    relevance: Callable[[Split], np.ndarray] | None = None
    boxes: Callable[[str], list] | None = None  # image id -> boxes with names, where known
    seen_by: tuple[str, ...] = ()  # text encoders trained on these captions (leakage)
    terms: str = ""  # licence and citation, one sentence
    judgements: dict[str, Judgements] = field(default_factory=dict)  # of pairs, by people
    classes: dict[str, str] = field(default_factory=dict)  # image id -> class
    has_pictures: bool = True  # else open_image gives a card with the id, to be shown alone
    part_of: "RetrievalDataset | None" = None  # the whole, if this has some pictures of it only
    content: str = ""  # fingerprint of what is encoded, pictures and texts in their order
    sha256: dict[str, str] = field(default_factory=dict)  # image id -> of its file, if it is one
    published: bool = False  # its pictures are, byte for byte, those of published numbers

    def __post_init__(self) -> None:
        self.content = self.content or self.fingerprint


@dataclass(frozen=True)
class DatasetRecord:
    """What is known of a data set before it is read: how, where, and what its runs are measured by.

    `graded_by` names label sources that say how relevant every text is to every image when a run is
    evaluated, the one to show first first; "cider" needs nothing but the captions.
    """

    name: str
    load: Callable[..., RetrievalDataset]  # (root, **options that a run's config may set)
    generated: bool = False  # made anywhere in seconds: no folder, and no rows are committed
    folders: tuple[str, ...] = ()  # names of its folder below the root of all data
    graded_by: tuple[str, ...] = ("cider",)
    in_folds: tuple[str, ...] = ()  # COCO's test: also in five folds ("1K"), by ECCV Caption, CxC
    searched: str = "test"  # the split that a search looks at, "all" for all of them
    # the correlations with human judgements that rows carry, by split
    human_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kept_judgements: tuple[str, ...] = ()  # of which a run keeps the score of each pair of test
    judged_by: str = ""  # who, in a sentence, graded pairs that are no match; "" = nobody
    by_class: bool = False  # whether dev and test are also measured by class
    features: str = ""  # value of the option of that name that reads published features, "" = none


def find_root(root: Path | str | None, name: str, *, also: tuple[str, ...] = (),
              marks: tuple[str, ...] = (), obtain: str = "") -> Path:
    """Find the folder of one data set, given the root of all of them or a path straight to it.

    Args:    root: what the user gave (`DATA`); name: folder looked for below it; also: other
             names of that folder; marks: patterns of files by which the folder itself is
             recognised; obtain: one sentence on where the data come from.
    Raises:  DataError naming what was looked for and how to obtain it.
    """
    wanted = (name, *also)
    if root is None:
        raise DataError(f"{name}: no folder was given; give root=... (--data of a command) a "
                        f"folder that holds {name}/, or that folder itself. {obtain}".rstrip())
    root = Path(root).expanduser()
    if not root.is_dir():
        raise DataError(f"{name}: there is no folder {root}. {obtain}".rstrip())
    if any(any(root.glob(mark)) for mark in marks):
        return root
    below = next((root / folder for folder in wanted if (root / folder).is_dir()), None)
    if below or root.resolve().name in wanted:
        return below or root
    looked = " or ".join(f"{folder}/" for folder in wanted)
    files = f", nor is it one (no {' or '.join(marks)})" if marks else ""
    raise DataError(f"{name}: {root} holds no {looked}{files}; it {_has(root)}. {obtain}".rstrip())


def find_part(root: Path, names: tuple[str, ...], what: str) -> Path:
    """Find the first of the names that exists below root; DataError naming all of them."""
    for name in names:
        if (root / name).exists():
            return root / name
    raise DataError(f"{what} missing: looked for {', '.join(names)} in {root}, which {_has(root)}")


def _has(folder: Path) -> str:
    return f"has {', '.join(sorted(path.name for path in folder.iterdir())[:5]) or 'nothing'}"


def read_text(path: Path) -> str:
    """Read a UTF-8 file, or UTF-16 as spreadsheets write it; DataError naming the bad byte."""
    content = path.read_bytes()
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        return content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        found = "an Excel workbook" if content.startswith(b"PK") else "not UTF-8 text"
        raise DataError(f"{path} is {found} (byte {error.start}): save it as UTF-8 (Excel: \"CSV "
                        "UTF-8\"), or obtain it again") from error


def read_lines(path: Path) -> list[str]:
    """Read the lines of a text file without the newline of each; none for an empty file."""
    # not splitlines(): captions may hold other characters that it would split at
    lines = read_text(path).replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def read_names(path: Path) -> list[str]:
    """Read a list of names, one a line; empty lines are none."""
    return [line.strip() for line in read_lines(path) if line.strip()]
