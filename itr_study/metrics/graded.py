"""Scores with graded relevance, block by block in both directions: what ranking metrics read.

Rows of a block are queries. Graded relevance comes in blocks of images only, so it is copied once,
text by text, for t2i: one more matrix as large as float32 scores, and a few MB.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from torch import Tensor

from itr_study.checks import check_count
from itr_study.metrics.ranks import check_nan, wide
from itr_study.metrics.scores import AnyScores, Matrix, Scores
from itr_study.metrics.truth import DIRECTIONS, IMAGES, Truth

BLOCK = 500_000  # pairs at a time: keys and ranks of a block stay near the cores
HELD = 65_000_000  # pairs, 260 MB: of more, grades and scores of a bank are made in parts
SIGN = np.uint32(1 << 31)

# A metric of lists: rows of scores and of relevance (q, n) -> (q,), one number for each query.
RowMetric = Callable[[np.ndarray, np.ndarray], np.ndarray]


def query_blocks(scores: AnyScores, truth: Truth) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield direction, scores (q, n), relevance (q, n) float32: images first, then texts.

    Read relevance before the next block, which may take its memory.
    Raises: ValueError for NaN, for scores that are not (I, T), for relevance outside [0, 1].
    """
    scores = of_truth(scores, truth)
    graded = truth.graded is not None
    panels = list(steps(truth.n_texts, truth.n_images, truth.n_texts, HELD))
    turned = np.empty((panels[0].stop, truth.n_images) if graded else (0, 0), np.float32)
    for images in steps(truth.n_images, truth.n_texts, IMAGES):
        values = on_host(scores.i2t[images])
        relevance = np.asarray(truth.relevance(images), np.float32)
        check_nan(values, images.start)
        low, high = relevance.min(), relevance.max()
        if not (low >= 0 and high <= 1):
            raise ValueError(f"relevance must lie in [0, 1], found {low} to {high} at images "
                             f"{images.start} to {images.stop - 1}; a cosine c becomes (1 + c) / 2")
        if graded:  # rows of t2i, of the first panel of texts
            turned[:, images] = relevance[:, panels[0]].T
        yield "i2t", values, relevance
    for panel in panels:
        again = truth.n_images if graded and panel.start else 0
        for images in steps(again, truth.n_texts, IMAGES):
            turned[:panel.stop - panel.start, images] = truth.relevance(images)[:, panel].T
        for texts in steps(panel.stop - panel.start, truth.n_images, truth.n_texts):
            here = slice(panel.start + texts.start, panel.start + texts.stop)
            values = on_host(scores.t2i[:, here])
            if not scores.single:
                check_nan(values, 0, here.start)
            matches = truth.image_of_text[here, None] == np.arange(0 if graded else truth.n_images)
            yield "t2i", np.ascontiguousarray(values.T), \
                turned[texts] if graded else matches.astype(np.float32)


def of_truth(scores: AnyScores, truth: Truth) -> Scores:
    """Return scores as a pair; raise ValueError unless they have the shape of a `Truth`."""
    if not isinstance(truth, Truth):
        raise ValueError(f"truth must be a Truth(image_of_text), got a {type(truth).__name__}")
    pair, shape = Scores.of(scores), (truth.n_images, truth.n_texts)
    if pair.shape != shape:
        raise ValueError(f"scores must be (n_images, n_texts) = {shape}; got {pair.shape}")
    return pair


def per_query(scores: AnyScores, truth: Truth, *metrics: RowMetric,
              show: Callable[[int], object] = lambda done: None) -> list[dict[str, np.ndarray]]:
    """Compute metrics of every image and every text, in one pass over the scores.

    Args:
        scores: (I, T), higher = more alike, or `Scores` of each direction.
        truth: its relevance in [0, 1], read as float32.
        *metrics: such as `ndcg_rows()`.
        show: is told how many queries of both directions are done.
    Returns: {"i2t": (I,), "t2i": (T,)} float64 for each metric.
    Raises: as `query_blocks`.
    """
    parts: list[dict[str, list]] = [{direction: [] for direction in DIRECTIONS} for _ in metrics]
    done = 0
    for direction, values, relevance in query_blocks(scores, truth):
        for part, metric in zip(parts, metrics, strict=True):
            part[direction].append(metric(values, relevance))
        done += len(values)
        show(done)
    return [{direction: np.concatenate(blocks) for direction, blocks in part.items()}
            for part in parts]


def query_means(scores: AnyScores, truth: Truth,
                metrics: Mapping[str, RowMetric]) -> dict[str, float]:
    """Average metrics over all queries: {"i2t_<name>": ..., "t2i_<name>": ...}.

    Args, Raises: as `per_query`.
    """
    return {f"{direction}_{name}": float(values.mean())
            for name, each in zip(metrics, per_query(scores, truth, *metrics.values()), strict=True)
            for direction, values in each.items()}


