"""Training images of Flickr8k that show nearly what another one shows: a rule, its list, a choice.

The list is committed, so that no machine needs pictures or networks to follow it; how it was made
stands at its head, and `python -m tests.data.make_near_duplicates DATA` makes it again.
"""

import csv
import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from itr_study.checks import check_choice
from itr_study.data.base import DataError

LIST = Path(__file__).with_name("flickr8k_near_duplicates.csv")
CHOICES = ("nothing", "near_duplicates", "as_many_others")
LOOKS, SAID = 0.6, 0.5  # cosines of the features of two images, and of their captions on average


def near_duplicates(images: Sequence[str], features: np.ndarray, captions: np.ndarray
                    ) -> dict[str, str]:
    """Image that is left out -> image that stays, the one that looks most alike.

    Two images are near-duplicates where they look alike, and their captions say alike. One after
    the other is left out if it is one of an image that stays before it, so that none are left.

    Args:    images: I names; features: (I, D) of unit length; captions: (I, E), of each image the
             mean of the sentence vectors of its captions, each of unit length: the product of two
             is the mean cosine of their captions.
    """
    alike = captions @ captions.T >= SAID
    stays, left_out = np.ones(len(images), bool), {}
    for i, name in enumerate(images):
        before = np.flatnonzero(alike[i, :i] & stays[:i])
        looks = features[before] @ features[i]
        if len(before) and looks.max() >= LOOKS:
            stays[i] = False
            left_out[name] = images[before[looks.argmax()]]
    return left_out


def read_list() -> dict[str, str]:
    """The committed list: image that is left out -> image that stays."""
    with open(LIST, encoding="utf-8", newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {row["left_out"]: row["stays"] for row in rows}


def to_leave_out(choice: str, train: Sequence[str]) -> dict[str, str]:
    """Training images to leave out, each with the reason, for a choice of CHOICES.

    "as_many_others" is the control: as many images that are on no side of the list as left out, by
    the hash of their name, so that there is as little to train on, and as many near-duplicates.

    Raises:  ValueError for another choice; DataError where none of the list is in train.
    """
    check_choice("leave_out", choice, CHOICES)
    if choice == "nothing":
        return {}
    here = set(train)
    near = {image: other for image, other in read_list().items() if image in here}
    if not near:
        raise DataError(f"leave_out={choice!r} knows training images of the published Flickr8k "
                        "only, and none that it leaves out is here; leave the option out")
    if choice == "near_duplicates":
        return {image: f"it shows nearly what {other} shows" for image, other in near.items()}
    others = sorted(here - set(near) - set(near.values()),
                    key=lambda image: hashlib.sha256(image.encode()).digest())
    return dict.fromkeys(others[:len(near)], "by the hash of its name, one for each near-duplicate")
