"""How far scores agree with ratings of a few pairs, and how little so few pairs say."""

from collections.abc import Mapping, Sequence

import numpy as np

from itr_study.data.judgements import Judgements
from itr_study.metrics.human import human_correlation
from itr_study.plots.you_judge import Agreement

FEWEST = 5  # pairs from which on an interval is known
YOU = "you"


def tau_interval(tau: float, pairs: int) -> tuple[float, float]:
    """About 95 % interval of Kendall's tau over other pairs, by Fisher's transformation with the
    variance 0.437 / (n - 4) of Fieller, Hartley and Pearson (1957); they had no ties.

    A tau of 1 is taken for one that lies half a step below it: with few pairs it may be chance.

    Args:    pairs: at least 5.

    Example:
        >>> [round(end, 2) for end in tau_interval(0.6, 20)], tau_interval(1.0, 5)[0] < 0.2
        ([0.35, 0.77], True)
    """
    half = 1.959964 * (0.437 / (pairs - 4)) ** 0.5
    most = 1 - 2 / (pairs * (pairs - 1))  # neighbours that swap move it by twice as much below 1
    middle = np.arctanh(np.clip(tau, -most, most))
    low, high = (float(np.tanh(middle + way * half)) for way in (-1, 1))
    return min(low, tau), max(high, tau)


def orders(values: np.ndarray) -> bool:
    """Whether not all values, NaN left out, are equal: else they put nothing above another, and
    Kendall's tau with them is not defined."""
    known = values[~np.isnan(values)]
    return bool(known.size) and bool((known != known[0]).any())


def agreement(scores: np.ndarray, ratings: np.ndarray) -> tuple[float, float, float]:
    """Kendall's tau-c of scores (N,) with all ratings (N, raters) of each pair, and its interval;
    `orders` must hold of both.

    Example: equal grades of five pairs
        >>> agreement(np.array([1, 2, 3, 4, 4]), np.array([[1.0], [2], [3], [4], [4]]))[0]
        0.96
    """
    pairs = len(scores)
    nobody = ("",) * pairs
    judged = Judgements("you", nobody, nobody, ratings, np.zeros(pairs, bool), "c")
    (tau,) = human_correlation(scores, judged).values()
    return tau, *tau_interval(tau, pairs)


def agreements(yours: np.ndarray | None, ratings: np.ndarray, raters: Sequence[str],
               scores: Mapping[str, np.ndarray]) -> tuple[list[Agreement], list[str]]:
    """All who rate N pairs: their agreement, the largest first, and the names of those of whom it
    is not defined, for they or whom they are held against put no pair above another.

    Each rater is held against the other raters, all else against all.

    Args:    yours: (N,) the reader's, None where there are none yet; ratings: (N, raters), NaN
             where absent; scores: by name (N,).
    """
    compared = [] if yours is None else [(YOU, YOU, yours, ratings)]
    for n, name in enumerate(raters):
        rest = np.delete(ratings, n, axis=1)
        both = ~np.isnan(ratings[:, n]) & ~np.isnan(rest).all(axis=1)
        if both.sum() >= FEWEST:
            compared.append((name, "rater", ratings[both, n], rest[both]))
    compared += [(name, "computed", values, ratings) for name, values in scores.items()]
    known = [orders(values) and orders(beside) for _, _, values, beside in compared]
    found = [Agreement(name, kind, *agreement(values, beside))
             for (name, kind, values, beside), defined in zip(compared, known, strict=True)
             if defined]
    return sorted(found, key=lambda one: -one.value), [
        one[0] for one, defined in zip(compared, known, strict=True) if not defined]
