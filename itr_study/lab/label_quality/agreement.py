"""How far label sources agree with judges and with matches, and how far other images would move it.

Both sources of a difference are judged on the same images. As many are drawn with replacement, each
with everything judged of it; the standard deviation of the difference over the draws is its
standard error (the bootstrap: Efron and Tibshirani 1993, ch. 6). The ledger judges claims about
label sources by it (`ledger/evidence.py`, which names the columns).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from itr_study.data.batches import Batch, EncodedSplit
from itr_study.evaluation.table import percent
from itr_study.lab.label_quality.judges import TOOLS, CocoCaptions, Judge, attempt
from itr_study.metrics.eccv import lists, places, sizes
from itr_study.metrics.retrieval_sets import Matches, find
from itr_study.metrics.truth import DIRECTIONS, Positives
from itr_study.relevance import RELEVANCE

RATED = ("own captions left out", "all pairs")
METRICS = {"map_at_r": "map", "r_precision": "rp"}  # of a ranking; as claims.csv calls them
ALPHA = 0.2  # bcls
PAIRS = 25_000_000  # pairs of a caption and a text compared at a time: 100 MB

Grade = Callable[[np.ndarray, np.ndarray], np.ndarray]  # images (i,), texts (t,) -> (i, t)


def label_sources(names: Sequence[str]) -> dict[str, object]:
    """Make label sources by names such as "binary" or "sentence/max" (how captions are pooled).

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
    """Correlate each label source with each judge, in percent, with and without own captions.

    `absent` takes the pairs of source and judge that cannot be had, with the reason; resamples are
    of the judged images, for the 95 % interval; 0 gives none.

    Returns: judge, statistic, source, rated (one of RATED), pairs, value, low, high.
    """
    records = []
    for judge in judges:
        kept = {RATED[0]: ~judge.own, RATED[1]: np.ones(len(judge), bool)}
        if not judge.own.any():
            del kept[RATED[1]]  # there is nothing that could be left out
        for label, source in sources.items():
            scores = attempt(f"{label}, judged by {judge.name}", absent,
                             lambda judge=judge, source=source: judge.score(source))
            for rated, mask in kept.items() if scores is not None else ():
                pairs = np.flatnonzero(mask)
                records.append((judge.name, judge.statistic, label, rated, len(pairs),
                                percent(judge.correlate(scores, pairs)),
                                *interval(judge, scores, pairs, resamples, seed)))
    return pd.DataFrame(records, columns=["judge", "statistic", "source", "rated", "pairs",
                                          "value", "low", "high"])


