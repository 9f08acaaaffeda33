"""What the published Flickr8k holds: a part of it, or an altered copy, is not taken for it."""

import hashlib
from collections import Counter
from collections.abc import Iterable

from itr_study.data.assemble import Caption
from itr_study.data.base import Problem
from itr_study.data.judgements import Judgements

KIND = "not as published"
REMEDY = ("Numbers of a part or an altered copy compare with no others; to read one on purpose "
          "give as_published=False (of a command: --set data_options.as_published=false).")
# Images of each split and the digest of their names; digest of the five captions of each of them.
SPLITS = {"train": (6000, "36510bd90ccee351"), "dev": (1000, "51c9cff8a4e3cd84"),
          "test": (1000, "dcb37c9f44f9c087")}
CAPTIONS = "219a1bae6f664385"
FIVE = ["0", "1", "2", "3", "4"]
PAIRS = {"expert": 5822, "crowdflower": 47830}


def digest(lines: Iterable[str]) -> str:
    """16 hex digits over lines in any order."""
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


def differences(images: dict[str, list[str]], captions: list[Caption],
                judgements: dict[str, Judgements]) -> list[Problem]:
    """Where splits, captions and judgements differ from those published.

    Args:    images: split -> image ids; captions: those of these images only.
    """
    problems = [Problem(KIND, f"Flickr_8k.{split}Images.txt", detail)
                for split, ids in images.items() if (detail := split_difference(split, ids))]
    problems += number_differences(images, captions)
    if not problems and digest(f"{c.text_id}\t{c.text}" for c in captions) != CAPTIONS:
        problems.append(Problem(KIND, "Flickr8k.token.txt", "a caption has other words, or stands "
                                "with another image, than in the published file"))
    known = {image for ids in images.values() for image in ids}
    for name, pairs in judgements.items():
        if len(pairs) != PAIRS[name]:
            problems.append(Problem(KIND, f"{name} judgements",
                                    f"expected {PAIRS[name]:,} pairs, found {len(pairs):,}"))
        problems += [Problem(KIND, f"{name} judgements", f"no split has the judged image {image}")
                     for image in sorted(set(pairs.image_ids) - known)]
    return problems


def split_difference(split: str, ids: list[str]) -> str:
    """How a list of images differs from the published one; empty where it does not."""
    count, expected = SPLITS[split]
    if (found := digest(ids)) == expected:
        return ""
    other = [name for name, (_, names) in SPLITS.items() if names == found]
    return (f"expected the {count:,} {split} images, found {len(ids):,}"
            + (f", those of {other[0]}: were the lists exchanged?" if other else
               ", not all of them the same" * (len(ids) == count)))


def number_differences(images: dict[str, list[str]], captions: list[Caption]) -> list[Problem]:
    """Images that do not have the captions #0 to #4; one without any is reported elsewhere."""
    numbers: dict[str, list[str]] = {}
    for caption in captions:
        numbers.setdefault(caption.image, []).append(caption.text_id.rpartition("#")[2])
    return [Problem(KIND, image, f"expected the captions #{', #'.join(FIVE)}, found "
                    f"#{', #'.join(sorted(numbers[image]))}")
            for ids in images.values() for image in Counter(ids)
            if sorted(numbers.get(image, FIVE)) != FIVE]
