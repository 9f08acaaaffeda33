"""How far scores agree with ratings of a few pairs, and how far other pairs would move that."""

import numpy as np

RESAMPLES, LEVEL = 400, (2.5, 97.5)  # of the pairs; percentiles of a 95 % interval


def tau_c(scores: np.ndarray, ratings: np.ndarray, times: np.ndarray | None = None) -> np.ndarray:
    """Kendall's tau-c of scores and all ratings of each pair as samples of their own, as
    `metrics.human.human_correlation` has it, for many draws of the pairs at once.

    Args:    scores: (N,); ratings: (N, raters), NaN where absent; times: (D, N) how often each pair
             counts in each draw; None: one draw, each once.
    Returns: (D,) in [-1, 1]; 0 where all scores or all ratings of a draw are equal.
    Source:  Hessel et al., CLIPScore, EMNLP 2021, Sec. 4.1.

    Example: of three pairs of ratings one is in the wrong order: 2 m (C - D) / (n^2 (m - 1))
        >>> tau_c(np.array([1, 3, 2]), np.array([[1.0], [2.0], [3.0]]))
        array([0.33333333])
    """
    times = np.ones((1, len(scores))) if times is None else np.asarray(times, float)
    given = ~np.isnan(ratings)
    theirs = np.sign(ratings[:, None, :, None] - ratings[None, :, None, :])
    agree = np.sign(scores[:, None] - scores) * np.nansum(theirs, axis=(2, 3))
    excess = ((times @ agree) * times).sum(axis=1) / 2  # C - D
    samples = times @ given.sum(axis=1)
    drawn = times > 0
    kinds = [(drawn @ (np.unique(scores)[:, None] == scores).T > 0).sum(axis=1),
             (drawn @ np.array([(ratings == level).any(axis=1) for level in
                                np.unique(ratings[given])]).T > 0).sum(axis=1)]
    fewest = np.minimum(*kinds)
    most = samples**2 * (fewest - 1)
    return np.divide(2 * fewest * excess, most, out=np.zeros(len(times)), where=fewest > 1)


def with_others(scores: np.ndarray, ratings: np.ndarray, grades: np.ndarray, seed: int = 0
                ) -> tuple[float, float, float]:
    """Tau-c and its 95 % interval: pairs drawn anew, with replacement, as many of each grade as
    there are, for so they were chosen.

    Args:    grades: (N,) of each pair.
    """
    random = np.random.default_rng(seed)
    times = np.zeros((RESAMPLES, len(scores)))
    for grade in np.unique(grades):
        own = np.flatnonzero(grades == grade)
        times[:, own] = random.multinomial(len(own), np.full(len(own), 1 / len(own)), RESAMPLES)
    low, high = np.percentile(tau_c(scores, ratings, times), LEVEL)
    return float(tau_c(scores, ratings)[0]), float(low), float(high)
