"""What the points of a map can be coloured by: their kind, the rank of their match, how common they
are as results, the ranks of one model less those of another."""

from collections.abc import Sequence

import numpy as np

from itr_study.digits import signed
from itr_study.explorers.plane import FIRST
from itr_study.plots.embedding_map import Shade


def kind_shade(images: int, texts: int) -> Shade:
    """Images and texts, in two colours."""
    kinds = np.repeat([0.0, 1.0], [images, texts])
    return Shade("images and texts", kinds, np.zeros(len(kinds), bool))


def rank_shade(ranks: np.ndarray, most: int) -> Shade:
    """The rank of the match (n,), on a logarithmic scale from 1 to `most`; hollow below FIRST."""
    far = np.log(max(most, 2))
    ticks = [(float(np.log(rank) / far), f"{rank:,}") for rank in upto(max(most, 2))]
    return Shade("rank of the match", np.log(ranks) / far, ranks > FIRST, ticks,
                 meaning=(f"match among the first {FIRST}", "match further down"))


def hub_shade(counts: np.ndarray, most: int) -> Shade:
    """How often each (n,) is found, log(1 + count) from 0 to `most`; hollow where never."""
    far = np.log1p(max(most, 1))
    ticks = [(float(np.log1p(count) / far), f"{count:,}") for count in (0, *upto(max(most, 1)))]
    return Shade(f"how often among the first {FIRST}", np.log1p(counts) / far, counts == 0, ticks,
                 meaning=("found", f"never among the first {FIRST}"))


def gain_shade(difference: np.ndarray, most: int) -> Shade:
    """The rank under one model less that under another (n,), 0 in the middle, both signs on the
    same logarithmic scale up to `most`; hollow where the first model is worse."""
    far = np.log1p(max(most, 1))
    ends = [(float(np.log1p(size) / far / 2), size) for size in upto(max(most, 1))]
    ticks = [*((0.5 - at, signed(-size, 0)) for at, size in reversed(ends)), (0.5, "0"),
             *((0.5 + at, signed(size, 0)) for at, size in ends)]
    levels = 0.5 + np.sign(difference) * np.log1p(np.abs(difference)) / far / 2
    return Shade("rank here less rank of the other model", levels, difference > 0, ticks,
                 signed=True, meaning=("ranked as high here, or higher", "ranked lower here"))


def upto(most: int) -> Sequence[int]:
    """Powers of ten below `most`, and `most` where it stands apart from the last of them.

    Example:
        >>> upto(500), upto(11), upto(1)
        ([1, 10, 100, 500], [1, 11], [1])
    """
    powers = [10 ** power for power in range(len(str(most))) if 10 ** power * 2 <= most]
    return [*powers, most]
