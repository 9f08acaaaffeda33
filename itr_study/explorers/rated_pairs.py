"""Pairs of an image and a text that were graded from 1 to 4, of a data set; and some of all grades.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from itr_study.checks import check_choice
from itr_study.data import DATASETS
from itr_study.data.base import RetrievalDataset
from itr_study.explorers.heard import quoted
from itr_study.explorers.taus import FEWEST
from itr_study.features.judged import judged_pairs
from itr_study.progress import progress

# What the experts of Flickr8k were to grade, in the words of its readme, made short.
GRADES = {1: "does not describe it at all", 2: "describes small parts of it",
          3: "almost describes it, with small mistakes", 4: "describes it"}
CLASSES = (1 / 3, 2 / 3, 0.999)  # exact relevance from which a pair has grade 2, 3, 4
BEFORE = "those who rated before"  # where nothing else is known of them
DRAWN = 60  # pairs of each class, where all pairs have exact relevance


class RatedPairs(NamedTuple):
    """N pairs: images (ids), texts, ratings (N, raters) from 1 to 4; scores by name (N,); raters'
    names; who they are, in the words of a sentence."""

    images: list[str]
    texts: list[str]
    ratings: np.ndarray
    scores: dict[str, np.ndarray]
    raters: tuple[str, ...]
    judges: str = BEFORE


def rated_pairs(dataset: RetrievalDataset, name: str, others: Mapping[str, np.ndarray],
                seed: int = 0) -> RatedPairs:
    """Pairs of a split that experts graded, or else some of each class of exact relevance; an
    image's own texts are left out.

    Args:    others: scores by name, (I, T) of the split or (N,) of its judged pairs in their order.
    Raises:  ValueError where nobody graded the pairs, for an unknown split, and for scores of
             another shape.
    """
    check_choice("split", name, dataset.splits)
    split = dataset.splits[name]
    judged = judged_pairs(dataset, split).get("expert")
    if judged is not None:
        rows, columns, ratings = judged.images, judged.texts, judged.judgements.ratings
        raters = tuple(f"expert {n + 1}" for n in range(ratings.shape[1]))
        kept = np.flatnonzero(~judged.judgements.own)
    elif dataset.relevance is not None:
        rows, columns, ratings = by_relevance(dataset.relevance(split), split.image_of_text, seed)
        raters, kept = ("exact relevance",), np.arange(len(rows))
    else:
        raise ValueError(f"nobody graded pairs of the {name} split of {dataset.name}, and their "
                         "exact relevance is not known; take the test split of flickr8k, or "
                         "scenes")
    whole = (len(split.image_ids), len(split.texts))
    scores = {}
    for label, given in others.items():
        values = np.asarray(given, float)
        if values.shape == whole:
            values = values[rows, columns]
        elif judged is None or values.shape != rows.shape:
            raise ValueError(f"scores of {label!r} must be {whole}, of all images and texts"
                             + f", or {rows.shape}, of the judged pairs" * (judged is not None)
                             + f"; got {values.shape}")
        scores[label] = values[kept]
    known = DATASETS.get(dataset.name)
    return RatedPairs([split.image_ids[n] for n in rows[kept]],
                      [split.texts[n] for n in columns[kept]], ratings[kept], scores, raters,
                      known.judged_by if known and known.judged_by else BEFORE)


def by_relevance(relevance: np.ndarray, image_of_text: np.ndarray, seed: int
                 ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Some pairs of each class of exact relevance (I, T), no image with its own text: images (N,),
    texts (N,) and grades (N, 1)."""
    random = np.random.default_rng(seed)
    grades = np.ones(relevance.shape, np.uint8)  # not by np.digitize: eight times the memory
    for least in CLASSES:
        grades += relevance >= np.float64(least)  # in float64 whatever the relevance is
    grades[image_of_text, np.arange(len(image_of_text))] = 0
    drawn = []
    for grade in progress(GRADES, "looking for pairs of each grade"):
        places = np.flatnonzero(grades == grade)
        drawn.append(random.choice(places, min(DRAWN, len(places)), replace=False))
    rows, columns = np.unravel_index(np.concatenate(drawn), relevance.shape)
    return rows, columns, grades[rows, columns].astype(float)[:, None]


def spread(ratings: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Which pairs are rated: as many of each grade as can be, in an order that tells nothing.

    Args:    ratings: (N, raters) from 1 to 4; a pair's grade is the median.
    Returns: (min(count, N),) places of pairs.

    Example: each grade is among the four, the rare ones too
        >>> ratings = np.array([[1], [1], [4], [1], [1], [2], [3], [2]])
        >>> sorted(ratings[spread(ratings, 4, seed=0)].ravel().tolist())
        [1, 2, 3, 4]
    """
    random = np.random.default_rng(seed)
    grade = np.floor(np.nanmedian(ratings, axis=1) + 0.5)  # of two, the upper one
    order = random.permutation(len(grade))
    turn = np.empty(len(grade), int)  # the how-manieth of its grade each pair is
    for level in GRADES:
        own = order[grade[order] == level]
        turn[own] = np.arange(len(own))
    taken = order[np.argsort(turn[order], kind="stable")][:count]
    return random.permutation(taken)


def check_pairs(images: int, texts: int, ratings: np.ndarray,
                scores: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError unless all are of the same pairs, each with a grade."""
    if ratings.ndim != 2 or len({images, texts, len(ratings)}) != 1 or texts < FEWEST:
        raise ValueError(f"images, texts and ratings (pairs, raters) must be of the same pairs, at "
                         f"least {FEWEST}; got {images}, {texts} and {ratings.shape}")
    grades = ratings[~np.isnan(ratings)]
    if np.isnan(ratings).all(axis=1).any() or not np.isin(grades, list(GRADES)).all():
        raise ValueError("ratings must be 1, 2, 3 or 4, at least one for each pair, and NaN where "
                         "a rater gave none")
    if not isinstance(scores, Mapping):
        raise ValueError(f"scores must map a name to {texts} numbers, got {quoted(scores)}")
    for name, values in scores.items():
        values = np.asarray(values, float)
        if values.shape != (texts,) or not np.isfinite(values).all():
            raise ValueError(f"scores of {name!r} must be {texts} finite numbers, one for each "
                             f"pair; got shape {values.shape}")