def interval(judge: Judge, scores: np.ndarray, pairs: np.ndarray, resamples: int,
             seed: int) -> tuple[float, float]:
    """Compute the 95 % percentile interval, in percent, of a correlation over drawn images."""
    if not resamples:
        return np.nan, np.nan
    values = [percent(judge.correlate(scores, drawn))
              for drawn in draws(judge, pairs, resamples, seed)]
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def draws(judge: Judge, pairs: np.ndarray, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Draw as many images as there are, with replacement; yield all pairs of each."""
    order = pairs[np.argsort(judge.groups[pairs], kind="stable")]
    members = np.split(order, np.flatnonzero(np.diff(judge.groups[order])) + 1)
    random = np.random.default_rng(seed)
    for _ in range(resamples):
        yield np.concatenate([members[n] for n in random.integers(len(members), size=len(members))])


# Rankings by a label source alone, without any model

@dataclass(frozen=True, eq=False)
class ExtendedTruth:
    """Ground truth with matches beyond those annotated: lists of every image and every text.

    sizes: R of every image and of every text, 0 where nothing was judged; at least the lengths.
    """

    matches: Matches
    sizes: tuple[np.ndarray, np.ndarray]


def eccv_truth(coco: CocoCaptions) -> ExtendedTruth:
    """Read ECCV Caption, by the places of images and captions."""
    rows = places("image", coco.image_ids, len(coco.image_ids))
    columns = places("text", coco.text_ids, len(coco.text_ids))
    eccv = coco.truth.eccv
    return ExtendedTruth(lists(eccv, rows, columns),
                         (sizes(eccv.i2t, rows), sizes(eccv.t2i, columns)))


def exact_truth(split: EncodedSplit, least: float = 0.999) -> ExtendedTruth:
    """Match every text with every image that it describes without a fault: relevance >= least."""
    fits = split.relevance >= least
    fits[split.image_of_text, np.arange(split.n_texts)] = True
    both = Matches(*(Positives(np.r_[0, np.cumsum(side.sum(axis=1))], np.nonzero(side)[1])
                     for side in (fits, fits.T)))
    return ExtendedTruth(both, (fits.sum(axis=1), fits.sum(axis=0)))


def graded(source: object, split: EncodedSplit) -> Grade:
    """Make a label source a function of images and texts; captions of the image itself get 1."""
    def grade(images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        return source(Batch(*map(torch.from_numpy, (images, texts, split.image_of_text[texts]))),
                      split).numpy()
    return grade


def one_caption(source: object, split: EncodedSplit, number: int) -> Grade:
    """Grade as `graded`, with one caption, by number, for its image (listwise Eq. 8).

    Only that one gets 1; it is the last one where an image has fewer.
    """
    captions = source.captions(split)

    def grade(images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        rows, starts, counts = captions.of(images)
        chosen = rows[starts + np.minimum(number, counts - 1)]
        return source.alike(captions.vectors[chosen], captions.vectors[texts])
    return grade


def random_ties(grade: Grade, seed: int, width: float = 1e-3) -> Grade:
    """Break ties at random, by adding noise smaller than `width`."""
    random = np.random.default_rng(seed)
    return lambda images, texts: grade(images, texts) + width * random.random(
        (len(images), len(texts)))


def ranking_values(grade: Grade, truth: ExtendedTruth) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Compute mAP@R, R-Precision and R@1 of every judged query, both ways.

    Ties count against; nothing is truncated.

    Returns: by name the queries (Q,), images or texts, and their values (Q,) in percent.
    """
    n, values = [len(side) for side in truth.matches], {}
    for way, matches, size in zip(DIRECTIONS, truth.matches, truth.sizes, strict=True):
        queries = np.flatnonzero(size)
        images = queries if way == "i2t" else np.arange(n[0])
        texts = queries if way == "t2i" else np.arange(n[1])
        step = max(1, PAIRS // (5 * len(texts)))
        scores = np.concatenate([grade(images[a:a + step], texts)
                                 for a in range(0, len(images), step)])
        matched = find(scores, matches.take(queries), way, size[queries])
        values |= {f"{way}_map_at_r": (queries, percent(matched.map_at_r())),
                   f"{way}_r_precision": (queries, percent(matched.r_precision())),
                   f"{way}_r1": (queries, percent(matched.recall_at(1)))}
    return values


def ranking_metrics(grade: Grade, truth: ExtendedTruth) -> dict[str, float]:
    """Average `ranking_values`, by name."""
    return {name: float(values.mean())
            for name, (_, values) in ranking_values(grade, truth).items()}


def ranking_table(split: EncodedSplit, truth: ExtendedTruth, sources: Mapping[str, object],
                  absent: dict[str, str], captions: int = 5) -> pd.DataFrame:
    """Rank by relevance alone, one per row: method, run, and the metrics of `ranking_metrics`.

    Each source as it is; sources over captions also with one caption for the image, a run for
    each; binary labels also with random ties. `absent` takes what cannot be had, with the reason.
    """
    forms: list[tuple[str, int, Callable[[], Grade]]] = []
    for label, source in sources.items():
        if isinstance(source, TOOLS):
            absent[f"ranking by {label}"] = "its tool would take days for all images and texts"
            continue
        forms.append((label, 0, lambda source=source: graded(source, split)))
        if label.endswith(", max"):
            forms += [(label.replace(", max", ", one caption"), n, lambda source=source, n=n:
                       one_caption(source, split, n)) for n in range(captions)]
        elif source.name == "binary":
            forms += [(f"{label}, random ties", n, lambda source=source, n=n:
                       random_ties(graded(source, split), n)) for n in range(captions)]
    records = []
    for label, run, make in forms:
        values = attempt(f"ranking by {label}", absent,
                         lambda make=make: ranking_metrics(make(), truth))
        records += [{"method": label, "run": run, **values}] if values else []
    return pd.DataFrame(records)


# Differences between label sources, with their standard errors

def record(first: str, second: str, metric: str, data: str, images: int, difference: float,
           resampled: Sequence[float] | np.ndarray) -> dict[str, Any]:
    """Make one line of evidence: the labels called first less those called second."""
    return {"arm_a": f"labels({first})", "arm_b": f"labels({second})", "metric": metric,
            "data": data, "images": images, "difference": float(difference),
            "error": float(np.std(resampled, ddof=1))}


def by_judge(judge: Judge, metric: str, scores: Mapping[str, np.ndarray], first: str, second: str,
             resamples: int, seed: int = 0) -> dict[str, Any]:
    """Compare the correlations of two label sources with a judge, all pairs counted.

    Takes scores (N,) of each source, one for each judged pair.
    """
    pairs = np.arange(len(judge))

    def difference(of: np.ndarray) -> float:
        return percent(judge.correlate(scores[first], of) - judge.correlate(scores[second], of))

    resampled = [difference(drawn) for drawn in draws(judge, pairs, resamples, seed)]
    return record(first, second, metric, judge.name, len(np.unique(judge.groups)),
                  difference(pairs), resampled)


def by_rankings(grades: Mapping[str, Grade], truth: ExtendedTruth, image_of_text: np.ndarray,
                data: str, resamples: int, seed: int = 0) -> list[dict[str, Any]]:
    """Compare mAP@R and R-Precision of rankings by two label sources, made by `graded`.

    Gives the difference each way, and by how much that of texts that search is the larger one.
    """
    (first, one), (second, other) = grades.items()
    ours, theirs = ranking_values(one, truth), ranking_values(other, truth)
    gaps, owners = {}, {}
    for way in DIRECTIONS:
        for name, short in METRICS.items():
            queries, values = ours[f"{way}_{name}"]
            gaps[f"eccv_{way}_{short}"] = values - theirs[f"{way}_{name}"][1]
            owners[f"eccv_{way}_{short}"] = queries if way == "i2t" else image_of_text[queries]
    images = np.unique(np.concatenate(list(owners.values())))
    times = times_drawn(len(images), resamples, seed)
    means, exact = {}, {}
    for name, gap in gaps.items():  # each query counts as often as its image is drawn
        owner = np.searchsorted(images, owners[name])
        means[name] = (times @ np.bincount(owner, gap, len(images))) / (
            times @ np.bincount(owner, minlength=len(images)))
        exact[name] = gap.mean()
    for short in METRICS.values():
        texts, photographs = f"eccv_t2i_{short}", f"eccv_i2t_{short}"
        for values in (means, exact):
            values[f"{texts}-{photographs}"] = values[texts] - values[photographs]
    return [record(first, second, name, data, len(images), exact[name], means[name])
            for name in means]


def by_spread(alike: np.ndarray, image: np.ndarray, data: str, resamples: int,
              seed: int = 0) -> list[dict[str, Any]]:
    """Compare the standard deviation of caption similarity within images with bcls's alpha.

    Times 100, in both readings of the rule, as `caption_spread`, whose arguments it takes.
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
    """Count how often each image is drawn, as many in all as there are: (resamples, images)."""
    even = np.full(images, 1 / images)
    return np.random.default_rng(seed).multinomial(images, even, resamples).astype(float)
