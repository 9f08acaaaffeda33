"""Which texts make up each batch of an epoch: a function of (seed, epoch), so that it resumes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from itr_study.data.batches import EncodedSplit
from itr_study.training.settings import Settings

POOL = 16  # batches that are sorted by length together


class Sample(NamedTuple):
    """One batch to be: the texts, and the view of each one's image."""

    texts: np.ndarray  # (B,) int64
    views: np.ndarray  # (B,) int64


def epoch_samples(split: EncodedSplit, settings: Settings, seed: int, epoch: int) -> list[Sample]:
    """All batches of one epoch, every text at most once.

    A last batch smaller than half the batch size is left out (in-batch negatives would be few);
    other texts are left out in the next epoch. With buckets, a random permutation is cut into
    pools of 16 batches, each pool sorted by length and cut, and all batches shuffled.
    """
    random = np.random.default_rng([seed, epoch])
    texts = random.permutation(split.n_texts)
    views = random.integers(split.regions.shape[1], size=split.n_texts)
    size = settings.batch_size
    rest = len(texts) % size
    if len(texts) > size and 0 < rest < size / 2:
        texts = texts[:-rest]
    batches = _buckets(texts, split, size, random) if _use_buckets(split, settings) else [
        texts[start:start + size] for start in range(0, len(texts), size)]
    return [Sample(batch, views[batch]) for batch in batches]


def _use_buckets(split: EncodedSplit, settings: Settings) -> bool:
    if settings.bucket and split.tokens is None:
        raise ValueError("bucket=True sorts captions by number of tokens, but the data has none; "
                         "set tokens='words' in the run's config, or bucket=None")
    return split.tokens is not None if settings.bucket is None else settings.bucket


def _buckets(texts: np.ndarray, split: EncodedSplit, size: int,
             random: np.random.Generator) -> list[np.ndarray]:
    batches = []
    for start in range(0, len(texts), size * POOL):
        pool = texts[start:start + size * POOL]
        lengths = np.array([len(split.tokens[text]) for text in pool])
        pool = pool[np.argsort(lengths, kind="stable")]
        batches += [pool[first:first + size] for first in range(0, len(pool), size)]
    return [batches[index] for index in random.permutation(len(batches))]


def expected_siblings(texts_per_image: Sequence[int], batch: int) -> float:
    """Pairs of captions of one image that a random batch holds, on average.

    Each of the sum over images of n (n - 1) / 2 pairs is in a batch of B of the T texts with
    probability B (B - 1) / (T (T - 1)).

    Example: 2 images with 2 texts each; of the 6 batches of two, 2 hold a pair
        >>> round(expected_siblings([2, 2], 2), 4)
        0.3333
    """
    counts = np.asarray(texts_per_image, dtype=float)
    total = counts.sum()
    chance = batch * (batch - 1) / (total * (total - 1))
    return float((counts * (counts - 1) / 2).sum() * chance)


def counted_siblings(split: EncodedSplit, settings: Settings, seed: int = 0) -> np.ndarray:
    """The same pairs, counted in every batch of the first epoch of a run."""
    pairs = []
    for sample in epoch_samples(split, settings, seed, 0):
        counts = np.unique(split.image_of_text[sample.texts], return_counts=True)[1]
        pairs.append(int((counts * (counts - 1) // 2).sum()))
    return np.array(pairs)
