"""Scores beside graded relevance, block by block in both directions: what ranking metrics read.

Rows of a block are queries. Relevance comes in blocks of images only, so it is laid out anew once,
text by text, for t2i: one more matrix as large as float32 scores, and a few MB.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from torch import Tensor

from itr_study.checks import check_count
from itr_study.metrics.ranks import refuse_nan, wide
from itr_study.metrics.scores import AnyScores, Scores
from itr_study.metrics.truth import DIRECTIONS, Truth

BLOCK = 500_000  # pairs at a time: keys and ranks of a block stay near the cores
SIGN = np.uint32(1 << 31)

Block = tuple[str, slice, np.ndarray, np.ndarray]
# A metric of lists: rows of scores and of relevance (q, n) -> (q,), one number for each query.
RowMetric = Callable[[np.ndarray, np.ndarray], np.ndarray]


def query_blocks(scores: AnyScores, truth: Truth) -> Iterator[Block]:
    """(direction, queries, scores (q, n), relevance (q, n) float32): images first, then texts.

    Raises: ValueError for NaN, for scores that are not (I, T), for relevance outside [0, 1].
    """
    scores, shape = Scores.of(scores), (truth.n_images, truth.n_texts)
    if scores.shape != shape:
        raise ValueError(f"scores must be (n_images, n_texts) = {shape}; got {scores.shape}")
    turned = np.empty(shape[::-1], np.float32)  # (T, I), so that t2i has its relevance in rows
    for images in steps(shape[0], shape[1], truth.block):
        values = on_host(scores.i2t[images])
        relevance = np.asarray(truth.relevance(images), np.float32)
        if np.isnan(values.max()):
            refuse_nan(values, images.start)
        low, high = relevance.min(), relevance.max()
        if not (low >= 0 and high <= 1):
            raise ValueError(f"relevance must lie in [0, 1], found {low} to {high} at images "
                             f"{images.start} to {images.stop - 1}; a cosine c becomes (1 + c) / 2")
        turned[:, images] = relevance.T
        yield "i2t", images, values, relevance
    for texts in steps(shape[1], shape[0], shape[1]):
        values = on_host(scores.t2i[:, texts])
        if not scores.single and np.isnan(values.max()):
            refuse_nan(values, 0, texts.start)
        yield "t2i", texts, np.ascontiguousarray(values.T), turned[texts]


def per_query(scores: AnyScores, truth: Truth,
              *metrics: RowMetric) -> list[dict[str, np.ndarray]]:
    """Each metric of every image and of every text, {"i2t": (I,), "t2i": (T,)}, in one walk.

    Raises: as `query_blocks`.
    """
    parts = [{direction: [] for direction in DIRECTIONS} for _ in metrics]
    for direction, _, values, relevance in query_blocks(scores, truth):
        for part, metric in zip(parts, metrics, strict=True):
            part[direction].append(metric(values, relevance))
    return [{direction: np.concatenate(blocks) for direction, blocks in part.items()}
            for part in parts]


def query_means(scores: AnyScores, truth: Truth,
                metrics: Mapping[str, RowMetric]) -> dict[str, float]:
    """Mean of each metric over all queries, {"i2t_<name>": ..., "t2i_<name>": ...}.

    Raises: as `query_blocks`.
    """
    return {f"{direction}_{name}": float(values.mean())
            for name, each in zip(metrics, per_query(scores, truth, *metrics.values()), strict=True)
            for direction, values in each.items()}


def steps(n: int, width: int, most: int, pairs: int | None = None) -> Iterator[slice]:
    """Slices of 0 .. n, at most `most` long, of about `pairs` (BLOCK) pairs."""
    step = max(1, min(most, (pairs or BLOCK) // width))
    return (slice(a, min(a + step, n)) for a in range(0, n, step))


def on_host(values: np.ndarray | Tensor) -> np.ndarray:
    """A block as numpy floats of single or double precision."""
    return wide(values.detach()).cpu().numpy() if isinstance(values, Tensor) else wide(values)


def ordered(values: np.ndarray) -> np.ndarray:
    """(q, n) uint32 in the order of each row, equal where it is equal.

    The bits of a float32, turned so that whole numbers stand in its order; of other types the
    place among the row's distinct values. Two such keys make one sortable 64-bit number.
    """
    if values.dtype == np.float32:
        bits = (values + np.float32(0)).view(np.uint32)  # -0.0 becomes 0.0, which it equals
        negative = (bits.view(np.int32) >> 31).view(np.uint32)  # all bits set where it is
        return bits ^ (negative | SIGN)
    order = np.argsort(values, axis=1)
    ascending = np.take_along_axis(values, order, 1)
    place = np.zeros(values.shape, np.uint32)
    np.cumsum(ascending[:, 1:] != ascending[:, :-1], axis=1, out=place[:, 1:])
    ranked = np.empty_like(place)
    np.put_along_axis(ranked, order, place, 1)
    return ranked


def joined(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """uint64 keys that sort by `high`, then by `low` (both uint32)."""
    keys = high.astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= low
    return keys


def first_of_run(new: np.ndarray) -> np.ndarray:
    """(q, n) int32, for each place the first place of its run; `new` (q, n - 1) marks starts."""
    places = np.zeros((len(new), new.shape[1] + 1), np.int32)
    np.multiply(new, np.arange(1, places.shape[1], dtype=np.int32), out=places[:, 1:])
    return np.maximum.accumulate(places, axis=1, out=places)


# Mean relevance of the first k results: how well do they suit the query, match or not?

def mean_relevance(scores: AnyScores, truth: Truth, k: int = 10) -> dict[str, float]:
    """Mean relevance of the first k results, over all queries: {"i2t_rel10", "t2i_rel10"}.

    In [0, 1]. Where relevance is 1 for matches and 0 else, this is precision at k.

    Args, Raises: as `mean_relevance_per_query`.
    Source: cumulated gain at k of Järvelin and Kekäläinen, TOIS 2002, divided by k.
    Differs: as `mean_relevance_per_query`.
    Example: the first two texts of the image are 1 and 0.2 relevant; each text finds the image
        >>> relevance = np.array([[1, 0.2, 0.5]])
        >>> truth = Truth(np.array([0, 0, 0]), 1, lambda images: relevance[images])
        >>> table = mean_relevance(np.array([[3.0, 2.0, 1.0]]), truth, k=2)
        >>> round(table["i2t_rel2"], 4), round(table["t2i_rel2"], 4)
        (0.6, 0.5667)
    """
    return query_means(scores, truth, {f"rel{k}": mean_relevance_rows(k)})


def mean_relevance_per_query(scores: AnyScores, truth: Truth,
                             k: int = 10) -> dict[str, np.ndarray]:
    """Mean relevance of the first k results of every image and of every text: {"i2t": (I,),
    "t2i": (T,)}, float64.

    Args:
        scores: (I, T), higher = more alike; truth: its relevance in [0, 1], read as float32.
        k: how many results are looked at, at least 1; all of a shorter list.
    Raises: ValueError for k < 1, NaN, shapes that differ, relevance outside [0, 1].
    Source: cumulated gain at k of Järvelin and Kekäläinen, TOIS 2002, divided by k.
    Differs: ties count against the model: of equal scores that compete for the last places the
             least relevant are taken. Its order within the first k does not matter.
    """
    return per_query(scores, truth, mean_relevance_rows(k))[0]


def mean_relevance_rows(k: int = 10) -> RowMetric:
    """Mean relevance of the first k of rows of scores and relevance (q, n) -> (q,).

    Args, Raises: as `mean_relevance_per_query`.
    """
    check_count("k", k)
    return lambda values, relevance: first_relevance(values, relevance, k).mean(axis=1)


def first_relevance(values: np.ndarray, relevance: np.ndarray, k: int) -> np.ndarray:
    """(q, k) float64: relevance of the k highest scores of each row, in no order; the least
    relevant of equal scores.

    Keys hold the score, highest first, then the relevance, lowest first: one partition finds them.
    """
    if k < values.shape[1]:
        keys = joined(~ordered(values), (relevance + np.float32(0)).view(np.uint32))
        keys.partition(k - 1, axis=1)
        relevance = keys[:, :k].astype(np.uint32).view(np.float32)
    return relevance.astype(np.float64)
