"""Intervals of the retrieval table over resampled images."""

from typing import NamedTuple

import numpy as np

from itr_study.checks import check_number
from itr_study.evaluation.percent import percent
from itr_study.metrics.intervals import LEVEL
from itr_study.metrics.ranks import Ranks
from itr_study.metrics.recall import KS
from itr_study.metrics.truth import DIRECTIONS, check_image_of_text

CHUNK = 100  # resamples at a time: 100 x 5,000 counts are 4 MB


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

    Args:
        best: ranks of one run.
        image_of_text: (T,), as given to `ranks`.
        n: number of resamples.
        seed: of numpy's Generator.
        level: share inside, in (0, 1).

    Returns:
        An Interval for each R@K in percent, both mean ranks, and rsum.

    Raises:
        ValueError: n < 1, a level outside (0, 1), lengths that differ.
    """
    check_number("n", n, least=1)
    check_number("level", level, above=0, most=1 - 1e-9)
    owner = check_image_of_text(image_of_text, len(best.i2t), len(best.t2i))
    totals, counts = image_totals(best, owner)
    rng = np.random.default_rng(seed)
    drawn = [resampled(rng, totals, counts, min(CHUNK, n - a)) for a in range(0, n, CHUNK)]
    keys = [f"{d}_{m}" for d in DIRECTIONS for m in (*(f"r{k}" for k in KS), "meanr")] + ["rsum"]
    value = averages(np.ones((1, len(counts))), totals, counts)[0]
    low, high = np.quantile(np.concatenate(drawn), [(1 - level) / 2, (1 + level) / 2], axis=0)
    return {key: Interval(float(v), float(a), float(b))
            for key, v, a, b in zip(keys, value, low, high, strict=True)}


def image_totals(best: Ranks, owner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum hits in percent and ranks of each image and its texts (I, 8); count texts (I,)."""
    def columns(each: np.ndarray) -> np.ndarray:
        return np.stack([percent(each <= k) for k in KS] + [each.astype(float)], axis=1)

    texts = np.zeros((len(best.i2t), len(KS) + 1))
    np.add.at(texts, owner, columns(best.t2i))
    counts = np.bincount(owner, minlength=len(best.i2t))
    return np.concatenate((columns(best.i2t), texts), axis=1), counts


def resampled(rng: np.random.Generator, totals: np.ndarray, counts: np.ndarray,
              n: int) -> np.ndarray:
    """Compute (n, 9) statistics of n samples of I images drawn with replacement."""
    images = len(counts)
    draws = rng.integers(0, images, (n, images)) + images * np.arange(n)[:, None]
    times = np.bincount(draws.ravel(), minlength=n * images).reshape(n, images)
    return averages(times.astype(float), totals, counts)


def averages(times: np.ndarray, totals: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Compute (n, 9) statistics, image i taken times[., i] times: 4 of i2t, 4 of t2i, RSUM."""
    sums = times @ totals  # (n, 8)
    half = len(KS) + 1
    i2t = sums[:, :half] / times.sum(axis=1, keepdims=True)
    t2i = sums[:, half:] / (times @ counts)[:, None]
    rsum = i2t[:, :len(KS)].sum(axis=1) + t2i[:, :len(KS)].sum(axis=1)
    return np.column_stack((i2t, t2i, rsum))
