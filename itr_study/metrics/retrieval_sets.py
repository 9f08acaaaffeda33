"""How well *all* matches of a query are found, given as index lists: mAP@R, R-Precision, R@K.

R is the number of matches of the query. R@K of `recall` asks for one of them; these ask for all,
which is what ground truth with many matches per query (ECCV Caption, CUB) is for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from torch import Tensor

from itr_study.checks import check_choice, check_count
from itr_study.metrics.graded import on_host, steps
from itr_study.metrics.ranks import ROWS, count_array, refuse_nan
from itr_study.metrics.scores import AnyScores, Scores
from itr_study.metrics.truth import DIRECTIONS, Positives, Truth

WANTED = 10_000_000  # scores copied at a time: few passes over the columns of a large matrix
MANY = 16  # matches of a query from which one sort is faster than a count for each


class Matches(NamedTuple):
    """Positives of every image (texts) and of every text (images); a list may be empty."""

    i2t: Positives
    t2i: Positives


@dataclass(frozen=True, eq=False)
class MatchRanks:
    """Where the matches of queries stand: 1-based ranks, list after list, each best first.

    queries (Q,): which images or texts; starts (Q + 1,): as in `Positives`; ranks (P,); sizes (Q,):
    R, at least the length of the list (more, where a match is not in the gallery at all).
    """

    queries: np.ndarray
    starts: np.ndarray
    ranks: np.ndarray
    sizes: np.ndarray

    def map_at_r(self) -> np.ndarray:
        """(Q,) mean over the ranks up to R of precision where a match stands, 0 elsewhere."""
        lengths = np.diff(self.starts)
        place = np.arange(1, len(self.ranks) + 1) - np.repeat(self.starts[:-1], lengths)
        return self.over_r(place / self.ranks)

    def r_precision(self) -> np.ndarray:
        """(Q,) share of matches among the first R."""
        return self.over_r(np.ones(len(self.ranks)))

    def recall_at(self, k: int) -> np.ndarray:
        """(Q,) 1 where a match is among the first k, else 0."""
        check_count("k", k)
        nonempty = self.starts[1:] > self.starts[:-1]
        hit = np.zeros(len(self.sizes))
        hit[nonempty] = self.ranks[self.starts[:-1][nonempty]] <= k
        return hit

    def over_r(self, values: np.ndarray) -> np.ndarray:
        """(Q,) sum of the values (P,) of matches with rank <= R, divided by R."""
        query = np.repeat(np.arange(len(self.sizes)), np.diff(self.starts))
        kept = np.where(self.ranks <= self.sizes[query], values, 0)
        return np.bincount(query, kept, len(self.sizes)) / self.sizes


def find(scores: AnyScores, positives: Positives, direction: str,
         sizes: np.ndarray | None = None) -> MatchRanks:
    """The ranks of all matches of all queries that have any, by counting; nothing is truncated.

    Args:
        scores: (I, T), higher = more alike; of `Scores` the matrix of this direction.
        positives: a list of texts for every image ("i2t") or of images for every text ("t2i").
        sizes: R of every query; None: the length of its list. Give it where ground truth names
            matches that are not in the gallery: they count in R and are never found.
    Raises: ValueError for NaN, or where scores and lists do not fit.
    Differs: the p-th best match stands at p + the non-matching items that score at least as high:
        ties count against the model, in the package `eccv-caption` the caller's sort breaks them.
    """
    check_choice("direction", direction, DIRECTIONS)
    scores = Scores.of(scores).by_direction(direction)
    lengths = np.diff(positives.starts)
    sizes = lengths if sizes is None else np.asarray(sizes)
    shape = scores.shape if direction == "i2t" else scores.shape[::-1]
    if shape[0] != len(positives) or len(sizes) != len(positives) or (sizes < lengths).any():
        raise ValueError(f"{direction} needs a list of positives and a size, at least its length, "
                         f"for each of {shape[0]} queries; got {len(positives)}, {len(sizes)}")
    queries = np.flatnonzero(sizes)
    each = [list_ranks(row, positives[q]) for q, row in zip(
        queries, query_rows(scores, direction, queries), strict=True)]
    starts = np.concatenate(([0], np.cumsum(lengths[queries])))
    ranks = np.concatenate(each) if each else np.zeros(0, np.int64)
    return MatchRanks(queries, starts, ranks, sizes[queries])


def query_rows(scores: np.ndarray | Tensor, direction: str,
               queries: np.ndarray) -> Iterator[np.ndarray]:
    """The scores (n,) of each query."""
    if direction == "i2t":
        rows = (on_host(scores[q]) for q in queries.tolist())
    else:
        rows = (row for part in steps(len(queries), len(scores), len(queries), WANTED)
                for row in on_host(Scores.of(scores).of_queries("t2i", queries[part])))
    for row in rows:
        if np.isnan(row.max()):
            refuse_nan(on_host(scores), 0)
        yield row


def list_ranks(row: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Ranks of the items of one list within one query's scores (n,), best first."""
    matches = np.sort(row[items])
    below = np.searchsorted(matches, matches)  # matches that score less
    if len(items) > MANY:
        at_least = len(row) - np.searchsorted(np.sort(row), matches)
    else:
        at_least = np.array([np.count_nonzero(row >= score) for score in matches], np.int64)
    others = at_least - (len(matches) - below)
    return others[::-1] + np.arange(1, len(matches) + 1)


