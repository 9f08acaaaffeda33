"""Pairs that are not what they seem: noise put into captions, false negatives, near-duplicates."""

import csv
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from itr_study.checks import GAP, MATCH, check_choice, check_count, check_number
from itr_study.data.base import DataError, Problem, RetrievalDataset, Split, repeated
from itr_study.files.atomic import canonical_json

ROWS = 256  # images looked at at a time
LIST = Path(__file__).with_name("flickr8k_near_duplicates.csv")  # its head says how it was made
SHARES = {"half": 1 / 2, "three_quarters": 3 / 4}  # of the training images, that are left out
BY_LIST = ("near_duplicates", "as_many_others")
CHOICES = ("nothing", *BY_LIST, *SHARES)


def with_caption_noise(dataset: RetrievalDataset, share: float, seed: int = 0) -> RetrievalDataset:
    """Exchange a share of the training captions of a data set among training images.

    Only who belongs to whom changes: what is encoded (`content`) stays, the fingerprint does not.

    Args:    share: of the training captions, 0 <= share < 1; 0 gives the data set itself; seed: of
             the data, never that of a run.
    Raises:  ValueError for another share, or where too few captions are left to shuffle.
    """
    check_share(share)
    check_count("noise_seed", seed, 0)
    if not share:
        return dataset
    train = dataset.splits["train"]
    owners = shuffled_owners(train.text_ids, train.image_of_text, share, seed)
    note = Problem("caption noise", "train", f"{(owners != train.image_of_text).sum():,} of "
                   f"{len(owners):,} captions stand with an image they were not written about")
    changed = hashlib.sha256(canonical_json([dataset.fingerprint, owners.tolist()]).encode())
    return replace(
        dataset, splits=dataset.splits | {"train": replace(train, image_of_text=owners)},
        fingerprint=changed.hexdigest(),
        report=replace(dataset.report, notes=[*dataset.report.notes, note]))


def check_share(share: float) -> None:
    """Raise ValueError unless 0 <= share < 1."""
    check_number("caption_noise", share, least=0)
    if share >= 1:
        raise ValueError(f"caption_noise must be a share in [0, 1), got {share}; 0.2 shuffles a "
                         "fifth of the training captions")


def shuffled_owners(text_ids: Sequence[str], image_of_text: np.ndarray, share: float,
                    seed: int) -> np.ndarray:
    """Give round(share x T) of the captions (T,) to other images.

    Hashes of their ids decide which and where to, so that those shuffled at a small share are among
    those at a larger one. One that would keep its image changes places with one that helps both.
    """
    chosen = np.array(_by_hash(text_ids, f"{seed} chosen")[:round(share * len(text_ids))], np.int64)
    own = image_of_text[chosen]
    most = int(np.bincount(own).max()) if len(own) else 0
    if len(own) < 2 or 2 * most > len(own):
        whose = f", {most} of them of one image" if len(own) > 1 else ""
        raise ValueError(f"caption_noise={share} of {len(text_ids)} training captions is {len(own)}"
                         f"{whose}: too few to give each to another image; give a larger share or "
                         "more captions, or 0")
    given = own[_by_hash([text_ids[t] for t in chosen], f"{seed} given")]
    for k in np.flatnonzero(given == own):
        if given[k] == own[k]:  # no earlier exchange has helped it
            other = np.flatnonzero((given != own[k]) & (own != own[k]))[0]
            given[k], given[other] = given[other], given[k]
    owners = image_of_text.copy()
    owners[chosen] = given
    return owners


def _by_hash(ids: Sequence[str], salt: str) -> list[int]:
    """The places of the ids, in the order of their hashes."""
    return sorted(range(len(ids)),
                  key=lambda n: hashlib.sha256(f"{salt} {ids[n]}".encode()).digest())


class Pairs(NamedTuple):
    """What a batch of B pairs holds but for its own, in B (B - 1) cells.

    A false negative is no match, and every loss takes it for a negative, though the text is wholly
    true of the image. Siblings, other texts of the same image, are matches.
    """

    cells: int
    false_negatives: float
    siblings: float

    @property
    def share(self) -> float:
        """Of the cells, those that are false negatives."""
        return self.false_negatives / self.cells


