"""COCO 1K and 5K, CxC and ECCV Caption from one matrix of scores and the ids of its rows, columns.

The three ground truths judge the same 5,000 images and 25,000 captions of COCO's test set. COCO
knows an image's own five captions; CxC and ECCV Caption found more that people call a match.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from itr_study.metrics.ranks import ranks
from itr_study.metrics.recall import KS, as_slice, check_ks, mean_table, recall_of_ranks
from itr_study.metrics.retrieval_sets import Matches, best_ranks, find
from itr_study.metrics.scores import AnyScores, Scores
from itr_study.metrics.truth import DIRECTIONS, Positives

# Captions that ECCV Caption calls matches of images 575916 and 421999, though they are not of the
# 25,000: they count in R, as in the package, and cannot be found.
ABSENT = frozenset({144675, 467259})
FOLDS = 5
PACKAGE = "eccv_caption"


class Judged(NamedTuple):
    """Ids of the matches of every query: image -> captions, and caption -> images."""

    i2t: Mapping[int, Sequence[int]]
    t2i: Mapping[int, Sequence[int]]


@dataclass(frozen=True, eq=False)
class TruthSets:
    """The ground truths, and all captions in the order that COCO 1K cuts into five folds.

    Raises: ValueError unless in `coco` every caption of `order` has one image, and no other does.
    """

    coco: Judged
    cxc: Judged
    eccv: Judged
    order: np.ndarray

    def __post_init__(self) -> None:
        wrong = [t for t, images in self.coco.t2i.items() if len(images) != 1]
        if wrong:
            raise ValueError(f"in `coco` every caption has one image; {sample(wrong)} have not")
        if sorted(self.coco.t2i) != sorted(np.asarray(self.order).tolist()):
            raise ValueError("`order` must hold each caption of `coco` once; it has "
                             f"{len(self.order)}, `coco` {len(self.coco.t2i)}")


def package_data() -> Path | None:
    """Find the data files of the package `eccv-caption`; None if it is not installed."""
    spec = find_spec(PACKAGE)  # found, not imported: importing warns about optional packages
    return Path(spec.origin).parent / "data" if spec and spec.origin else None


def read_eccv(folder: Path | str | None = None) -> TruthSets:
    """Read the ground truths of the package `eccv-caption` (or of a folder with its data files).

    Raises: ValueError where the package is not installed, or a file is missing.
    Source: Chun et al., ECCV 2022 (ECCV Caption); Parekh et al., EACL 2021 (CxC); COCO's test set
        as Karpathy split it. The package is MIT licensed.
    """
    if folder is None and (folder := package_data()) is None:
        raise ValueError("the ground truth of ECCV Caption comes with the package eccv-caption, "
                         "which is not installed: pip install eccv-caption")
    folder = Path(folder)
    names = {name: [folder / f"{file}_{way}.json" for way in ("image_to_caption",
                                                             "caption_to_image")]
             for name, file in (("coco", "original"), ("cxc", "cxc"), ("eccv", "eccv"))}
    order = folder / "coco_test_ids.npy"
    missing = [str(p) for p in [*chain.from_iterable(names.values()), order] if not p.is_file()]
    if missing:
        raise ValueError(f"ground truth is incomplete, missing {', '.join(missing)}; "
                         "reinstall eccv-caption")
    judged = {name: Judged(*({int(key): [*map(int, items)] for key, items in json.loads(
        path.read_text(encoding="utf-8")).items()} for path in paths))
        for name, paths in names.items()}
    return TruthSets(**judged, order=np.load(order, allow_pickle=False))


class Numbered(NamedTuple):
    """Numbers of images and captions in COCO, and the captions' places (columns of the scores)."""

    images: list[int]
    texts: list[int]
    columns: np.ndarray


