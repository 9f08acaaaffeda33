"""The 80 classes of COCO's objects, and which words of a caption name one of them.

`coco_classes.csv` gives the words of each class, in the order in which detectors count the classes;
words of a name that belong together are joined by "_". Its last line holds names of no class, such
as "train track", so that the train in them is not taken for one. The words are ours, chosen while
reading captions of Flickr8k's training split.
"""

import csv
import functools
from pathlib import Path
from typing import NamedTuple

from itr_study.data.vocabulary import tokenize

TABLE = Path(__file__).with_name("coco_classes.csv")


class Named(NamedTuple):
    """Words `start` to `stop` - 1 of a caption, as `tokenize` counts them, name a class."""

    start: int
    stop: int
    number: int  # of the class, 0 to 79


@functools.cache
def coco_classes() -> dict[str, tuple[str, ...]]:
    """Words by class, in COCO's order; those that name none under ""."""
    with open(TABLE, encoding="utf-8", newline="") as file:
        return {row["class"]: tuple(row["words"].split()) for row in csv.DictReader(file)}


@functools.cache
def class_names() -> tuple[str, ...]:
    """The 80 names."""
    return tuple(name for name in coco_classes() if name)


@functools.cache
def _class_of_words() -> dict[tuple[str, ...], int]:
    """Number of the class for the words of a name, -1 for the names of no class."""
    return {tuple(word.split("_")): number if name else -1
            for number, (name, words) in enumerate(coco_classes().items()) for word in words}


def named_classes(caption: str) -> list[Named]:
    """Which words of a caption name a class of COCO, in their order.

    Of names that begin at a word the longest counts, so that a hot dog is no dog. What a caption
    says that is not there ("without a dog") is not understood.

    Example:
        >>> names = [class_names()[named.number] for named in named_classes("Two men and a puppy")]
        >>> names, named_classes("A hot dog on a train track")
        (['person', 'dog'], [Named(start=1, stop=3, number=52)])
    """
    words, table, found, place = tokenize(caption), _class_of_words(), [], 0
    longest = max(map(len, table))
    while place < len(words):
        lengths = range(min(longest, len(words) - place), 0, -1)
        known = [n for n in lengths if tuple(words[place:place + n]) in table]
        length = known[0] if known else 1
        number = table[tuple(words[place:place + length])] if known else -1
        found += [Named(place, place + length, number)] * (number >= 0)
        place += length
    return found
