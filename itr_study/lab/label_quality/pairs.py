"""How relevant the things of given pairs are to each other, as any label source grades them."""

import hashlib
from typing import Protocol, runtime_checkable

import numpy as np

from itr_study.data.batches import EncodedSplit
from itr_study.features.cache import CacheKey, cached
from itr_study.files.atomic import canonical_json
from itr_study.files.paths import home
from itr_study.relevance.meteor import Meteor, Spice

TOOLS = (Meteor, Spice)  # minutes for many pairs: their scores are kept
PAIRS = 1000  # kept at a time
IMAGES = 256  # of a block, for sources that know no single pairs


@runtime_checkable
class PairSource(Protocol):
    """A label source that compares texts, and so scores pairs one by one."""

    def pairs(self, split: EncodedSplit, images: np.ndarray, texts: np.ndarray) -> np.ndarray: ...


def pair_relevance(source: object, split: EncodedSplit, first: np.ndarray, second: np.ndarray
                   ) -> np.ndarray:
    """(N,) float32 relevance of text second[n] to image first[n]; 1 for an image's own."""
    if isinstance(source, TOOLS):
        return tool_relevance(source, split, first, second)
    if isinstance(source, PairSource):
        return source.pairs(split, first, second)
    values = np.empty(len(first), np.float32)
    for start in range(0, split.n_images, IMAGES):
        rows = np.flatnonzero((first >= start) & (first < start + IMAGES))
        if len(rows):
            block = source.block(split, slice(start, start + IMAGES))
            values[rows] = block[first[rows] - start, second[rows]]
    return values


def tool_relevance(source: Meteor | Spice, split: EncodedSplit, first: np.ndarray,
                   second: np.ndarray) -> np.ndarray:
    """`pair_relevance` of a slow tool: its scores are cached, and matches are never sent to it."""
    others = np.flatnonzero(split.image_of_text[second] != first)
    values = np.ones(len(first), np.float32)
    if not len(others):
        return values
    texts = source.captions(split).vectors.tolist()
    content = [texts, *(x.tolist() for x in (split.image_of_text, first[others],
                                               second[others]))]
    key = CacheKey("pairs", hashlib.sha256(canonical_json(content).encode()).hexdigest(),
                   source.name, source.version, {"over": source.pooling})  # as old caches say it
    values[others] = cached(
        key, len(others), lambda a, b: source.pairs(split, first[others[a:b]],
                                                    second[others[a:b]]),
        home() / "features", dtype="float32", block=PAIRS)
    return values


def text_relevance(source: object, split: EncodedSplit, first: np.ndarray, second: np.ndarray
                   ) -> np.ndarray:
    """(N,) float32, how alike texts first[n] and second[n] are.

    Raises:  ValueError for a source that compares no texts, or takes hours to do so.
    """
    vectors = comparing_texts(source).captions(split).vectors
    return source.alike_pairs(vectors[first], vectors[second])


def image_relevance(source: object, split: EncodedSplit, first: np.ndarray, second: np.ndarray
                    ) -> np.ndarray:
    """(N,) mean relevance of the texts of image second[n] to image first[n].

    Raises:  ValueError as `text_relevance`.
    """
    texts, starts, counts = comparing_texts(source).captions(split).of(second)
    values = pair_relevance(source, split, np.repeat(first, counts), texts)
    return np.add.reduceat(values, starts) / counts


def comparing_texts(source: object) -> object:
    """The source itself; ValueError unless it compares texts, and does so fast."""
    if isinstance(source, TOOLS) or not isinstance(source, PairSource):
        raise ValueError(f'labels "{source.name}" are not taken for two texts or two images: they '
                         "compare no texts, or take hours to")
    return source
