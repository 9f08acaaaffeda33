"""Agreement with people: correlation of scores of pairs with people's ratings of these pairs."""

import numpy as np

from itr_study.checks import check_numbers
from itr_study.data.base import Judgements
from itr_study.data.cxc import Crisscrossed


def human_correlation(scores: np.ndarray, judgements: Judgements,
                      own: bool = False) -> dict[str, float]:
    """Kendall's tau between scores of the judged pairs and people's ratings.

    Args:
        scores: (N,) one for each pair, higher = describes better.
        judgements: tau-c on all ratings of an expert as samples of their own, or tau-b on the
            share of yes of CrowdFlower.
        own: also count images with their own captions.
    Returns: {"expert_tau_c": ...} or {"crowdflower_tau_b": ...}, in [-1, 1]; 0 where all scores
        are equal, for they order nothing.
    Raises: ValueError for another number of scores, nan, or fewer than two ratings.
    Source: Hessel et al., CLIPScore, EMNLP 2021, Sec. 4.1 and Tables 1-2.
    Example: two raters of three pairs; they contradict each other once on the last two
        >>> rated = Judgements("expert", ("a",) * 3, ("b#0",) * 3,
        ...                    np.array([[1, 1], [2, 3], [3, 2]]), np.zeros(3, bool), "c")
        >>> human_correlation(np.array([0.1, 0.2, 0.3]), rated)
        {'expert_tau_c': 0.6666666666666666}
    """
    from scipy.stats import kendalltau

    values = checked(scores, len(judgements))
    kept = own | ~judgements.own
    ratings = np.asarray(judgements.ratings, np.float64)[kept]
    given = ~np.isnan(ratings)
    ours, theirs = np.repeat(values[kept], given.sum(axis=1)), ratings[given]
    if len(theirs) < 2:
        raise ValueError(f"a correlation needs at least two ratings, got {len(theirs)}; do the "
                         "pairs hold none but images with their own captions? Take own=True")
    flat = np.ptp(ours) == 0 or np.ptp(theirs) == 0
    tau = 0.0 if flat else float(kendalltau(ours, theirs, variant=judgements.tau).statistic)
    return {f"{judgements.name}_tau_{judgements.tau}": tau}


def cxc_correlation(scores: np.ndarray, rated: Crisscrossed, own: bool = True) -> dict[str, float]:
    """Pearson's and Spearman's correlation between scores of CxC's pairs and their ratings.

    Args:
        scores: (N,) one for each pair.
        rated: the pairs, in the same order.
        own: also count pairs that belong to the same image (for "sits": an image with its own
            captions).
    Returns: {"pearson": ..., "spearman": ...}, in [-1, 1]; 0 where all scores are equal.
    Raises: ValueError for another number of scores, nan, or fewer than two pairs.
    Source: bcls, Table II; Parekh et al., CxC, EACL 2021, Sec. 5, which takes Spearman.
    Differs: the CxC paper takes the mean over bootstrapped samples of the pairs; here all pairs.
    """
    from scipy.stats import pearsonr, spearmanr

    kept = own | ~rated.own
    ours = checked(scores, len(rated))[kept]
    theirs = np.asarray(rated.ratings, np.float64)[kept]
    if len(ours) < 2:
        raise ValueError(f"a correlation needs at least two pairs, got {len(ours)}; take own=True")
    flat = np.ptp(ours) == 0 or np.ptp(theirs) == 0
    return {name: 0.0 if flat else float(correlate(ours, theirs).statistic)
            for name, correlate in (("pearson", pearsonr), ("spearman", spearmanr))}


def checked(scores: object, pairs: int) -> np.ndarray:
    """Convert scores to (N,) float64; raise ValueError unless they fit the pairs and are finite."""
    check_numbers(np.asanyarray(scores))
    values = np.asarray(scores, np.float64)
    if values.shape != (pairs,):
        raise ValueError(f"scores must be one for each of the {pairs} pairs, got {values.shape}; "
                         "take those at the places of the pairs")
    if not np.isfinite(values).all():
        raise ValueError(f"scores must be finite; found nan or inf first at pair "
                         f"{np.flatnonzero(~np.isfinite(values))[0]}")
    return values