def steps(n: int, width: int, most: int, pairs: int | None = None) -> Iterator[slice]:
    """Cut 0 .. n into slices, at most `most` long, of about `pairs` (BLOCK) pairs."""
    step = max(1, min(most, (pairs or BLOCK) // width))
    return (slice(a, min(a + step, n)) for a in range(0, n, step))


def on_host(values: Matrix) -> np.ndarray:
    """Convert a block to numpy floats of single or double precision."""
    return wide(values.detach()).cpu().numpy() if isinstance(values, Tensor) else wide(values)


def host_blocks(scores: Scores, direction: str, size: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield `Scores.blocks` as `on_host`; raise ValueError for NaN."""
    for queries, block in scores.blocks(direction, size):
        values = on_host(block)
        if direction == "i2t":
            check_nan(values, queries.start)
        else:
            check_nan(values.T, 0, queries.start)
        yield queries, values


def ordered(values: np.ndarray) -> np.ndarray:
    """Map (q, n) to uint32 in the same order of each row, ties included.

    The bits of a float32, turned so that whole numbers have its order; of other types the place
    among the row's distinct values. Two such keys make one sortable 64-bit number.
    """
    if values.dtype == np.float32:
        bits = (values + np.float32(0)).view(np.uint32)  # -0.0 becomes 0.0, which it equals
        negative = (bits.view(np.int32) >> 31).view(np.uint32)  # all bits set where it is
        return bits ^ (negative | SIGN)
    order = np.argsort(values, axis=1)  # scipy's rankdata takes up to three times as long
    ascending = np.take_along_axis(values, order, 1)
    place = np.zeros(values.shape, np.uint32)
    np.cumsum(ascending[:, 1:] != ascending[:, :-1], axis=1, out=place[:, 1:])
    ranked = np.empty_like(place)
    np.put_along_axis(ranked, order, place, 1)
    return ranked


def joined(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Make uint64 keys that sort by `high`, then by `low` (both uint32)."""
    keys = high.astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= low
    return keys


def first_of_run(new: np.ndarray) -> np.ndarray:
    """Find the first place of each place's run, (q, n) int32; `new` (q, n - 1) marks starts."""
    places = np.zeros((len(new), new.shape[1] + 1), np.int32)
    np.multiply(new, np.arange(1, places.shape[1], dtype=np.int32), out=places[:, 1:])
    return np.maximum.accumulate(places, axis=1, out=places)


def mean_relevance(scores: AnyScores, truth: Truth, k: int = 10) -> dict[str, float]:
    """Mean relevance of the first k results, over all queries: {"i2t_rel10", "t2i_rel10"}.

    In [0, 1]. Where relevance is 1 for matches and 0 else, this is precision at k.

    Args:
        scores: (I, T), higher = more alike.
        truth: its relevance in [0, 1], read as float32.
        k: how many results count, at least 1; all of a shorter list.
    Raises: ValueError for k < 1, NaN, shapes that differ, relevance outside [0, 1].
    Source: cumulated gain at k of Järvelin and Kekäläinen, TOIS 2002, divided by k.
    Differs: ties count against the model: of equal scores that compete for the last places the
        least relevant are taken.
    Example: the first two texts of the image are 1 and 0.2 relevant; each text finds the image
        >>> relevance = np.array([[1, 0.2, 0.5]])
        >>> truth = Truth(np.array([0, 0, 0]), 1, lambda images: relevance[images])
        >>> table = mean_relevance(np.array([[3.0, 2.0, 1.0]]), truth, k=2)
        >>> round(table["i2t_rel2"], 4), round(table["t2i_rel2"], 4)
        (0.6, 0.5667)
    """
    return query_means(scores, truth, {f"rel{k}": mean_relevance_rows(k)})


def mean_relevance_rows(k: int = 10) -> RowMetric:
    """Make `mean_relevance` of rows: scores and relevance (q, n) -> (q,)."""
    check_count("k", k)
    return lambda values, relevance: first_relevance(values, relevance, k).mean(axis=1)


def first_relevance(values: np.ndarray, relevance: np.ndarray, k: int) -> np.ndarray:
    """Find the relevance (q, k) float64 of the k highest scores of each row, in no order.

    Keys hold the score, highest first, then the relevance, lowest first: one partition finds them.
    """
    if k < values.shape[1]:
        keys = joined(~ordered(values), (relevance + np.float32(0)).view(np.uint32))
        keys.partition(k - 1, axis=1)
        relevance = keys[:, :k].astype(np.uint32).view(np.float32)
    return relevance.astype(np.float64)
