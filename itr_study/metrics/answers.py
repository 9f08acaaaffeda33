"""When does nothing fit? The score from which answers hold, and how well scores tell it."""

from typing import NamedTuple

import numpy as np

from itr_study.checks import check_number


class Level(NamedTuple):
    """A query is answered if its best score is at least `score`; inf: none is."""

    score: float
    wrong: float  # share of the answers that may be wrong
    answered: float  # share of the queries of the calibration that are answered
    queries: int  # of the calibration


def answer_level(best: np.ndarray, right: np.ndarray, wrong: float = 0.1, lost: float = 0.1,
                 least: float = 0.1) -> Level:
    """Find the lowest score from which answers hold, by queries whose answers are known.

    It is the higher of two levels. At the first, and at all above it, (W + 1) / (A + 1) <= wrong
    for the W wrong ones among A answers: a new one counts as wrong. Levels with fewer answers than
    `least` of the queries, or 1 / wrong, are not tried. The second loses a share `lost` of the
    right answers: it is the k-th lowest score of R right ones, k = floor(lost (R + 1)). Both
    promises hold on average over new queries that are drawn like these.

    Args:
        best: (Q,) the highest score of each query.
        right: (Q,) bool, whether its answer holds.
        wrong: share of answers that may be wrong, in (0, 1].
        lost: share of right answers that may be refused, in [0, 1].
        least: share of the queries that must be answered, in [0, 1].
    Raises: ValueError: lengths that differ, no query, NaN.
    Source: split conformal prediction, Vovk et al., 2005; the estimate of wrong answers is that of
        Jin and Candès, Selection by prediction with conformal p-values, JMLR 2023, for one query.
    Differs: levels are tried from above, up to the first that fails, not the lowest that passes.
    Example: of the nine from 0.1 on one is wrong: (1 + 1) / (9 + 1)
        >>> scores, holds = np.linspace(0.0, 0.9, 10), np.array([0, 0, 1, 1, 1, 1, 1, 1, 1, 1])
        >>> round(answer_level(scores, holds == 1, wrong=0.2, lost=0.0).score, 3)
        0.1
    """
    check_number("wrong", wrong, above=0, most=1)
    check_number("lost", lost, least=0, most=1)
    best, right = np.asarray(best, float), np.asarray(right, bool)
    if best.shape != right.shape or best.ndim != 1 or not len(best) or np.isnan(best).any():
        raise ValueError("best and right must be (Q,), numbers and whether each answer holds; got "
                         f"{best.shape} and {right.shape}")
    order = np.argsort(-best, kind="stable")
    falling, answers = best[order], np.arange(1, len(best) + 1)
    holds = (~right[order]).cumsum() + 1 <= wrong * (answers + 1) + 1e-9
    tried = answers >= max(least * len(best), 1 / wrong) - 1e-9
    tried[:-1] &= falling[:-1] > falling[1:]  # equal scores are answered together
    passed = falling[np.logical_and.accumulate(holds | ~tried) & tried]
    level = passed[-1] if len(passed) else np.inf
    kept = np.sort(best[right])
    if k := int(lost * (len(kept) + 1) + 1e-9):
        level = max(level, kept[k - 1])
    return Level(float(level), wrong, float((best >= level).mean()), len(best))


def best_scores(scores: np.ndarray, image_of_text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the highest score of each text (T,): over all images, and over all but its own.

    Args:
        scores: (I, T), of two images or more.
        image_of_text: (T,) the own image of each text.
    """
    without = np.array(scores, float)
    without[image_of_text, np.arange(len(image_of_text))] = -np.inf
    return np.max(scores, axis=0), without.max(axis=0)


def auroc(high: np.ndarray, low: np.ndarray) -> float:
    """Compute the probability that one of `high` (N,) is above one of `low` (M,); ties count half.

    Source: Mann and Whitney, Ann. Math. Stat. 18, 1947.
    Example: of four pairs three are in order
        >>> auroc(np.array([0.5, 0.9]), np.array([0.1, 0.6]))
        0.75
    """
    ordered = np.sort(low)
    places = [np.searchsorted(ordered, high, side) for side in ("left", "right")]
    return float(np.mean(places) / len(low))


def refusal_level(without: np.ndarray, wrong: float = 0.1) -> float:
    """Find the score above which at most a share `wrong` of queries without a match are answered.

    It is the k-th highest of Q best scores, k = floor(wrong (Q + 1)); inf for none. Of Q + 1
    queries drawn alike the new one is among the k highest with probability k / (Q + 1).

    Args:
        without: (Q,) the best score of queries that have no match.
        wrong: share of such queries that may be answered, in (0, 1].
    Source: split conformal prediction, Vovk et al., 2005.
    Example: one of ten may be above the highest of nine
        >>> refusal_level(np.arange(1, 10) / 10, wrong=0.1)
        0.9
    """
    check_number("wrong", wrong, above=0, most=1)
    k = int(wrong * (len(without) + 1) + 1e-9)
    return float(np.concatenate(([-np.inf], np.sort(without), [np.inf]))[-k - 1])
