"""How much captions of `scenes` say: styles from precise to vague, for the same pictures.

The vaguer the captions, the more pictures one of them is true of, so the more false negatives a
batch holds (`data/false_negatives.py` counts them).
"""

from typing import NamedTuple


class Style(NamedTuple):
    """How captions are written.

    deck: kinds of captions, each as often as it is written; where: probability that a caption also
    says where the things are; more: that one of a relation also names a third thing; detail: how
    often attributes are named, vague: how often in words that cover several values, both as
    multiples of the usual probabilities.
    """

    deck: tuple[str, ...]
    where: float
    more: float
    detail: float
    vague: float


def _deck(**times: int) -> tuple[str, ...]:
    return tuple(kind.replace("_", " ") for kind, count in times.items() for _ in range(count))


USUAL = 2  # the level of a data set whose options name none
STYLES = (
    Style(_deck(two=3, related=8, number=1, all=10), 1.0, 1.0, 3.0, 0.0),
    Style(_deck(one=2, two=4, related=8, number=2, all=6), 0.6, 0.6, 1.2, 0.7),
    Style(_deck(one=2, two=4, related=7, number=2, number_of=1, all=5, some=1), 0.5, 0.4, 1.0, 1.0),
    Style(_deck(one=6, two=6, related=5, number=2, number_of=1, all=1, some=1), 0.3, 0.2, 0.6, 2.0),
    Style(_deck(one=13, two=4, related=2, number_of=1, some=2), 0.1, 0.0, 0.3, 4.0),
)
