"""Recall at K as the field uses it, with its table and its folds.

R@K is the share of queries whose *best* match is among the first K results. For an image with
five texts that is "at least one of them was found", elsewhere called success at K: if one of five
stands first and four stand last, R@1 of that image is 1, not 1/5.
"""

from collections.abc import Iterator

import numpy as np
from torch import Tensor

from itr_study.checks import check_number
from itr_study.metrics.ranks import Ranks, ranks
from itr_study.metrics.truth import DIRECTIONS, Truth, check_image_of_text

KS = (1, 5, 10)


def recall(scores: np.ndarray | Tensor, truth: Truth, ks: tuple[int, ...] = KS) -> dict[str, float]:
    """R@K in both directions as fractions: "i2t_r1", ..., "t2i_r10".

    Args:
        scores: (I, T), higher = more alike; truth: which text matches which image.
        ks: how many results are looked at, each >= 1.
    Raises: as `ranks`; ValueError for k < 1.
    Source: Hodosh et al., JAIR 2013, as used by all four papers.
    Differs: ties count against the model (see `ranks`).
    Example: image 0 finds text 0 second, image 1 finds text 1 first; texts likewise
        >>> recall(np.array([[0.3, 0.4], [0.2, 0.5]]), Truth(np.array([0, 1])), ks=(1,))
        {'i2t_r1': 0.5, 't2i_r1': 1.0}
    """
    for k in ks:
        check_number("k", k, least=1)
    found = ranks(scores, truth.image_of_text)
    return {f"{d}_r{k}": float((by_direction(found, d) <= k).mean())
            for d in DIRECTIONS for k in ks}


def retrieval_table(found: Ranks) -> dict[str, float]:
    """The row papers print: R@1, R@5, R@10 in percent, median and mean rank, RSUM.

    Keys: i2t_r1, i2t_r5, i2t_r10, i2t_medr, i2t_meanr, the same with t2i, and rsum, the sum of
    the six percentages (at most 600).

    Source: all four papers; RSUM as in listwise and bcls.
    Differs: the median of an even number of ranks may end in .5, where published code rounds down.
    Example:
        >>> table = retrieval_table(Ranks(i2t=np.array([1, 2]), t2i=np.array([1, 7, 30, 1])))
        >>> table["i2t_r1"], table["t2i_r5"], table["t2i_medr"], table["rsum"]
        (50.0, 50.0, 4.0, 425.0)
    """
    table = {}
    for direction in DIRECTIONS:
        each = by_direction(found, direction)
        table |= {f"{direction}_r{k}": float(100 * (each <= k).mean()) for k in KS}
        table[f"{direction}_medr"] = float(np.median(each))
        table[f"{direction}_meanr"] = float(each.mean())
    table["rsum"] = sum(table[f"{d}_r{k}"] for d in DIRECTIONS for k in KS)
    return table


def folds(image_of_text: np.ndarray, n_images: int,
          n: int = 5) -> Iterator[tuple[slice, np.ndarray | slice, np.ndarray]]:
    """Cut a test set into n parts of equally many images, in order, each with its texts.

    Yields (images, texts, image_of_text within the fold): slices where possible, so that
    scores[images][:, texts] copies nothing.
    Raises: ValueError where n does not divide the number of images.
    """
    owner = check_image_of_text(image_of_text, n_images)
    if n < 1 or n_images % n:
        raise ValueError(f"{n_images} images cannot be cut into {n} folds of equal size; "
                         "take a number of folds that divides it")
    size = n_images // n
    for start in range(0, n_images, size):
        texts = np.flatnonzero((owner >= start) & (owner < start + size))
        local = owner[texts] - start
        if texts[-1] - texts[0] + 1 == len(texts):
            texts = slice(int(texts[0]), int(texts[-1]) + 1)
        yield slice(start, start + size), texts, local


def five_fold(scores: np.ndarray | Tensor, image_of_text: np.ndarray,
              n: int = 5) -> dict[str, float]:
    """Mean of the retrieval tables of n folds: the "1K" protocol of a 5,000-image test set.

    Args:
        scores: (I, T); image_of_text: (T,); n: number of folds, a divisor of I.
    Raises: as `ranks` and `folds`.
    Source: the 1K protocol of listwise, bcls and dvse.
    Differs: any number of texts per image; every key is averaged on its own, RSUM too.
    """
    tables = [retrieval_table(ranks(scores[images][:, texts], local))
              for images, texts, local in folds(image_of_text, len(scores), n)]
    return {key: float(np.mean([table[key] for table in tables])) for key in tables[0]}


def by_direction(found: Ranks, direction: str) -> np.ndarray:
    """The ranks of one direction."""
    return {"i2t": found.i2t, "t2i": found.t2i}[direction]
