"""R@1 and R-Precision where an image matches all texts of its class: CUB's species of birds.

A sentence about one bird suits every bird of its species, so image id, by which losses decide what
a match is, would count many a good answer as wrong.
"""

from collections.abc import Iterator

import numpy as np
from torch import Tensor

from itr_study.metrics.graded import on_host
from itr_study.metrics.ranks import refuse_nan
from itr_study.metrics.retrieval_sets import MatchRanks, find
from itr_study.metrics.scores import AnyScores, Scores
from itr_study.metrics.truth import DIRECTIONS, Positives, Truth

PAIRS = 100_000  # scores looked at together: with what is made of them 5 MB
CLASS_METRICS = tuple(f"{direction}_class_{name}" for direction in DIRECTIONS
                      for name in ("r1", "rp"))


def class_based(scores: AnyScores, truth: Truth, image_classes: np.ndarray) -> dict[str, float]:
    """R@1 and R-Precision by class: "i2t_class_r1", "i2t_class_rp", "t2i_class_r1", "t2i_class_rp".

    R@1: share of queries whose first result is of their class; R-Precision: share of their class
    among the first R results, R how many texts (images) of it there are, its own among them.

    Args:
        scores: (I, T), higher = more alike, or `Scores` of each direction.
        truth: which image each text describes; its class is that of this image.
        image_classes: (I,) int, equal for images of one class; numbers may be left out.
    Raises: ValueError for NaN, for scores that are not (I, T), for other classes.
    Source: dvse, Table III; Chun et al., CVPR 2021 (PCME).
    Differs: ties count against the model, published code breaks them by position.
    Example: image 0 finds the text of image 1, a bird of its species; text 1 finds image 2 first
        >>> scores = np.array([[0.2, 0.9, 0.1], [0.3, 0.4, 0.1], [0.1, 0.95, 0.8]])
        >>> class_based(scores, Truth(np.arange(3)), np.array([0, 0, 1]))["i2t_class_rp"]
        0.6666666666666666
    """
    scores = Scores.of(scores)
    classes = check_classes(image_classes, truth.n_images)
    if scores.shape != (truth.n_images, truth.n_texts):
        raise ValueError(f"scores must be (n_images, n_texts) = {(truth.n_images, truth.n_texts)}; "
                         f"got {scores.shape}")
    of = {"i2t": (classes, classes[truth.image_of_text])}
    of["t2i"] = of["i2t"][::-1]
    table = {}
    for direction in DIRECTIONS:
        each = [(found.recall_at(1), found.r_precision())
                for found in blocks(scores, direction, *of[direction])]
        for name, values in zip(("r1", "rp"), zip(*each, strict=True), strict=True):
            table[f"{direction}_class_{name}"] = float(np.concatenate(values).mean())
    return table


def blocks(scores: Scores, direction: str, asking: np.ndarray,
           candidates: np.ndarray) -> Iterator[MatchRanks]:
    """Where the matches of some queries after others stand.

    Args:    asking: (Q,) class of each query; candidates: (n,) of each result, 0, 1, ... both.
    """
    starts = np.searchsorted(np.sort(candidates), np.arange(candidates.max() + 2))
    of_class = Positives(starts, np.argsort(candidates, kind="stable"))
    for queries, rows in scores.blocks(direction, max(1, PAIRS // len(candidates))):
        rows = on_host(rows)
        if np.isnan(rows.max()):
            first = queries.start
            refuse_nan(*{"i2t": (rows, first), "t2i": (rows.T, 0, first)}[direction])
        yield find(rows, of_class.take(asking[queries]), "i2t")


def check_classes(image_classes: np.ndarray | Tensor, n_images: int) -> np.ndarray:
    """(I,) the classes as 0, 1, ...; ValueError unless there is a whole number for each image."""
    classes = np.asarray(image_classes)
    if classes.shape != (n_images,) or classes.dtype.kind not in "iu":
        raise ValueError(f"image_classes must be a whole number, its class, for each of {n_images} "
                         f"images; got shape {classes.shape} of {classes.dtype}")
    return np.unique(classes, return_inverse=True)[1]