def coco_numbers(image_ids: Sequence[str], text_ids: Sequence[str], image_of_text: np.ndarray,
                 truth_sets: TruthSets) -> Numbered | None:
    """Number images and captions as COCO does, for `eccv_table`; None unless all are there.

    Ids of texts are sentence ids, as in Karpathy's JSON, whose sixth and seventh captions of an
    image are left out; of published features they are none, and captions are known by their order,
    which must give each image its own.
    """
    known = truth_sets.coco
    if not all(name.isdecimal() for name in image_ids):
        return None
    images, columns = [int(name) for name in image_ids], np.arange(len(text_ids))
    texts = truth_sets.order.tolist()
    if all(name.isdecimal() for name in text_ids):
        texts = [int(name) for name in text_ids]
        columns = np.array([n for n, text in enumerate(texts) if text in known.t2i], int)
        texts = [texts[n] for n in columns]
    owners = [known.t2i[text][0] for text in texts]
    whole = set(images) == set(known.i2t) and set(texts) == set(known.t2i)
    named = [images[i] for i in image_of_text[columns]]
    return Numbered(images, texts, columns) if whole and owners == named else None


def eccv_table(scores: AnyScores, image_ids: Sequence[int], text_ids: Sequence[int],
               truth_sets: TruthSets | None = None, ks: Sequence[int] = KS,
               absent: Collection[int] = ABSENT) -> dict[str, float]:
    """Compute all metrics of `eccv-caption` from full rankings, as fractions.

    Keys, each after "i2t_" and "t2i_": coco1k_r1, r5, r10 (mean of five folds, each ranked within
    itself), coco5k_r1 ..., cxc_r1 ..., eccv_map_at_r, eccv_r_precision, eccv_r1.

    Args:
        scores: (I, T), higher = more alike, all 5,000 images and 25,000 captions, in any order.
        image_ids: (I,) COCO image numbers of the rows.
        text_ids: (T,) caption ids of the columns.
        truth_sets: as `read_eccv` gives them, which is the default.
        ks: the K of R@K.
        absent: ids of matches that may be missing in the gallery; they count in R.
    Raises: ValueError for NaN, shapes that differ, ids twice, or not both in scores and truth.
    Source: Chun et al., ECCV 2022, and its package.
    Differs: ties count against the model; published scripts cut rankings at 50 or 100 items, which
        makes COCO 1K R@10 too low by up to 1.8 points.
    """
    truth_sets = read_eccv() if truth_sets is None else truth_sets
    check_ks(ks)
    pair = Scores.of(scores)
    n_images, n_texts = pair.shape
    rows, columns = places("image", image_ids, n_images), places("text", text_ids, n_texts)
    check_ids(truth_sets, rows, columns, absent)
    table = coco_1k(pair, rows, columns, truth_sets, ks)
    judged = [lists(truth, rows, columns) for truth in (truth_sets.coco, truth_sets.cxc)]
    for name, best in zip(("coco5k", "cxc"), best_ranks(pair, *judged), strict=True):
        table |= {f"{d}_{name}_r{k}": float((best[d][best[d] > 0] <= k).mean())
                  for d in DIRECTIONS for k in ks}
    r = sizes(truth_sets.eccv.i2t, rows), sizes(truth_sets.eccv.t2i, columns)
    for d, matches, size in zip(DIRECTIONS, lists(truth_sets.eccv, rows, columns), r, strict=True):
        matched = find(pair, matches, d, size)
        table |= {f"{d}_eccv_map_at_r": float(matched.map_at_r().mean()),
                  f"{d}_eccv_r_precision": float(matched.r_precision().mean()),
                  f"{d}_eccv_r1": float(matched.recall_at(1).mean())}
    return table


