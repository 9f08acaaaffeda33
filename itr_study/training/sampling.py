"""The texts of each batch of an epoch: a function of (seed, epoch), so that it resumes."""

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
    """Draw all batches of one epoch, every text at most once.

    A last batch smaller than half the batch size is left out (in-batch negatives would be few);
    other texts are left out in the next epoch. With buckets, a random permutation is cut into pools
    of 16 batches, each pool sorted by length and cut, and all batches shuffled.

    With texts_per_image n > 1 images are drawn, and n of their texts each: every image's texts are
    dealt into groups of n, the last of what is left, and the groups come in a random order. If a
    batch is full in the middle of a group, the rest of the group begins the next one. Buckets sort
    groups by their longest text. ValueError for more texts than any image has, and buckets without
    tokens.
    """
    random = np.random.default_rng([seed, epoch])
    texts = random.permutation(split.n_texts)
    views = random.integers(split.regions.shape[1], size=split.n_texts)
    group = np.arange(split.n_texts)
    if settings.texts_per_image > 1:
        group = _groups(texts, split.image_of_text, settings.texts_per_image)
        turn = random.permutation(group.max() + 1)
        texts = texts[np.argsort(turn[group[texts]], kind="stable")]
    size = settings.batch_size
    rest = len(texts) % size
    if len(texts) > size and 0 < rest < size / 2:
        texts = texts[:-rest]
    if settings.bucket and split.tokens is None:
        raise ValueError("bucket=True sorts captions by number of tokens, but the data has none; "
                         "set tokens='words' in the run's config, or bucket=None")
    if split.tokens is None or settings.bucket is False:
        batches = [texts[start:start + size] for start in range(0, len(texts), size)]
    else:
        batches = _buckets(texts, group, split.tokens, size, random)
    return [Sample(batch, views[batch]) for batch in batches]


def _groups(texts: np.ndarray, owner: np.ndarray, size: int) -> np.ndarray:
    """(T,) the group of each text, from 0: the first `size` of an image in the order of `texts`."""
    by_image = texts[np.argsort(owner[texts], kind="stable")]
    images = owner[by_image]
    place = np.arange(len(texts)) - np.searchsorted(images, images)  # among those of its image
    if size > (most := place.max() + 1):
        raise ValueError(f"texts_per_image must be at most {most}, got {size}: no image of this "
                         "training split has more texts")
    group = np.empty_like(texts)
    group[by_image] = np.cumsum(place % size == 0) - 1
    return group


def _buckets(texts: np.ndarray, group: np.ndarray, tokens: Sequence[np.ndarray], size: int,
             random: np.random.Generator) -> list[np.ndarray]:
    lengths = np.zeros(len(group), np.int64)  # of the longest text of each group
    np.maximum.at(lengths, group, [len(text) for text in tokens])
    batches = []
    for start in range(0, len(texts), size * POOL):
        pool = texts[start:start + size * POOL]
        pool = pool[np.argsort(lengths[group[pool]], kind="stable")]
        batches += [pool[first:first + size] for first in range(0, len(pool), size)]
    return [batches[index] for index in random.permutation(len(batches))]


def expected_siblings(texts_per_image: Sequence[int], batch: int) -> float:
    """Compute the mean number of pairs of captions of one image in a random batch.

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
    """Count the same pairs in every batch of the first epoch of a run."""
    pairs = []
    for sample in epoch_samples(split, settings, seed, 0):
        counts = np.unique(split.image_of_text[sample.texts], return_counts=True)[1]
        pairs.append(int((counts * (counts - 1) // 2).sum()))
    return np.array(pairs)
