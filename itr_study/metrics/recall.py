"""Recall at K as the field uses it, over a whole test set and over its folds.

R@K is the share of queries whose *best* match is among the first K results, also called success at
K: if one of five texts has rank 1 and four the last ranks, R@1 of their image is 1, not 1/5.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from itr_study.checks import check_count, check_numbers
from itr_study.metrics.graded import of_truth
from itr_study.metrics.ranks import Ranks, ranks
from itr_study.metrics.scores import AnyScores, Scores
from itr_study.metrics.truth import DIRECTIONS, Truth, check_image_of_text

KS = (1, 5, 10)


def recall(scores: AnyScores, truth: Truth, ks: Sequence[int] = KS) -> dict[str, float]:
    """R@K in both directions as fractions: "i2t_r1", ..., "t2i_r10".

    Args:
        scores: (I, T), higher = more alike.
        truth: which text matches which image.
        ks: how many results are looked at, each >= 1.
    Raises: as `ranks`; ValueError for k < 1.
    Source: Hodosh et al., JAIR 2013, as used by all four papers.
    Differs: ties count against the model (see `ranks`).
    Example: image 0 finds text 0 second, image 1 finds text 1 first; texts likewise
        >>> recall(np.array([[0.3, 0.4], [0.2, 0.5]]), Truth(np.array([0, 1])), ks=(1,))
        {'i2t_r1': 0.5, 't2i_r1': 1.0}
    """
    return recall_of_ranks(ranks(of_truth(scores, truth), truth.image_of_text), ks)


def recall_of_ranks(best: Ranks, ks: Sequence[int] = KS) -> dict[str, float]:
    """Compute `recall` from the ranks of the best matches."""
    check_ks(ks)
    for direction in DIRECTIONS:
        each = np.asanyarray(best.by_direction(direction))
        check_numbers(each, "ranks")
        if each.ndim != 1 or not each.size or not each.min() >= 1:  # NaN is not
            found = f"from {each.min()}" if each.size else "none"
            raise ValueError(f"ranks must be one for each query, from 1 on; those of {direction} "
                             f"are {each.shape}, {found}")
    return {f"{d}_r{k}": float((best.by_direction(d) <= k).mean()) for d in DIRECTIONS for k in ks}


def check_ks(ks: Sequence[int]) -> None:
    """Raise ValueError unless there is a K, and each is a whole number of at least 1."""
    if not len(ks):
        raise ValueError("ks is empty, so that nothing is measured; name one, such as ks=[1]")
    for k in ks:
        check_count("k", k)


def folds(image_of_text: np.ndarray, n_images: int,
          n: int = 5) -> Iterator[tuple[slice, np.ndarray | slice, np.ndarray]]:
    """Cut a test set into n parts of images, in order, each with its texts; sizes differ by 1.

    Yields images, texts, and image_of_text within the fold; texts in a row as a slice, so that
    cutting scores copies nothing. Raises ValueError for fewer images than folds.
    """
    owner = check_image_of_text(image_of_text, n_images)
    check_count("n", n)
    if n > n_images:
        raise ValueError(f"{n_images} images cannot be cut into {n} folds; take 1 to {n_images}")
    for part in np.array_split(np.arange(n_images), n):
        images = slice(int(part[0]), int(part[-1]) + 1)
        texts = np.flatnonzero((owner >= images.start) & (owner < images.stop))
        yield images, as_slice(texts), owner[texts] - images.start


def as_slice(indices: np.ndarray) -> slice | np.ndarray:
    """Turn consecutive indices into a slice, which copies nothing."""
    first, count = int(indices[0]), len(indices)
    consecutive = (indices == np.arange(first, first + count)).all()
    return slice(first, first + count) if consecutive else indices


def five_fold(scores: AnyScores, image_of_text: np.ndarray, n: int = 5, ks: Sequence[int] = KS,
              rerank: Callable[[Scores], Scores] | None = None) -> dict[str, float]:
    """Mean recall of n folds, each ranked within itself: the "1K" protocol of 5,000 test images.

    Args:
        scores: (I, T), higher = more alike.
        image_of_text: (T,) int.
        n: number of folds.
        ks: as in `recall`.
        rerank: how the scores of each fold are re-ranked within it, one of RERANKERS; None: not.
    Returns: the keys of `recall`, fractions.
    Raises: as `ranks` and `folds`.
    Source: the 1K protocol of listwise, bcls and dvse.
    Differs: any number of texts per image; where n does not divide the number of images, the
        first folds have one more.
    """
    pair = Scores.of(scores)
    tables = []
    for images, texts, local in folds(image_of_text, pair.shape[0], n):
        fold = pair.cut(images, texts)
        tables.append(recall_of_ranks(ranks(rerank(fold) if rerank else fold, local), ks))
    return mean_table(tables)


def mean_table(tables: list[dict[str, float]]) -> dict[str, float]:
    """Average tables of the same keys."""
    return {key: float(np.mean([table[key] for table in tables])) for key in tables[0]}
