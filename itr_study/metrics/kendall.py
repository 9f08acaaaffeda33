"""Rank correlation of scores and relevance: Kendall's tau of whole lists, or of the best k."""

from functools import partial

import numpy as np

from itr_study.checks import check_choice, check_count
from itr_study.metrics.graded import RowMetric, first_of_run, joined, ordered, query_means
from itr_study.metrics.scores import AnyScores
from itr_study.metrics.truth import Truth

KINDS = ("a", "b", "c")
WIDEST = 128  # places in a bin: hits of a bin are summed in uint8


def kendall(scores: AnyScores, truth: Truth, kind: str = "b") -> dict[str, float]:
    """Mean Kendall tau of all queries in both directions: {"i2t_tau", "t2i_tau"}, in [-1, 1].

    1: every more relevant item scores higher; -1: the list upside down; 0: no order at all. With C
    pairs in the same order in scores and relevance, D in opposite order, n items:
    a: (C - D) / (n (n - 1) / 2); b: (C - D) / sqrt(pairs that differ in scores x pairs that differ
    in relevance); c: (C - D) 2 m / (n^2 (m - 1)), m the smaller number of distinct values.
    Where many items are equally relevant a cannot come near 1; b can only if their scores tie, too.

    Args:
        scores: (I, T), higher = more alike.
        truth: its relevance in [0, 1], read as float32.
        kind: "a", "b" or "c".
    Raises: ValueError for NaN, shapes that differ, relevance outside [0, 1], another kind.
    Source: bcls, Eqs. 2-3 (which print "a"; Table VI does not say what was computed); Knight, JASA
        1966, for D by sorting; the counting in bins is ours.
    Differs: 0, not NaN, where all scores or all relevances of a query are equal.
    Example: C = 2, D = 0, one of three pairs ties in relevance: 2 / 3, 2 / sqrt(3 x 2), 8 / 9
        >>> truth = Truth(np.zeros(3, int), graded=lambda images: np.array([[1, 0, 0]])[images])
        >>> [round(kendall(np.array([[3, 2, 1]]), truth, kind)["i2t_tau"], 4) for kind in KINDS]
        [0.6667, 0.8165, 0.8889]
    """
    return query_means(scores, truth, {"tau": kendall_rows(kind)})


def kendall_rows(kind: str = "b") -> RowMetric:
    """Make `kendall` of rows: scores and relevance (q, n) -> (q,)."""
    check_choice("kind", kind, KINDS)
    return partial(block_tau, kind=kind)


def coherent(scores: AnyScores, truth: Truth, k: int = 100) -> dict[str, float]:
    """Mean coherent score of all queries in both directions: {"i2t_cs100", "t2i_cs100"}.

    Kendall's tau-b of the k items of highest score, in [-1, 1]: 1 is the most relevant first, -1
    the most relevant last. It does not ask whether they are relevant at all: read it together with
    recall or NDCG.

    Args:
        scores: (I, T), higher = more alike.
        truth: its relevance in [0, 1], read as float32.
        k: how many results count, at least 2; all of a shorter list, as `kendall`.
    Raises: ValueError for k < 2, NaN, shapes that differ, relevance outside [0, 1].
    Source: CS@K of Zhou et al., Ladder Loss, AAAI 2020 (CVSE++ of the bcls tables).
    Differs: the paper names no formula and no tau: Kendall's tau-b of the k best is our reading. Of
        equal scores at place k the first in the matrix stay.
    Example: the two best texts of image 0 are 1 and 0.2 relevant, in this order; of image 1 the
    best is its own too, with a lesser one behind. Of two images every text finds its own first
        >>> relevance = np.array([[1, 0.2, 0], [0.5, 1, 0]])
        >>> truth = Truth(np.array([0, 1, 1]), 2, lambda images: relevance[images])
        >>> coherent(np.array([[3.0, 2.0, 1.0], [2.0, 3.0, 1.0]]), truth, k=2)
        {'i2t_cs2': 1.0, 't2i_cs2': 0.6666666666666666}
    """
    return query_means(scores, truth, {f"cs{k}": coherent_rows(k)})


def coherent_rows(k: int = 100) -> RowMetric:
    """Make `coherent` of rows: scores and relevance (q, n) -> (q,)."""
    check_count("k", k, 2)  # fewer have no order
    return lambda values, relevance: block_tau(*best(values, relevance, k), "b")


def best(values: np.ndarray, relevance: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Find scores and relevance (q, k) of the k highest scores of each row; all of fewer.

    Keys hold score, then place, so that one partition finds them and ties fall to the first.
    """
    n = values.shape[1]
    if k >= n:
        return values, relevance
    keys = joined(~ordered(values), np.arange(n, dtype=np.uint32))  # highest score, smallest key
    keys.partition(k - 1, axis=1)
    places = keys[:, :k].astype(np.uint32).astype(np.intp)
    return np.take_along_axis(values, places, 1), np.take_along_axis(relevance, places, 1)


def block_tau(scores: np.ndarray, relevance: np.ndarray, kind: str) -> np.ndarray:
    """Compute tau (q,) of rows of scores and relevance (q, n).

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
    """Count equal pairs and distinct values of each sorted row: (q,) int64 each."""
    n = ascending.shape[1]
    new = ascending[:, 1:] != ascending[:, :-1]
    distinct = 1 + np.count_nonzero(new, axis=1)
    tied = np.zeros(len(distinct), np.int64)
    with_ties = np.flatnonzero(distinct < n)
    tied[with_ties] = n * (n - 1) // 2 - first_of_run(new[with_ties]).sum(axis=1, dtype=np.int64)
    return tied, distinct


def inversions(places: np.ndarray) -> np.ndarray:
    """Count pairs in falling order (q,) in each row of places (q, n), permutations of 0 .. n - 1.

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
    """Count pairs in falling order inside the equal bins of every row: (q,) int64."""
    q = len(values)
    columns = np.ascontiguousarray(values.reshape(q * bins, -1).T)  # one place of all bins a row
    total = np.zeros(q * bins, np.int64)
    hits = np.empty(columns.shape, bool)
    for apart in range(1, len(columns)):
        hit = hits[apart:]
        np.greater(columns[:-apart], columns[apart:], out=hit)
        total += np.add.reduce(hit.view(np.uint8), axis=0, dtype=np.uint8)
    return total.reshape(q, bins).sum(axis=1)
