"""Differences between label sources, and how far other images would move them.

Both sources of a difference are judged on the same images. These are drawn anew, as many as there
are and with replacement, each with everything judged of it; the standard deviation of the
difference over the draws is its standard error (the bootstrap: Efron and Tibshirani 1993, ch. 6).
The ledger judges claims about label sources by it (`ledger/evidence.py`, which names the columns).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from itr_study.evaluation.percent import percent
from itr_study.label_quality.agreement import draws
from itr_study.label_quality.judges import Judge
from itr_study.label_quality.ranking import ExtendedTruth, Grade, ranking_values
from itr_study.metrics.truth import DIRECTIONS

METRICS = {"map_at_r": "map", "r_precision": "rp"}  # of a ranking; as claims.csv calls them
ALPHA = 0.2  # bcls


def record(first: str, second: str, metric: str, data: str, images: int, difference: float,
           resampled: Sequence[float] | np.ndarray) -> dict[str, Any]:
    """One line of evidence: the labels called first less those called second."""
    return {"arm_a": f"labels({first})", "arm_b": f"labels({second})", "metric": metric,
            "data": data, "images": images, "difference": float(difference),
            "error": float(np.std(resampled, ddof=1))}


def by_judge(judge: Judge, metric: str, scores: Mapping[str, np.ndarray], first: str, second: str,
             resamples: int, seed: int = 0) -> dict[str, Any]:
    """The correlation of one label source with a judge less that of another, all pairs counted.

    Args:    scores: of each source, one for each judged pair (N,).
    """
    pairs = np.arange(len(judge))

    def difference(of: np.ndarray) -> float:
        return percent(judge.correlate(scores[first], of) - judge.correlate(scores[second], of))

    resampled = [difference(drawn) for drawn in draws(judge, pairs, resamples, seed)]
    return record(first, second, metric, judge.name, len(np.unique(judge.groups)),
                  difference(pairs), resampled)


def by_rankings(grades: Mapping[str, Grade], truth: ExtendedTruth, image_of_text: np.ndarray,
                data: str, resamples: int, seed: int = 0) -> list[dict[str, Any]]:
    """mAP@R and R-Precision of rankings by the first source less those by the second, each way,
    and by how much the difference of texts that search is the larger one.

    Args:    grades: two label sources by name, as `ranking.graded` makes them.
    """
    (first, one), (second, other) = grades.items()
    values = [ranking_values(grade, truth) for grade in (one, other)]
    gaps, owners = {}, {}
    for way in DIRECTIONS:
        for name, short in METRICS.items():
            queries, of_one = values[0][f"{way}_{name}"]
            gaps[f"eccv_{way}_{short}"] = of_one - values[1][f"{way}_{name}"][1]
            owners[f"eccv_{way}_{short}"] = queries if way == "i2t" else image_of_text[queries]
    images = np.unique(np.concatenate(list(owners.values())))
    times = times_drawn(len(images), resamples, seed)
    means = {name: weighted_mean(np.searchsorted(images, owners[name]), gap, times)
             for name, gap in gaps.items()}
    exact = {name: gap.mean() for name, gap in gaps.items()}
    for short in METRICS.values():
        texts, photographs = f"eccv_t2i_{short}", f"eccv_i2t_{short}"
        means[f"{texts}-{photographs}"] = means[texts] - means[photographs]
        exact[f"{texts}-{photographs}"] = exact[texts] - exact[photographs]
    return [record(first, second, name, data, len(images), exact[name], means[name])
            for name in means]


def by_spread(alike: np.ndarray, image: np.ndarray, data: str, resamples: int,
              seed: int = 0) -> list[dict[str, Any]]:
    """How far the standard deviation of caption similarity within images lies from bcls's alpha,
    times 100, in both readings of the rule (`caption_spread`).

    Args:    alike: (N,) similarity of each pair of captions; image: (N,) whose captions they are.
    """
    images, owner = np.unique(image, return_inverse=True)
    alike, counts = np.asarray(alike, float), np.bincount(owner)
    sums, squares = (np.bincount(owner, values) for values in (alike, alike**2))
    within = np.sqrt(np.maximum(squares / counts - (sums / counts) ** 2, 0))

    def readings(times: np.ndarray) -> dict[str, np.ndarray]:
        n = times @ counts
        pooled = np.sqrt(times @ squares / n - (times @ sums / n) ** 2)
        return {"pooled": pooled, "per image": times @ within / times.sum(axis=1)}

    exact = readings(np.ones((1, len(images))))
    drawn = readings(times_drawn(len(images), resamples, seed))
    return [record(f"captions, {name}", f"alpha = {ALPHA}", f"spread_{data}", f"captions of {data}",
                   len(images), percent(exact[name][0] - ALPHA), percent(drawn[name]))
            for name in exact]


def times_drawn(images: int, resamples: int, seed: int) -> np.ndarray:
    """(resamples, images) how often each image is drawn, as many in all as there are."""
    even = np.full(images, 1 / images)
    return np.random.default_rng(seed).multinomial(images, even, resamples).astype(float)


def weighted_mean(owner: np.ndarray, values: np.ndarray, times: np.ndarray) -> np.ndarray:
    """(resamples,) mean over queries, each counted as often as its image is drawn."""
    images = times.shape[1]
    return (times @ np.bincount(owner, values, images)) / (
        times @ np.bincount(owner, minlength=images))
