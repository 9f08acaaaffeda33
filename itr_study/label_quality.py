"""How good a label source is: its agreement with judges, and what ranking by it alone finds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from itr_study.data.batches import Batch, EncodedSplit
from itr_study.judges import CocoCaptions, Judge, attempt
from itr_study.metrics.eccv import lists, places, sizes
from itr_study.metrics.retrieval_sets import Matches, find
from itr_study.metrics.truth import DIRECTIONS, Positives
from itr_study.pair_relevance import TOOLS
from itr_study.relevance import RELEVANCE

Grade = Callable[[np.ndarray, np.ndarray], np.ndarray]  # images (i,), texts (t,) -> (i, t)
PAIRS = 25_000_000  # pairs of a caption and a text compared at a time: 100 MB
RATED = ("own captions left out", "all pairs")


def label_sources(names: Sequence[str]) -> dict[str, object]:
    """Label sources by names such as "binary" or "sentence/max" (over which captions).

    Example:
        >>> [source.name for source in label_sources(["binary", "cider/mean"]).values()]
        ['binary', 'cider']
    """
    found = {}
    for name in names:
        kind, _, over = name.partition("/")
        if kind not in RELEVANCE:
            raise ValueError(f"unknown label source {kind!r}; there are {', '.join(RELEVANCE)}")
        found[f"{kind}, {over}" if over else kind] = RELEVANCE[kind](**{"over": over} if over
                                                                    else {})
    return found


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
                                100 * judge.correlate(scores, pairs), low, high))
    return pd.DataFrame(records, columns=["judge", "statistic", "source", "rated", "pairs",
                                          "value", "low", "high"])


def interval(judge: Judge, scores: np.ndarray, pairs: np.ndarray, resamples: int,
             seed: int) -> tuple[float, float]:
    """95 % percentile interval, in percent: pairs drawn anew image by image, with replacement."""
    if not resamples:
        return np.nan, np.nan
    order = pairs[np.argsort(judge.groups[pairs], kind="stable")]
    members = np.split(order, np.flatnonzero(np.diff(judge.groups[order])) + 1)
    random, values = np.random.default_rng(seed), []
    for _ in range(resamples):
        drawn = np.concatenate([members[n] for n in random.integers(len(members),
                                                                    size=len(members))])
        values.append(100 * judge.correlate(scores, drawn))
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


@dataclass(frozen=True, eq=False)
class Extended:
    """Ground truth with matches beyond those annotated: lists of every image and every text.

    sizes: R of every image and of every text, 0 where nothing was judged; at least the lengths.
    """

    matches: Matches
    sizes: tuple[np.ndarray, np.ndarray]


def eccv_truth(coco: CocoCaptions) -> Extended:
    """ECCV Caption, by the places of images and captions."""
    rows = places("image", coco.image_ids, len(coco.image_ids))
    columns = places("text", coco.text_ids, len(coco.text_ids))
    eccv = coco.truth.eccv
    return Extended(lists(eccv, rows, columns), (sizes(eccv.i2t, rows), sizes(eccv.t2i, columns)))


def exact_truth(split: EncodedSplit, least: float = 0.999) -> Extended:
    """Every text with every image that it describes without a fault: relevance >= least."""
    fits = split.relevance >= least
    fits[split.image_of_text, np.arange(split.n_texts)] = True
    both = Matches(*(Positives(np.r_[0, np.cumsum(side.sum(axis=1))], np.nonzero(side)[1])
                     for side in (fits, fits.T)))
    return Extended(both, (fits.sum(axis=1), fits.sum(axis=0)))


def graded(source: object, split: EncodedSplit) -> Grade:
    """Relevance of some images and texts as a label source grades it; own captions are 1."""
    def grade(images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        return source(Batch(*map(torch.from_numpy, (images, texts, split.image_of_text[texts]))),
                      split).numpy()
    return grade


def one_caption(source: object, split: EncodedSplit, number: int) -> Grade:
    """An image stands for its caption of this number alone (listwise Eq. 8): only that one is 1."""
    captions = source.captions(split)
    def grade(images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        rows, starts, counts = captions.of(images)
        chosen = rows[starts + np.minimum(number, counts - 1)]
        return source.alike(captions.described[chosen], captions.described[texts])
    return grade


def by_lot(grade: Grade, seed: int, width: float = 1e-3) -> Grade:
    """The same, equal values put into an order drawn by lot."""
    random = np.random.default_rng(seed)
    return lambda images, texts: grade(images, texts) + width * random.random(
        (len(images), len(texts)))


def found_by(grade: Grade, truth: Extended) -> dict[str, float]:
    """What ranking by relevance alone finds: mAP@R, R-Precision and R@1 in percent, both ways.

    Differs: as `find`: ties count against; nothing is truncated.
    """
    n, values = [len(side) for side in truth.matches], {}
    for way, matches, size in zip(DIRECTIONS, truth.matches, truth.sizes, strict=True):
        queries = np.flatnonzero(size)
        images, texts = ((queries, np.arange(n[1])) if way == "i2t" else (np.arange(n[0]),
                                                                          queries))
        step = max(1, PAIRS // (5 * len(texts)))
        scores = np.concatenate([grade(images[a:a + step], texts)
                                 for a in range(0, len(images), step)])
        found = find(scores, part(matches, queries), way, size[queries])
        values |= {f"{way}_map_at_r": 100 * float(found.map_at_r().mean()),
                   f"{way}_r_precision": 100 * float(found.r_precision().mean()),
                   f"{way}_r1": 100 * float(found.recall_at(1).mean())}
    return values


def part(positives: Positives, queries: np.ndarray) -> Positives:
    """The lists of some queries."""
    chosen = [positives[q] for q in queries.tolist()]
    return Positives(np.r_[0, np.cumsum([len(x) for x in chosen])].astype(np.int64),
                     np.concatenate(chosen))


def ranking_table(split: EncodedSplit, truth: Extended, sources: Mapping[str, object],
                  absent: dict[str, str], captions: int = 5) -> pd.DataFrame:
    """Rankings by relevance alone, one per row: method, run, and the metrics of `found_by`.

    Each source as it is; sources over captions also with one caption standing for the image, a
    run for each; binary labels also with their ties drawn by lot. What cannot be had: `absent`.
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
            forms += [(f"{label}, ties by lot", n, lambda source=source, n=n:
                       by_lot(graded(source, split), n)) for n in range(captions)]
    records = []
    for label, run, make in forms:
        values = attempt(f"ranking by {label}", absent, lambda make=make: found_by(make(), truth))
        records += [{"method": label, "run": run, **values}] if values else []
    return pd.DataFrame(records)


