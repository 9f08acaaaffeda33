"""Kendall's tau between scores and graded relevance: of two items, is the more relevant above?"""

from functools import partial

import numpy as np

from itr_study.checks import check_choice
from itr_study.metrics.graded import (
    RowMetric,
    first_of_run,
    joined,
    ordered,
    per_query,
    query_means,
)
from itr_study.metrics.scores import AnyScores
from itr_study.metrics.truth import Truth

KINDS = ("a", "b", "c")
WIDEST = 128  # places in a bin: hits of a bin are summed in uint8


def kendall(scores: AnyScores, truth: Truth, kind: str = "b") -> dict[str, float]:
    """Mean Kendall tau of all queries in both directions: {"i2t_tau", "t2i_tau"}, in [-1, 1].

    The one metric that may be negative: -1 is the list upside down, 0 is no order at all.

    Args, Raises: as `kendall_per_query`.
    Source: bcls, Eq. 2 (which prints "a"; Table VI does not say what was computed).
    Differs: as `kendall_per_query`.
    Example: image 0 prefers the wrong text, image 1 the right one; both texts are right
        >>> kendall(np.array([[0.3, 0.4], [0.2, 0.5]]), Truth(np.array([0, 1])))
        {'i2t_tau': 0.0, 't2i_tau': 1.0}
    """
    return query_means(scores, truth, {"tau": kendall_rows(kind)})


def kendall_per_query(scores: AnyScores, truth: Truth,
                      kind: str = "b") -> dict[str, np.ndarray]:
    """Kendall tau of every image and of every text: {"i2t": (I,), "t2i": (T,)}, float64.

    With C pairs in the same order in scores and relevance, D in opposite order, n items:
    a: (C - D) / (n (n - 1) / 2); b: (C - D) / sqrt(pairs that differ in scores x pairs that differ
    in relevance); c: (C - D) 2 m / (n^2 (m - 1)), m the smaller number of distinct values.
    Where many items are equally relevant a cannot come near 1; b can only if scores tie alike.

    Args:
        scores: (I, T), higher = more alike; truth: its relevance in [0, 1], read as float32.
        kind: "a", "b" or "c".
    Raises: ValueError for NaN, shapes that differ, relevance outside [0, 1], another kind.
    Source: bcls, Eqs. 2-3; Knight, JASA 1966, for D by sorting; the counting in bins is ours.
    Differs: 0, not NaN, where all scores or all relevances of a query are equal.
    Example: C = 2, D = 0, one of three pairs ties in relevance: 2 / 3, 2 / sqrt(3 x 2), 8 / 9
        >>> truth = Truth(np.zeros(3, int), graded=lambda images: np.array([[1, 0, 0]])[images])
        >>> [float(kendall_per_query(np.array([[3, 2, 1]]), truth, k)["i2t"][0].round(4))
        ...  for k in "abc"]
        [0.6667, 0.8165, 0.8889]
    """
    return per_query(scores, truth, kendall_rows(kind))[0]


def kendall_rows(kind: str = "b") -> RowMetric:
    """Tau of rows of scores and relevance (q, n) -> (q,). Args, Raises: as `kendall_per_query`."""
    check_choice("kind", kind, KINDS)
    return partial(block_tau, kind=kind)


def block_tau(scores: np.ndarray, relevance: np.ndarray, kind: str) -> np.ndarray:
    """(q,) tau of rows of scores and relevance (q, n).

    Sorted by relevance, then score, what is left to count are the pairs whose scores fall; the
    places of the same items sorted by score (ties as they stand) hold the same inversions.
    """
    n = scores.shape[1]
    keys = joined(ordered(relevance), ordered(scores))
    keys.sort(axis=1)
    both = tied_pairs(keys)[0]
    by_relevance = keys.astype(np.uint32)
    keys >>= np.uint64(32)
    equal_relevance, relevances = tied_pairs(keys)
    keys = joined(by_relevance, np.arange(n, dtype=np.uint32))
    keys.sort(axis=1)
    places = keys.astype(np.uint32)
    keys >>= np.uint64(32)
    equal_scores, distinct = tied_pairs(keys)
    pairs = n * (n - 1) // 2
    excess = pairs - equal_relevance - equal_scores + both - 2 * inversions(places)  # C - D
    if kind == "a":
        most = np.full(len(excess), float(pairs))
    elif kind == "b":
        most = np.sqrt((pairs - equal_relevance).astype(float) * (pairs - equal_scores))
    else:
        fewest = np.minimum(relevances, distinct)
        most = n * n * (fewest - 1) / (2 * fewest)
    return np.divide(excess, most, out=np.zeros(len(most)), where=most > 0)


def tied_pairs(ascending: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per sorted row, how many pairs are equal, and how many values differ: (q,) int64 each."""
    n = ascending.shape[1]
    new = ascending[:, 1:] != ascending[:, :-1]
    distinct = 1 + np.count_nonzero(new, axis=1)
    tied = np.zeros(len(distinct), np.int64)
    with_ties = np.flatnonzero(distinct < n)
    tied[with_ties] = n * (n - 1) // 2 - first_of_run(new[with_ties]).sum(axis=1, dtype=np.int64)
    return tied, distinct


def inversions(places: np.ndarray) -> np.ndarray:
    """(q,) int64: pairs in falling order in each row of places (q, n), a permutation of 0 .. n - 1.

    Index and place are cut into bins of equal width. Pairs that share neither bin are counted by
    sums over a table of bins, pairs that share one by comparing within it: n^1.5 steps, all of them
    on long arrays of small numbers, and no sorting.
    """
    q, n = places.shape
    shift = int(np.clip(round(np.log2(n) / 2), 0, np.log2(WIDEST)))
    bins = -(-n >> shift)
    padded = np.empty((q, bins << shift), np.int16 if bins << shift < 2**15 else np.int32)
    padded[:, :n] = places
    padded[:, n:] = np.arange(n, bins << shift)  # in order at the end: no inversions
    index_bin = (np.arange(bins << shift) >> shift).astype(np.uint8 if bins <= 256 else np.int32)
    flat = padded + np.arange(0, padded.size, bins << shift)[:, None]
    by_place = np.empty(padded.shape, index_bin.dtype)
    by_place.ravel()[flat] = index_bin
    within = falling_within(padded, bins)  # same bin of index
    within += falling_within(by_place, bins)  # same bin of place, and another of index
    flat >>= shift
    flat *= bins
    flat += bins - 1 - index_bin.astype(np.int64)  # turned round: falling pairs rise in both bins
    table = np.bincount(flat.ravel(), minlength=q * bins * bins).reshape(q, bins, bins)
    table = table.astype(np.float32)  # whole numbers below 2^24 are exact
    below = np.tri(bins, k=-1, dtype=np.float32)
    between = np.einsum("qab,qab->q", table, below @ table @ below.T, dtype=np.float64)
    return within + between.astype(np.int64)


def falling_within(values: np.ndarray, bins: int) -> np.ndarray:
    """(q,) int64: pairs in falling order inside each of the equal bins of every row."""
    q = len(values)
    columns = np.ascontiguousarray(values.reshape(q * bins, -1).T)  # one place of all bins a row
    total = np.zeros(q * bins, np.int64)
    hits = np.empty(columns.shape, bool)
    for apart in range(1, len(columns)):
        hit = hits[apart:]
        np.greater(columns[:-apart], columns[apart:], out=hit)
        total += np.add.reduce(hit.view(np.uint8), axis=0, dtype=np.uint8)
    return total.reshape(q, bins).sum(axis=1)
