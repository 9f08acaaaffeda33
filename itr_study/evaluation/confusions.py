"""Images that are hard to tell apart, and the relevance of wrong results."""

import numpy as np

from itr_study.metrics.scores import AnyScores, Scores


def confusable_pairs(alike: AnyScores, image_of_text: np.ndarray,
                     count: int = 2) -> list[tuple[int, int, float]]:
    """Find the pairs of images whose texts fit each other best, no image twice.

    Takes (I, T), how well each text fits each image (relevance, or scores of a model; of two
    matrices their mean), and image_of_text (T,).

    Returns: (first, second, mean fit of the other's texts over both directions).

    Example: the text of image 1 fits image 0 with 0.9, that of image 0 fits image 1 with 0.7
        >>> table = np.array([[1.0, 0.9, 0.1], [0.7, 1.0, 0.2], [0.0, 0.3, 1.0]])
        >>> [(i, j, round(v, 2)) for i, j, v in confusable_pairs(table, np.array([0, 1, 2]), 1)]
        [(0, 1, 0.8)]
    """
    i2t, t2i = (np.asarray(matrix, dtype=float) for matrix in Scores.of(alike))
    n = len(i2t)
    means = np.zeros((n, n))
    np.add.at(means.T, image_of_text, (i2t + t2i).T / 2)
    means = means / np.bincount(image_of_text, minlength=n)
    both = np.triu(means + means.T, 1) / 2
    both[np.tril_indices(n)] = -np.inf
    pairs = []
    for _ in range(min(count, n // 2)):
        first, second = map(int, np.unravel_index(both.argmax(), both.shape))
        pairs.append((first, second, float(both[first, second])))
        for image in (first, second):
            both[image, :] = both[:, image] = -np.inf
    return pairs


def mistakes(scores: AnyScores, relevance: np.ndarray,
             image_of_text: np.ndarray, top: int = 10) -> dict[str, float]:
    """Compute the mean relevance of the wrong results among the first ones.

    Takes scores (I, T), or `Scores` of each direction, relevance (I, T) and image_of_text (T,).

    Returns: Mean relevance by direction; NaN if nothing among the first is wrong.

    Example: image 0 finds the text of image 1, of relevance 0.8, among its first two
        >>> table = np.array([[0.9, 0.5, 0.1], [0.2, 0.7, 0.1], [0.2, 0.1, 0.9]])
        >>> graded = np.array([[1.0, 0.8, 0.3], [0.8, 1.0, 0.1], [0.3, 0.1, 1.0]])
        >>> round(mistakes(table, graded, np.arange(3), 2)["i2t"], 3)  # 0.8, 0.8, 0.3
        0.633
    """
    i2t, t2i = map(np.asarray, Scores.of(scores))
    relevance = np.asarray(relevance, dtype=float)
    match = np.asarray(image_of_text) == np.arange(len(i2t))[:, None]
    means = {}
    for direction, own, graded, right in (("i2t", i2t, relevance, match),
                                          ("t2i", t2i.T, relevance.T, match.T)):
        first = np.argsort(-own, axis=1, kind="stable")[:, :top]
        wrong = ~np.take_along_axis(right, first, 1)
        values = np.take_along_axis(graded, first, 1)[wrong]
        means[direction] = float(values.mean()) if len(values) else float("nan")
    return means
