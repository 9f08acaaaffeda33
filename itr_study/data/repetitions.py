"""Pictures and captions that come twice where nobody guarantees that they do not: a test of what
was trained on flatters."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from itr_study.data.base import Problem, Split
from itr_study.files.atomic import sha256_file


def repetitions(splits: Mapping[str, Split], pictures: Mapping[str, Path]) -> list[Problem]:
    """Notes on captions twice for an image, captions and pictures in two splits.

    Args:    pictures: image id -> file; files of equal bytes are one picture.
    """
    notes: list[Problem] = []
    first_text: dict[str, str] = {}  # caption -> the split it was first seen in
    for split in splits.values():
        pairs = Counter(zip(split.image_of_text.tolist(), split.texts, strict=True))
        notes += [Problem("caption twice for one image", split.image_ids[image],
                          f"{count} x {text[:60]!r}")
                  for (image, text), count in pairs.items() if count > 1]
        notes += [Problem("caption in two splits", text[:60],
                          f"of {first_text[text]} and of {split.name}")
                  for text in dict.fromkeys(split.texts) if text in first_text]
        first_text = dict.fromkeys(split.texts, split.name) | first_text
    return notes + pictures_in_two_splits(splits, pictures)


def pictures_in_two_splits(splits: Mapping[str, Split], pictures: Mapping[str, Path]
                           ) -> list[Problem]:
    """Notes on files of equal bytes in two splits; only files of equal size are read."""
    images = [(split.name, image) for split in splits.values() for image in split.image_ids]
    bytes_of = {image: pictures[image].stat().st_size for _, image in images}
    same_size = Counter(bytes_of.values())
    notes, first = [], {}
    for split, image in images:
        if same_size[bytes_of[image]] > 1:
            other_split, other = first.setdefault(sha256_file(pictures[image]), (split, image))
            if other_split != split:
                notes.append(Problem("picture in two splits", image,
                                     f"of {split}; the file is that of {other} of {other_split}"))
    return notes