def coco_1k(scores: Scores, rows: dict[int, int], columns: dict[int, int], truth_sets: TruthSets,
            ks: Sequence[int]) -> dict[str, float]:
    """Average R@K over the five folds of captions with their images, ranked within each fold."""
    tables, seen = [], set[int]()
    for part in np.array_split(truth_sets.order, FOLDS):
        owners = [truth_sets.coco.t2i[t][0] for t in part.tolist()]
        images = sorted(set(owners), key=rows.__getitem__)
        if not seen.isdisjoint(images):
            raise ValueError("`order` tears the captions of an image apart: "
                             f"{sample(seen.intersection(images))} are in two folds")
        seen.update(images)
        place = {image: position for position, image in enumerate(images)}
        fold = scores.cut(as_slice(np.array([rows[i] for i in images])),
                          as_slice(np.array([columns[t] for t in part.tolist()])))
        tables.append(recall_of_ranks(ranks(fold, np.array([place[i] for i in owners])), ks))
    return {name.replace("_r", "_coco1k_r"): value for name, value in mean_table(tables).items()}


def lists(judged: Judged, rows: dict[int, int], columns: dict[int, int]) -> Matches:
    """Turn ids into places: the matching columns of every row, and rows of every column."""
    return Matches(positives(judged.i2t, rows, columns), positives(judged.t2i, columns, rows))


def positives(of: Mapping[int, Sequence[int]], queries: dict[int, int],
              items: dict[int, int]) -> Positives:
    """List the items of each query that are in the gallery, each once, as places."""
    query = np.repeat(np.array([queries[q] for q in of], np.int64), [len(x) for x in of.values()])
    item = np.array([items.get(i, -1) for i in chain.from_iterable(of.values())], np.int64)
    pairs = np.unique((query * len(items) + item)[item >= 0])
    starts = np.searchsorted(pairs, np.arange(len(queries) + 1) * len(items))
    return Positives(starts, pairs % len(items))


def sizes(of: Mapping[int, Sequence[int]], queries: dict[int, int]) -> np.ndarray:
    """Count R of every query, matches outside the gallery included."""
    counts = np.zeros(len(queries), np.int64)
    for query, items in of.items():
        counts[queries[query]] = len(set(items))
    return counts


def places(kind: str, ids: Sequence[int], n: int) -> dict[int, int]:
    """Map each id to its place; raise ValueError unless there are n different ones."""
    place_of = {one: place for place, one in enumerate(np.asarray(ids).tolist())}
    if len(ids) != n or len(place_of) != n:
        raise ValueError(f"{kind}_ids must be {n} different ids, one for each {kind} of the "
                         f"scores; got {len(ids)}, {len(place_of)} of them different")
    return place_of


def check_ids(truth_sets: TruthSets, rows: dict[int, int], columns: dict[int, int],
              absent: Collection[int]) -> None:
    """Raise ValueError naming unjudged ids of the gallery, and judged ids that it lacks."""
    problems = []
    for kind, gallery, known in (("images", rows, truth_sets.coco.i2t),
                                 ("captions", columns, truth_sets.coco.t2i)):
        strange = [i for i in gallery if i not in known]
        if strange:
            problems.append(f"{kind} {sample(strange)} are not in the ground truth")
    for name in ("coco", "cxc", "eccv"):
        judged = vars(truth_sets)[name]
        images, captions = ({*a, *(i for x in b.values() for i in x)}
                            for a, b in (judged, judged[::-1]))
        for kind, ids, gallery in (("images", images, rows), ("captions", captions, columns)):
            lacking = [i for i in ids if i not in gallery and i not in absent]
            if lacking:
                problems.append(f"{kind} {sample(lacking)} of {name} are not in the gallery")
    if problems:
        raise ValueError("; ".join(problems) + ". Scores must cover the whole test set; ids are "
                         "COCO's image numbers and caption ids (eccv-caption: coco_test_ids.npy)")


def sample(ids: Collection[int]) -> str:
    """Write the first few of many ids, and how many there are."""
    first = ", ".join(map(str, sorted(ids)[:5]))
    return first if len(ids) <= 5 else f"{first}, ... ({len(ids)} in all)"