def best_ranks(scores: AnyScores,
               *sets: Matches) -> list[dict[str, np.ndarray]]:
    """For each ground truth {"i2t": (I,), "t2i": (T,)}: 1-based rank of every query's best match.

    One pass over each matrix for all sets, over a plain one for both directions too; 0 where a
    query has no match.
    Raises: ValueError for NaN, or where scores and lists do not fit.
    """
    scores = Scores.of(scores)
    for matches in sets:
        if (len(matches.i2t), len(matches.t2i)) != scores.shape:
            raise ValueError(f"scores {scores.shape} need as many lists of positives; got "
                             f"{(len(matches.i2t), len(matches.t2i))}")
    if not scores.single:
        i2t, t2i = (best_ranks(matrix, *sets) for matrix in scores)
        return [{"i2t": a["i2t"], "t2i": b["t2i"]} for a, b in zip(i2t, t2i, strict=True)]
    scores = scores.i2t
    bests = [{d: best_scores(scores, m, d) for d, m in s._asdict().items()} for s in sets]
    counts = [{d: np.zeros(len(m), np.int64) for d, m in s._asdict().items()} for s in sets]
    for start in range(0, len(scores), ROWS):
        piece = on_host(scores[start:start + ROWS])
        rows = slice(start, start + len(piece))
        for best, count in zip(bests, counts, strict=True):
            by_row, by_column = count_array(piece, best["i2t"][0][rows], best["t2i"][0], start)
            count["i2t"][rows] = by_row
            count["t2i"] += by_column
    # what was counted includes the best match and further matches that tie with it
    return [{d: np.where(best[d][1] > 0, 1 + count[d] - best[d][1], 0) for d in DIRECTIONS}
            for best, count in zip(bests, counts, strict=True)]


def best_scores(scores: np.ndarray | Tensor, positives: Positives,
                direction: str) -> tuple[np.ndarray, np.ndarray]:
    """Per query the score of its best match (inf without one), and how many matches have it."""
    query = np.repeat(np.arange(len(positives)), np.diff(positives.starts))
    pairs = (query, positives.items) if direction == "i2t" else (positives.items, query)
    own = on_host(scores[pairs])
    best = np.full(len(positives), -np.inf, own.dtype)
    with np.errstate(invalid="ignore"):  # NaN is refused where rows are counted, with its place
        np.maximum.at(best, query, own)
    ties = np.bincount(query[own >= best[query]], minlength=len(positives))
    best[np.diff(positives.starts) == 0] = np.inf
    return best, ties


def map_at_r(scores: AnyScores, truth: Truth) -> dict[str, float]:
    """Mean average precision up to rank R, R the matches of each query: {"i2t_map_at_r", ...}.

    Args: scores: (I, T), higher = more alike; truth: which text matches which image.
    Raises: as `find`.
    Source: Musgrave et al., ECCV 2020; Chun et al., ECCV 2022 (ECCV Caption).
    Differs: ties count against the model.
    Example: image 0 finds its two texts on ranks 1 and 3, R = 2: (1 / 1 + 0) / 2
        >>> scores = np.array([[0.9, 0.1, 0.5], [0.4, 0.3, 0.6]])
        >>> map_at_r(scores, Truth(np.array([0, 0, 1])))["i2t_map_at_r"]
        0.75
    """
    return {f"{d}_map_at_r": float(find(scores, truth.positives(d), d).map_at_r().mean())
            for d in DIRECTIONS}


def r_precision(scores: AnyScores, truth: Truth) -> dict[str, float]:
    """Share of matches among the first R, R the matches of each query: {"i2t_r_precision", ...}.

    Args, Raises, Source, Differs: as `map_at_r`.
    Example: image 0 has one of its two texts among the first two, image 1 its only one first
        >>> scores = np.array([[0.9, 0.1, 0.5], [0.4, 0.3, 0.6]])
        >>> r_precision(scores, Truth(np.array([0, 0, 1])))["i2t_r_precision"]
        0.75
    """
    return {f"{d}_r_precision": float(find(scores, truth.positives(d), d).r_precision().mean())
            for d in DIRECTIONS}
