"""How far label sources agree with judges."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from itr_study.evaluation.percent import percent
from itr_study.label_quality.coco import attempt
from itr_study.label_quality.judges import Judge
from itr_study.relevance import RELEVANCE

RATED = ("own captions left out", "all pairs")


def label_sources(names: Sequence[str]) -> dict[str, object]:
    """Label sources by names such as "binary" or "sentence/max" (how captions are pooled).

    Example:
        >>> [source.name for source in label_sources(["binary", "cider/mean"]).values()]
        ['binary', 'cider']
    """
    sources = {}
    for name in names:
        kind, _, pooling = name.partition("/")
        label, arguments = ((f"{kind}, {pooling}", {"pooling": pooling}) if pooling else (kind, {}))
        sources[label] = RELEVANCE[kind](**arguments)
    return sources


def agreement(judges: Sequence[Judge], sources: Mapping[str, object], absent: dict[str, str],
              resamples: int = 200, seed: int = 0) -> pd.DataFrame:
    """Correlation of each label source with each judge, in percent, with and without own captions.

    Args:    absent: takes the pairs of source and judge that cannot be had, with the reason;
             resamples: of the judged images, for the 95 % interval; 0 gives none.
    Returns: judge, statistic, source, rated (one of RATED), pairs, value, low, high.
    """
    records = []
    for judge in judges:
        kept = {RATED[0]: ~judge.own, RATED[1]: np.ones(len(judge), bool)}
        for label, source in sources.items():
            scores = attempt(f"{label}, judged by {judge.name}", absent,
                             lambda judge=judge, source=source: judge.score(source))
            for rated, mask in kept.items() if scores is not None else ():
                if rated == RATED[1] and not judge.own.any():
                    continue  # there is nothing that could be left out
                pairs = np.flatnonzero(mask)
                low, high = interval(judge, scores, pairs, resamples, seed)
                records.append((judge.name, judge.statistic, label, rated, len(pairs),
                                percent(judge.correlate(scores, pairs)), low, high))
    return pd.DataFrame(records, columns=["judge", "statistic", "source", "rated", "pairs",
                                          "value", "low", "high"])


def interval(judge: Judge, scores: np.ndarray, pairs: np.ndarray, resamples: int,
             seed: int) -> tuple[float, float]:
    """95 % percentile interval, in percent: pairs drawn anew image by image, with replacement."""
    if not resamples:
        return np.nan, np.nan
    values = [percent(judge.correlate(scores, drawn))
              for drawn in draws(judge, pairs, resamples, seed)]
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def draws(judge: Judge, pairs: np.ndarray, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Pairs of as many images as there are, drawn with replacement, each with all its pairs."""
    order = pairs[np.argsort(judge.groups[pairs], kind="stable")]
    members = np.split(order, np.flatnonzero(np.diff(judge.groups[order])) + 1)
    random = np.random.default_rng(seed)
    for _ in range(resamples):
        yield np.concatenate([members[n] for n in random.integers(len(members),
                                                                  size=len(members))])
