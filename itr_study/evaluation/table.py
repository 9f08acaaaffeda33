"""The retrieval table that papers print, and its intervals over resampled images."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from itr_study.checks import check_number
from itr_study.metrics.intervals import LEVEL
from itr_study.metrics.ranks import Ranks
from itr_study.metrics.recall import KS, recall_of_ranks
from itr_study.metrics.truth import DIRECTIONS, check_image_of_text

RETRIEVAL = tuple(f"{direction}_{metric}" for direction in DIRECTIONS
                  for metric in (*(f"r{k}" for k in KS), "medr", "meanr")) + ("rsum",)
CHUNK = 100  # resamples at a time: 100 x 5,000 counts are 4 MB


def percent(part: float | np.ndarray, whole: float = 1) -> float | np.ndarray:
    """Convert a fraction, or a part of a whole, to percent; metrics give fractions.

    Example:
        >>> percent(0.25), percent(3, 4)
        (25.0, 75.0)
    """
    return 100 * part / whole


def retrieval_table(best: Ranks) -> dict[str, float]:
    """Compute R@1, R@5, R@10 in percent, median and mean rank, and RSUM.

    Source: all four papers; RSUM as in listwise and bcls. The median of an even number of ranks may
    end in .5, while published code rounds down.

    Args: best: the rank of the best match of every query, as `ranks` gives them.
    Returns: i2t_r1, i2t_r5, i2t_r10, i2t_medr, i2t_meanr, the same with t2i, and rsum, the sum of
        the six percentages (at most 600).

    Example:
        >>> table = retrieval_table(Ranks(i2t=np.array([1, 2]), t2i=np.array([1, 7, 30, 1])))
        >>> table["i2t_r1"], table["t2i_r5"], table["t2i_medr"], table["rsum"]
        (50.0, 50.0, 4.0, 425.0)
    """
    table = {name: percent(value) for name, value in recall_of_ranks(best).items()}
    table["rsum"] = sum(table.values())
    for direction in DIRECTIONS:
        each = best.by_direction(direction)
        table |= {f"{direction}_medr": float(np.median(each)),
                  f"{direction}_meanr": float(each.mean())}
    return {name: table[name] for name in RETRIEVAL}


class Interval(NamedTuple):
    """A number with the ends of its interval."""

    value: float
    low: float
    high: float


def bootstrap(best: Ranks, image_of_text: np.ndarray, n: int = 1000, seed: int = 0,
              level: float = LEVEL) -> dict[str, Interval]:
    """Compute percentile intervals of the retrieval table over resampled images.

    An image is drawn together with its texts, which are not independent. Only queries are
    resampled, not the gallery. No median rank, which moves in steps of one.

    Source: Efron and Tibshirani, An introduction to the bootstrap, 1993, chapter 13.

    Takes the ranks of one run and image_of_text (T,), as given to `ranks`; n: number of resamples;
    level: share inside, in (0, 1).

    Returns: An Interval for each R@K in percent, both mean ranks, and rsum.
    Raises: ValueError: n < 1, a level outside (0, 1), lengths that differ.
    """
    return resampled(by_image(best, image_of_text), np.bincount(image_of_text), n, seed, level)


def bootstrap_difference(firsts: Sequence[Ranks], seconds: Sequence[Ranks],
                         image_of_text: np.ndarray, n: int = 1000,
                         level: float = LEVEL) -> dict[str, Interval]:
    """Compute intervals of the mean table of some runs less that of others over the same images.

    Both sides see the same draws: what is hard in an image is hard for both. Arguments, errors and
    keys are those of `bootstrap`, with the ranks of each run of either side.
    """
    first, second = (sum(by_image(run, image_of_text) for run in side) / len(side)
                     for side in (firsts, seconds))
    return resampled(first - second, np.bincount(image_of_text), n, 0, level)


def by_image(best: Ranks, image_of_text: np.ndarray) -> np.ndarray:
    """Sum `hits_and_ranks` over each image and over its texts: (I, 8); arguments as `bootstrap`."""
    owner = check_image_of_text(image_of_text, len(best.i2t), len(best.t2i))
    texts = np.zeros((len(best.i2t), len(KS) + 1))
    np.add.at(texts, owner, hits_and_ranks(best.t2i))
    return np.hstack((hits_and_ranks(best.i2t), texts))


def resampled(totals: np.ndarray, counts: np.ndarray, n: int, seed: int,
              level: float) -> dict[str, Interval]:
    """Compute the intervals of `bootstrap` from sums `by_image` and numbers of texts (I,)."""
    check_number("n", n, least=1)
    check_number("level", level, above=0, most=1 - 1e-9)
    images, drawn = len(counts), []
    rng = np.random.default_rng(seed)
    for start in range(0, n, CHUNK):
        rows = min(CHUNK, n - start)
        draws = rng.integers(0, images, (rows, images)) + images * np.arange(rows)[:, None]
        times = np.bincount(draws.ravel(), minlength=rows * images).reshape(rows, images)
        drawn.append(averages(times.astype(float), totals, counts))
    keys = [key for key in RETRIEVAL if not key.endswith("medr")]
    value = averages(np.ones((1, images)), totals, counts)[0]
    low, high = np.quantile(np.concatenate(drawn), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return {key: Interval(float(v), float(a), float(b))
            for key, v, a, b in zip(keys, value, low, high, strict=True)}


def recall_by_image(best: Ranks, image_of_text: np.ndarray) -> dict[str, np.ndarray]:
    """Split every R@K, and RSUM, into images: (I,) in percent whose mean it is, by its name.

    A text counts for its own image. Arguments as `bootstrap`.

    Example: the first image is found, and one text of three
        >>> parts = recall_by_image(Ranks(np.array([1, 9]), np.array([1, 9, 9])),
        ...                         np.array([0, 0, 1]))
        >>> parts["i2t_r1"].tolist(), parts["t2i_r1"].round(1).tolist()
        ([100.0, 0.0], [66.7, 0.0])
    """
    totals, half = by_image(best, image_of_text), len(KS) + 1
    recalls = np.hstack((totals[:, :len(KS)], totals[:, half:half + len(KS)]
                         * len(best.i2t) / len(best.t2i)))
    names = [f"{direction}_r{k}" for direction in DIRECTIONS for k in KS]
    return {**dict(zip(names, recalls.T, strict=True)), "rsum": recalls.sum(axis=1)}


def hits_and_ranks(best: np.ndarray) -> np.ndarray:
    """Return whether each query's match is among the first K, in percent, and its rank: (Q, 4)."""
    return np.stack([percent(best <= k) for k in KS] + [best.astype(float)], axis=1)


def averages(times: np.ndarray, totals: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Compute (n, 9) statistics, image i taken times[., i] times: 4 of i2t, 4 of t2i, RSUM.

    totals (I, 8): sums over each image and over its texts; counts (I,): of texts.
    """
    sums = times @ totals  # (n, 8)
    half = len(KS) + 1
    i2t = sums[:, :half] / times.sum(axis=1, keepdims=True)
    t2i = sums[:, half:] / (times @ counts)[:, None]
    rsum = i2t[:, :len(KS)].sum(axis=1) + t2i[:, :len(KS)].sum(axis=1)
    return np.column_stack((i2t, t2i, rsum))