def expected_pairs(relevance: np.ndarray, image_of_text: np.ndarray, batch: int) -> Pairs:
    """Take the mean over all batches of B of T different texts, each as likely: counted.

    An ordered pair of texts is in one with probability B (B - 1) / (T (T - 1)).

    Args:    relevance: (I, T) exact, of at least 1 - 1e-4 where a text is wholly true of an image;
             image_of_text: (T,); batch: B, 2 to T.
    Raises:  ValueError for another shape or batch.
    Source:  this package.
    Example: text 1 is true of image 0 as well, whose two texts are siblings
        >>> graded = np.array([[1.0, 0.9999, 1.0], [0.2, 1.0, 0.5]])
        >>> expected_pairs(graded, np.array([0, 1, 0]), batch=3)
        Pairs(cells=6, false_negatives=2.0, siblings=2.0)
    """
    owner = np.asarray(image_of_text)
    check_count("batch", batch, 2, len(owner))
    if relevance.shape[1] != len(owner) or relevance.shape[0] <= owner.max():
        raise ValueError(f"relevance must be (I, T) of the {len(owner)} texts and their images, "
                         f"got {relevance.shape}")
    texts = np.bincount(owner, minlength=len(relevance))  # of each image
    found = 0
    for start in range(0, len(relevance), ROWS):
        rows = np.arange(len(relevance))[start:start + ROWS]
        false = as_true(relevance[rows]) & (owner != rows[:, None])
        found += int(texts[rows] @ false.sum(axis=1))
    cells, all_cells = batch * (batch - 1), len(owner) * (len(owner) - 1)
    siblings = int((texts * (texts - 1)).sum())
    return Pairs(cells, found * cells / all_cells, siblings * cells / all_cells)


def as_true(relevance: np.ndarray) -> np.ndarray:
    """Tell where a text is wholly true of an image; float32 holds 1 - 1e-4 to within 3e-8."""
    return np.asarray(relevance) > MATCH - 1.5 * GAP


def read_list() -> dict[str, str]:
    """Read the committed list of near-duplicates: image that is left out -> image that stays."""
    with open(LIST, encoding="utf-8", newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {row["left_out"]: row["stays"] for row in rows}


def to_leave_out(choice: str, train: Sequence[str]) -> dict[str, str]:
    """Choose training images to leave out, each with the reason, by one of CHOICES.

    "as_many_others", the control, leaves out as many that are on no side of the list. Of SHARES the
    larger leaves out what the smaller does, and more.

    Raises:  ValueError for another choice; DataError where none of the list is in train.
    """
    check_choice("leave_out", choice, CHOICES)
    if choice == "nothing":
        return {}
    here = set(train)
    if choice in SHARES:
        return dict.fromkeys(by_hash(here)[:min(round(SHARES[choice] * len(here)), len(here) - 1)],
                             f"by the hash of its name, {choice.replace('_', ' ')} of them")
    near = {image: other for image, other in read_list().items() if image in here}
    if not near:
        raise DataError(f"leave_out={choice!r} knows training images of the published Flickr8k "
                        "only, and none that it leaves out is here; leave the option out")
    if choice == "near_duplicates":
        return {image: f"it shows nearly what {other} shows" for image, other in near.items()}
    others = by_hash(here - set(near) - set(near.values()))
    return dict.fromkeys(others[:len(near)], "by the hash of its name, one for each near-duplicate")


def by_hash(images: set[str]) -> list[str]:
    """Sort image ids by the hash of their names: an order by chance, everywhere the same."""
    return sorted(images, key=lambda image: hashlib.sha256(image.encode()).digest())


def repetitions(splits: Mapping[str, Split], sha256: Mapping[str, str]) -> list[Problem]:
    """Note captions twice for an image, captions and pictures in two splits: they flatter a test.

    Args:    sha256: image id -> of its file; files of equal bytes are one picture.
    """
    notes: list[Problem] = []
    first_text: dict[str, str] = {}  # caption -> the split it was first seen in
    first: dict[str, tuple[str, str]] = {}  # sha256 -> the split and image it was first seen in
    for split in splits.values():
        pairs = zip(split.image_of_text.tolist(), split.texts, strict=True)
        notes += [Problem("caption twice for one image", split.image_ids[image],
                          f"{count} x {text[:60]!r}") for (image, text), count in repeated(pairs)]
        notes += [Problem("caption in two splits", text[:60],
                          f"of {first_text[text]} and of {split.name}")
                  for text in dict.fromkeys(split.texts) if text in first_text]
        first_text = dict.fromkeys(split.texts, split.name) | first_text
    for split in splits.values():
        for image in split.image_ids:
            name, other = first.setdefault(sha256[image], (split.name, image))
            if name != split.name:
                notes.append(Problem("picture in two splits", image, f"of {split.name}; the file "
                                     f"is that of {other} of {name}"))
    return notes