def similarities(split: EncodedSplit, source: object, pairs: int = 10_000,
                 seed: int = 0) -> pd.DataFrame:
    """How alike two texts are: some pairs within images, as many between images.

    Returns: score, match (both describe the same image).
    """
    random = np.random.default_rng(seed)
    captions, owner = source.captions(split), split.image_of_text
    several = np.flatnonzero(captions.counts[owner] > 1)
    if not len(several):
        raise ValueError(f"no image of split {split.name!r} has two texts to compare")
    first = random.choice(several, pairs)
    skip = random.integers(1, captions.counts[owner[first]])
    place = np.empty(len(owner), np.int64)
    place[captions.order] = np.arange(len(owner))
    begin = captions.ends[owner[first]] - captions.counts[owner[first]]
    turn = (place[first] - begin + skip) % captions.counts[owner[first]]
    a, b = random.integers(len(owner), size=(2, pairs))
    apart = owner[a] != owner[b]
    one, two = np.r_[first, a[apart]], np.r_[captions.order[begin + turn], b[apart]]
    alike = source.alike_pairs(captions.described[one], captions.described[two])
    return pd.DataFrame({"score": alike, "match": owner[one] == owner[two]})


def rating_shares(judge: str, ratings: np.ndarray, own: np.ndarray, edges: Sequence[float],
                  labels: Sequence[str]) -> pd.DataFrame:
    """Share of each rating among pairs of the same image and among others, in percent.

    Args:    ratings: (N,) or (N, raters), each a rating of its own, NaN where absent; own: (N,);
             edges: of the levels, each up to the next, the last one closed; labels: of the levels.
    Returns: judge, rating, own, share, pairs.
    Example:
        >>> rating_shares("a", np.array([1, 2, 2, 5]), np.zeros(4, bool), [0, 2, 5],
        ...               ["low", "high"])["share"].tolist()
        [25.0, 75.0]
    """
    table = np.asarray(ratings, float).reshape(len(own), -1)
    records = []
    for kind in (kind for kind in (True, False) if (own == kind).any()):
        values = table[own == kind]
        counts = np.histogram(values[~np.isnan(values)], edges)[0]
        if counts.sum() != (~np.isnan(values)).sum():
            raise ValueError(f"{judge}: ratings from {np.nanmin(values):g} to "
                             f"{np.nanmax(values):g} do not lie in {edges[0]:g} to {edges[-1]:g}")
        records += [(judge, label, kind, 100 * count / counts.sum(), int(count))
                    for label, count in zip(labels, counts, strict=True)]
    return pd.DataFrame(records, columns=["judge", "rating", "own", "share", "pairs"])
