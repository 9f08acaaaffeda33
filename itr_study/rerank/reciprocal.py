"""RR: a query's first results in the order in which they would find the query."""

import numpy as np

from itr_study.checks import check_count
from itr_study.metrics.first import first_with_scores
from itr_study.metrics.scores import AnyScores, LazyScores, Scores
from itr_study.metrics.truth import Positives, Truth, check_image_of_text
from itr_study.rerank.base import Listed, Matrix, by_direction, reverse_ranks


def reciprocal(scores: AnyScores, k_i2t: int = 15, k_t2i: int = 20,
               siblings: np.ndarray | None = None) -> LazyScores:
    """Re-rank scores (I, T) in both directions by RR, reciprocal re-ranking.

    The first k results of a query are put in order of reverse rank: the place of the query when all
    queries are ranked for the result. Equal reverse ranks keep the order they had; what is not
    among the first k stays below.

    Args:
        scores: (I, T).
        k_i2t: how many results are re-ordered, at least 1; of a smaller gallery all.
        k_t2i: the same of texts.
        siblings: image_of_text (T,): a text query then has the place of the best text of its image,
            as in published code. That is knowledge of the test's pairs, which nobody has who
            searches: for parity, never for a result.
    Shape: both (I, T); what was re-ordered is above the query's highest score in even steps, so
        only its order has a meaning.
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
    stand_in = None
    if siblings is not None:
        truth = Truth(check_image_of_text(siblings, *Scores.of(scores).shape))
        stand_in = truth.positives("i2t").take(truth.image_of_text)
    ks = {"i2t": k_i2t, "t2i": k_t2i}
    return by_direction(scores, lambda matrix: Reciprocal(matrix, ks, {"t2i": stand_in}))


class Reciprocal(Listed):
    """RR: the first `ks` results of a direction by reverse rank, then by score."""

    def __init__(self, given: Matrix, ks: dict[str, int],
                 siblings: dict[str, Positives | None]) -> None:
        super().__init__(given)
        self.ks, self.siblings = ks, siblings

    def reordered(self, direction: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the first results and their places."""
        found, own = first_with_scores(self.given, self.ks[direction], direction)
        reverse = reverse_ranks(self.given, direction, found, self.siblings.get(direction))
        return found, joint_places(reverse, own)


def joint_places(reverse: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return places (Q, k) by reverse rank, then by falling score; equal if both are."""
    order = np.argsort(reverse, axis=1, kind="stable")
    by_rank, by_score = (np.take_along_axis(part, order, 1) for part in (reverse, own))
    new = (by_rank[:, 1:] != by_rank[:, :-1]) | (by_score[:, 1:] != by_score[:, :-1])
    ordered = np.zeros_like(order)
    np.cumsum(new, axis=1, out=ordered[:, 1:])
    places = np.empty_like(order)
    np.put_along_axis(places, order, ordered, 1)
    return places
