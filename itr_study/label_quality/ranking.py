"""Rankings by a label source alone, without any model: how good are they?"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from itr_study.data.batches import Batch, EncodedSplit
from itr_study.evaluation.percent import percent
from itr_study.label_quality.coco import CocoCaptions, attempt
from itr_study.label_quality.pairs import TOOLS
from itr_study.metrics.eccv import lists, places, sizes
from itr_study.metrics.retrieval_sets import Matches, find
from itr_study.metrics.truth import DIRECTIONS, Positives

Grade = Callable[[np.ndarray, np.ndarray], np.ndarray]  # images (i,), texts (t,) -> (i, t)
PAIRS = 25_000_000  # pairs of a caption and a text compared at a time: 100 MB


@dataclass(frozen=True, eq=False)
class ExtendedTruth:
    """Ground truth with matches beyond those annotated: lists of every image and every text.

    sizes: R of every image and of every text, 0 where nothing was judged; at least the lengths.
    """

    matches: Matches
    sizes: tuple[np.ndarray, np.ndarray]


def eccv_truth(coco: CocoCaptions) -> ExtendedTruth:
    """ECCV Caption, by the places of images and captions."""
    rows = places("image", coco.image_ids, len(coco.image_ids))
    columns = places("text", coco.text_ids, len(coco.text_ids))
    eccv = coco.truth.eccv
    return ExtendedTruth(lists(eccv, rows, columns),
                         (sizes(eccv.i2t, rows), sizes(eccv.t2i, columns)))


def exact_truth(split: EncodedSplit, least: float = 0.999) -> ExtendedTruth:
    """Every text with every image that it describes without a fault: relevance >= least."""
    fits = split.relevance >= least
    fits[split.image_of_text, np.arange(split.n_texts)] = True
    both = Matches(*(Positives(np.r_[0, np.cumsum(side.sum(axis=1))], np.nonzero(side)[1])
                     for side in (fits, fits.T)))
    return ExtendedTruth(both, (fits.sum(axis=1), fits.sum(axis=0)))


def graded(source: object, split: EncodedSplit) -> Grade:
    """A label source as a function of images and texts; captions of the image itself get 1."""
    def grade(images: np.ndarray, texts: np.ndarray) -> np.ndarray:
        return source(Batch(*map(torch.from_numpy, (images, texts, split.image_of_text[texts]))),
                      split).numpy()
    return grade


def one_caption(source: object, split: EncodedSplit, number: int) -> Grade:
    """The same with one caption standing for its image (listwise Eq. 8): only that one gets 1.

    Args:    number: which caption of each image, the last one where an image has fewer.
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
    """mAP@R, R-Precision and R@1 of every judged query, both ways: name -> (queries (Q,): which
    images or texts, values (Q,) in percent).

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
        matched = find(scores, part(matches, queries), way, size[queries])
        values |= {f"{way}_map_at_r": (queries, percent(matched.map_at_r())),
                   f"{way}_r_precision": (queries, percent(matched.r_precision())),
                   f"{way}_r1": (queries, percent(matched.recall_at(1)))}
    return values


def ranking_metrics(grade: Grade, truth: ExtendedTruth) -> dict[str, float]:
    """The means of `ranking_values`, by name."""
    return {name: float(values.mean())
            for name, (_, values) in ranking_values(grade, truth).items()}


def part(positives: Positives, queries: np.ndarray) -> Positives:
    """The lists of some queries."""
    chosen = [positives[q] for q in queries.tolist()]
    return Positives(np.r_[0, np.cumsum([len(x) for x in chosen])].astype(np.int64),
                     np.concatenate(chosen))


def ranking_table(split: EncodedSplit, truth: ExtendedTruth, sources: Mapping[str, object],
                  absent: dict[str, str], captions: int = 5) -> pd.DataFrame:
    """Rankings by relevance alone, one per row: method, run, and the metrics of `ranking_metrics`.

    Each source as it is; sources over captions also with one caption standing for the image, a
    run for each; binary labels also with random ties. `absent` takes what cannot be had, with the
    reason.
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
