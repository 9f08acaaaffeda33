"""Captions of one image: how much they differ (bcls chooses alpha by it), how pairs are rated."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from itr_study.data.base import RetrievalDataset, find_root
from itr_study.data.batches import EncodedSplit
from itr_study.data.precomputed import read_captions
from itr_study.encoders import TEXT_ENCODERS
from itr_study.evaluation.table import percent
from itr_study.features.texts import caption_vectors
from itr_study.lab.label_quality.judges import COCO, attempt, caption_split

FLICKR30K = ("Put test_caps.txt and test_ids.txt (the captions of Flickr30k's 1,000 test images "
             "and their images) into flickr30k/.")
# Folders whose test captions are enough for the rule: a file by which they are known, the remedy.
TEST_CAPTIONS = {"coco5k": ("testall_caps.txt", COCO), "flickr30k": ("test_caps.txt", FLICKR30K)}
VECTORS = "minilm"


def spread_table(dataset: RetrievalDataset, root: Path | str | None,
                 absent: dict[str, str]) -> pd.DataFrame:
    """Tabulate `caption_spread` of the sets of `alike_within`, by "data"."""
    return pd.DataFrame([{"data": name} | caption_spread(*pairs) for name, pairs
                         in alike_within(dataset, root, absent).items()])


def alike_within(dataset: RetrievalDataset, root: Path | str | None, absent: dict[str, str]
                 ) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Compare every pair of captions of an image: similarity (N,) and that image (N,), by set.

    Sets are the test captions of a data set and, for real data, all others at hand; `absent` takes
    those that cannot be had, with the reason.
    """
    sets = {dataset.name: lambda: own_vectors(dataset, absent)}
    if root is not None:
        sets |= {name: lambda name=name: vectors_of(name, root) for name in TEST_CAPTIONS
                 if name != dataset.name}
    alike = {}
    for name, read in sets.items():
        if captions := attempt(f"captions of {name}", absent, read):
            vectors, owner = captions
            one, two = pairs_within(owner)
            if not len(one):
                absent[f"pairs of captions of {name}"] = "one text an image"
                continue
            alike[name] = (vectors[one] * vectors[two]).sum(axis=1), owner[one]
    return alike


def own_vectors(dataset: RetrievalDataset, absent: dict[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """Encode the test captions of a data set to unit vectors; return also the image of each."""
    split = caption_split(dataset, (VECTORS,), absent)
    if VECTORS not in split.label_vectors:
        raise ValueError("no sentence vectors; the reason is that of "
                         f"'{VECTORS} of {dataset.name}'")
    return np.asarray(split.label_vectors[VECTORS], np.float32), split.image_of_text


def vectors_of(name: str, root: Path | str) -> tuple[np.ndarray, np.ndarray]:
    """Encode as `own_vectors` those of a set of which only the test captions are there."""
    mark, obtain = TEST_CAPTIONS[name]
    test = read_captions(find_root(root, name, marks=(mark,), obtain=obtain), "test")
    vectors = caption_vectors(test.texts, TEXT_ENCODERS[VECTORS](), f"{name}-test")
    return np.asarray(vectors, np.float32), test.image_of_text


def pairs_within(owner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """List every pair of texts of the same image: rows of the one, rows of the other.

    Example:
        >>> [rows.tolist() for rows in pairs_within(np.array([0, 1, 0, 0]))]
        [[0, 0, 2], [2, 3, 3]]
    """
    order = np.argsort(owner, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(owner[order])) + 1)
    pairs = [pair for group in groups for pair in combinations(group.tolist(), 2)]
    one, two = np.array(pairs, np.int64).reshape(-1, 2).T
    return one, two


def caption_spread(alike: np.ndarray, image: np.ndarray) -> dict[str, float]:
    """Standard deviation of caption similarity within images, in both readings of the rule.

    Args: alike: (N,) similarity of each pair; image: (N,) the image whose captions they are.
    Returns: mean; pooled (over all pairs at once); per_image (the mean of one deviation per
        image); images, pairs. Deviations divide by n, as of a population.
    Source: bcls, Sec. III: alpha is the "standard deviation of text similarity", some 0.2.
    Example: image 0 has pairs 0.2 and 0.6, image 1 two of 0.9: 0.2 and 0 within, 0.287 pooled
        >>> spread = caption_spread(np.array([0.2, 0.6, 0.9, 0.9]), np.array([0, 0, 1, 1]))
        >>> round(spread["pooled"], 4), round(spread["per_image"], 4)
        (0.2872, 0.1)
    """
    if not len(alike):
        raise ValueError("no image has two captions to compare")
    grouped = pd.Series(np.asarray(alike, dtype=float)).groupby(np.asarray(image))
    return {"mean": float(np.mean(alike)), "pooled": float(np.std(alike)),
            "per_image": float(grouped.std(ddof=0).mean()), "images": grouped.ngroups,
            "pairs": len(alike)}


def similarities(split: EncodedSplit, source: object, pairs: int = 10_000,
                 seed: int = 0) -> pd.DataFrame:
    """Compare random pairs of texts of the same image, and as many of any two images.

    Takes a label source that compares texts. Returns score, match (both describe the same image).
    """
    random = np.random.default_rng(seed)
    captions, owner = source.captions(split), split.image_of_text
    with_siblings = np.flatnonzero(captions.counts[owner] > 1)
    if not len(with_siblings):
        raise ValueError(f"no image of split {split.name!r} has two texts to compare")
    first = random.choice(with_siblings, pairs)
    sibling = captions.sibling(first, random.integers(1, captions.counts[owner[first]]))
    a, b = random.integers(len(owner), size=(2, pairs))
    apart = owner[a] != owner[b]
    one, two = np.r_[first, a[apart]], np.r_[sibling, b[apart]]
    alike = source.alike_pairs(captions.vectors[one], captions.vectors[two])
    return pd.DataFrame({"score": alike, "match": owner[one] == owner[two]})


def rating_shares(judge: str, ratings: np.ndarray, own: np.ndarray, edges: Sequence[float],
                  labels: Sequence[str]) -> pd.DataFrame:
    """Share of each rating among pairs of the same image and among others, in percent.

    Args: judge: a name for the table; ratings: (N,) or (N, raters), each a rating of its own, NaN
        where absent; own: (N,) bool, pairs of the same image; edges: of the levels, each up to the
        next, the last one closed; labels: of the levels.
    Returns: judge, rating, own, share, pairs.
    Example: one rating of four is below 2
        >>> rating_shares("a", np.array([1, 2, 2, 5]), np.zeros(4, bool), [0, 2, 5],
        ...               ["low", "high"])["share"].tolist()
        [25.0, 75.0]
    """
    table = np.asarray(ratings, float).reshape(len(own), -1)
    records = []
    for kind in np.unique(own)[::-1].tolist():
        values = table[own == kind]
        counts = np.histogram(values[~np.isnan(values)], edges)[0]
        if counts.sum() != (~np.isnan(values)).sum():
            raise ValueError(f"{judge}: ratings from {np.nanmin(values):g} to "
                             f"{np.nanmax(values):g} do not lie in {edges[0]:g} to {edges[-1]:g}")
        records += [(judge, label, kind, percent(count, counts.sum()), int(count))
                    for label, count in zip(labels, counts, strict=True)]
    return pd.DataFrame(records, columns=["judge", "rating", "own", "share", "pairs"])
