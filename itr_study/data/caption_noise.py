"""Captions that stand with a wrong image: a share of the training captions, shuffled."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from itr_study.checks import check_count, check_number
from itr_study.data.base import Problem, RetrievalDataset
from itr_study.files.atomic import canonical_json


def with_caption_noise(dataset: RetrievalDataset, share: float, seed: int = 0) -> RetrievalDataset:
    """The data set with a share of its training captions exchanged among training images.

    Pictures, texts and their order stay, and so does how many captions each image has: only who
    belongs to whom changes. So what is encoded stays (`content`), and the fingerprint changes.

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


def check_share(share: float, name: str = "caption_noise") -> None:
    """Raise ValueError unless 0 <= share < 1."""
    check_number(name, share, least=0)
    if share >= 1:
        raise ValueError(f"{name} must be a share in [0, 1), got {share}; 0.2 shuffles a fifth of "
                         "the training captions")


def shuffled_owners(text_ids: Sequence[str], image_of_text: np.ndarray, share: float,
                    seed: int) -> np.ndarray:
    """(T,) the image that each caption stands with, another one for round(share x T) of them.

    Which captions, and where they go, is decided by hashes of their ids, so it is the same on every
    machine, and captions shuffled at a small share are among those shuffled at a larger one. A
    caption that would keep its image changes places with one that helps both.
    """
    count = round(share * len(text_ids))
    chosen = np.array(_by_hash(text_ids, f"{seed} chosen")[:count], np.int64)
    own = image_of_text[chosen]
    _check_enough(own, share, len(text_ids))
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


def _check_enough(own: np.ndarray, share: float, texts: int) -> None:
    """Raise ValueError unless all captions chosen, of images `own`, can go to another image: no
    image may have more than half of them."""
    most = int(np.bincount(own).max()) if len(own) else 0
    if len(own) < 2 or 2 * most > len(own):
        whose = f", {most} of them of one image" if len(own) > 1 else ""
        raise ValueError(f"caption_noise={share} of {texts} training captions is {len(own)}"
                         f"{whose}: too few to give each to another image; give a larger share or "
                         "more captions, or 0")
