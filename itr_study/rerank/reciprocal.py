"""RR: a query's first results in the order in which they would find the query."""

import numpy as np

from itr_study.checks import check_count
from itr_study.metrics.first import first
from itr_study.metrics.graded import on_host
from itr_study.metrics.scores import AnyScores, Scores, query_rows
from itr_study.metrics.truth import DIRECTIONS, check_image_of_text
from itr_study.rerank.base import Listed, Matrix, by_direction


def reciprocal(scores: AnyScores, k_i2t: int = 15, k_t2i: int = 20,
               siblings: np.ndarray | None = None) -> Scores:
    """Reciprocal re-ranking (RR) of scores (I, T), in both directions.

    The first k results of a query are put in order of reverse rank: where the query stands when all
    queries are ranked for the result. Equal reverse ranks keep the order they had; what is not
    among the first k stays below.

    Args:
        scores: (I, T) array or tensor, higher = more alike; of `Scores` each direction is re-ranked
            from its own matrix.
        k_i2t, k_t2i: how many results are re-ordered, at least 1; of a smaller gallery all.
        siblings: image_of_text (T,): a text query then counts as found where any text of its image
            is, as published code does. That is knowledge of the test's pairs, which nobody has who
            searches: for parity, never for a result.
    Raises: ValueError for scores that are not finite, k < 1.
    Source: Wang et al., MTFN, ACM MM 2019, and its code.
    Differs: siblings are off; published code sorts in no stable order, here equal reverse ranks
        keep their order and of equal scores the lower index comes first; results that are equal in
        both still tie.
    Example: image 0 finds text 0 first, which prefers image 1, then text 1, which prefers image 0
        >>> i2t, t2i = reciprocal(np.array([[0.5, 0.4], [0.9, 0.1]]))
        >>> i2t.argmax(axis=1)
        array([1, 0])
    """
    check_count("k_i2t", k_i2t)
    check_count("k_t2i", k_t2i)
    owner = None if siblings is None else check_image_of_text(siblings, *Scores.of(scores).shape)
    ks = {"i2t": k_i2t, "t2i": k_t2i}
    return by_direction(scores, lambda matrix: reordered(matrix, ks, owner))


def reordered(scores: Matrix, ks: dict[str, int], owner: np.ndarray | None) -> Listed:
    """The first results by reverse rank, then by score."""
    candidates, places = {}, {}
    for direction in DIRECTIONS:
        found = first(scores, ks[direction])[direction]
        reverse = reverse_ranks(scores, found, direction, owner if direction == "t2i" else None)
        rows = np.arange(len(found))[:, None]
        own = on_host(query_rows(scores, direction, slice(None)))[rows, found]
        candidates[direction], places[direction] = found, order_of(reverse, own)
    return Listed(scores, candidates, places)


def order_of(reverse: np.ndarray, own: np.ndarray) -> np.ndarray:
    """(Q, k) places by reverse rank, then by score (falling along a row); equal where both are."""
    order = np.argsort(reverse, axis=1, kind="stable")
    by_rank, by_score = (np.take_along_axis(part, order, 1) for part in (reverse, own))
    changes = (by_rank[:, 1:] != by_rank[:, :-1]) | (by_score[:, 1:] != by_score[:, :-1])
    ordered = np.zeros_like(order)
    ordered[:, 1:] = np.cumsum(changes, axis=1)
    places = np.empty_like(order)
    np.put_along_axis(places, order, ordered, 1)
    return places


def reverse_ranks(scores: Matrix, candidates: np.ndarray, direction: str,
                  owner: np.ndarray | None = None) -> np.ndarray:
    """(Q, k) 0-based position of the query among all queries ranked for each of its candidates.

    Of equal scores the query of lower index stands first. With `owner` (T,) the best position of
    any text of the query's image.
    """
    values = on_host(query_rows(scores, direction, slice(None)))  # (Q, n)
    position = np.empty(values.shape, np.int64)
    np.put_along_axis(position, np.argsort(-values, axis=0, kind="stable"),
                      np.arange(len(values))[:, None], 0)
    if owner is not None:
        best = np.full((owner.max() + 1, values.shape[1]), len(values))
        np.minimum.at(best, owner, position)
        position = best[owner]
    return np.take_along_axis(position, candidates, 1)
