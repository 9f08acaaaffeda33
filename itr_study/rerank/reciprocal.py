"""RR: a query's first results in the order in which they would find the query."""

import numpy as np

from itr_study.checks import check_count
from itr_study.metrics.first import first_with_scores
from itr_study.metrics.graded import on_host
from itr_study.metrics.scores import AnyScores, LazyScores, Scores
from itr_study.metrics.truth import DIRECTIONS, check_image_of_text
from itr_study.rerank.base import Listed, Matrix, by_direction, rows_together
from itr_study.rerank.rivals import CANDIDATES

MANY = 40  # queries that ask for one candidate from which a sort is faster than a count for each


def reciprocal(scores: AnyScores, k_i2t: int = 15, k_t2i: int = 20,
               siblings: np.ndarray | None = None) -> LazyScores:
    """Reciprocal re-ranking (RR) of scores (I, T), in both directions.

    The first k results of a query are put in order of reverse rank: where the query stands when all
    queries are ranked for the result. Equal reverse ranks keep the order they had; what is not
    among the first k stays below. It sees all queries of the test at once (it is transductive).

    Args:
        scores: (I, T) array or tensor, higher = more alike; of `Scores` each direction is re-ranked
            from its own matrix.
        k_i2t, k_t2i: how many results are re-ordered, at least 1; of a smaller gallery all.
        siblings: image_of_text (T,): a text query then stands where the best text of its image
            does, as in published code. That is knowledge of the test's pairs, which nobody has who
            searches: for parity, never for a result.
    Shape: `Scores`, both (I, T), computed on first use; what was re-ordered lies above the query's
        highest score in even steps, so only its order has a meaning.
    Raises: ValueError for scores that are not finite, k < 1, siblings that do not fit.
    Source: Wang et al., MTFN, ACM MM 2019, and its code.
    Differs: siblings are off, and any number; published code sorts in no stable order: here equal
        reverse ranks keep their order, of equal scores the lower index comes first; results that
        are equal in both still tie.
    Example: image 0 finds text 0 first, which prefers image 1, then text 1, which prefers image 0
        >>> i2t, t2i = reciprocal(np.array([[0.5, 0.4], [0.9, 0.1]]))
        >>> i2t.argmax(axis=1)
        array([1, 0])
    """
    check_count("k_i2t", k_i2t)
    check_count("k_t2i", k_t2i)
    owner = None if siblings is None else check_image_of_text(siblings, *Scores.of(scores).shape)
    ks = {"i2t": (k_i2t, None), "t2i": (k_t2i, owner)}
    return by_direction(scores, lambda matrix: reordered(matrix, ks))


def reordered(scores: Matrix, ks: dict[str, tuple[int, np.ndarray | None]]) -> Listed:
    """The first results by reverse rank, then by score."""
    candidates, places = {}, {}
    for direction in DIRECTIONS:
        k, owner = ks[direction]
        found, own = first_with_scores(scores, k, direction)
        reverse = reverse_ranks(scores, direction, found, own, owner)
        candidates[direction], places[direction] = found, joint_places(reverse, own)
    return Listed(scores, candidates, places)


def joint_places(reverse: np.ndarray, own: np.ndarray) -> np.ndarray:
    """(Q, k) places by reverse rank, then by score, which falls along a row; equal if both are."""
    order = np.argsort(reverse, axis=1, kind="stable")
    by_rank, by_score = (np.take_along_axis(part, order, 1) for part in (reverse, own))
    new = (by_rank[:, 1:] != by_rank[:, :-1]) | (by_score[:, 1:] != by_score[:, :-1])
    ordered = np.zeros_like(order)
    np.cumsum(new, axis=1, out=ordered[:, 1:])
    places = np.empty_like(order)
    np.put_along_axis(places, order, ordered, 1)
    return places


def reverse_ranks(scores: Matrix, direction: str, found: np.ndarray, own: np.ndarray,
                  owner: np.ndarray | None = None) -> np.ndarray:
    """(Q, k) 0-based position of the query among all queries ranked for each result found.

    Of equal scores the query of lower index stands first.

    Args:
        found: (Q, k) the first results of every query; own: (Q, k) their scores.
        owner: (Q,) the image of each text query: the best position of any of its texts is taken.
    """
    k = found.shape[1]
    asked = np.argsort(found, axis=None, kind="stable")  # pairs of query and result, by result
    size = scores.shape[1 if direction == "i2t" else 0]
    starts = np.searchsorted(found.ravel()[asked], np.arange(size + 1))
    reverse, flat = np.empty(found.size, np.int64), own.ravel()
    step = rows_together(scores, len(found))
    for results, values in Scores.of(scores).blocks(CANDIDATES[direction], step):
        for result, row in enumerate(on_host(values), results.start):
            pairs = asked[starts[result]:starts[result + 1]]
            if len(pairs) == 0:
                continue
            if owner is None:
                reverse[pairs] = positions(row, flat[pairs], pairs // k)
            else:
                best, place = best_of_owners(row, owner)
                of = owner[pairs // k]
                reverse[pairs] = positions(row, best[of], place[of])
    return reverse.reshape(found.shape)


def positions(row: np.ndarray, scores: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(p,) how many of a row stand before each of some of its items, given by score and place."""
    if len(scores) < MANY:
        above = np.array([np.count_nonzero(row > score) for score in scores])
        least = np.array([np.count_nonzero(row >= score) for score in scores])
    else:
        ascending = np.sort(row)
        above = len(row) - np.searchsorted(ascending, scores, "right")
        least = len(row) - np.searchsorted(ascending, scores, "left")
    for tied in np.flatnonzero(least - above > 1):
        above[tied] += np.count_nonzero(row[:places[tied]] == scores[tied])
    return above


def best_of_owners(row: np.ndarray, owner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(I,) the highest score of each image's texts, and the first place that has it."""
    best = np.full(owner.max() + 1, -np.inf, row.dtype)
    np.maximum.at(best, owner, row)
    has = np.flatnonzero(row == best[owner])[::-1]
    place = np.zeros(len(best), np.int64)
    place[owner[has]] = has  # of several the last written, the first, stays
    return best, place
