"""Which images are hardest to tell apart, and how wrong the wrong results are."""

import numpy as np


def confusable_pairs(alike: np.ndarray, image_of_text: np.ndarray,
                     count: int = 2) -> list[tuple[int, int, float]]:
    """The images whose texts fit each other best, no image twice.

    Args:    alike: (I, T), how well each text fits each image (relevance, or scores of a model);
             image_of_text: (T,).
    Returns: (first, second, mean over both directions of how well the other's texts fit).
    Example: the text of image 1 fits image 0 with 0.9, that of image 0 fits image 1 with 0.7
        >>> table = np.array([[1.0, 0.9, 0.1], [0.7, 1.0, 0.2], [0.0, 0.3, 1.0]])
        >>> [(i, j, round(v, 2)) for i, j, v in confusable_pairs(table, np.array([0, 1, 2]), 1)]
        [(0, 1, 0.8)]
    """
    texts = np.bincount(image_of_text, minlength=len(alike))
    means = np.zeros((len(alike), len(alike)))
    np.add.at(means.T, image_of_text, np.asarray(alike, dtype=float).T)
    means = means / texts
    both = np.triu(means + means.T, 1) / 2
    both[np.tril_indices(len(alike))] = -np.inf
    found = []
    for _ in range(min(count, len(alike) // 2)):
        first, second = map(int, np.unravel_index(both.argmax(), both.shape))
        found.append((first, second, float(both[first, second])))
        for image in (first, second):
            both[image, :] = both[:, image] = -np.inf
    return found


def mistakes(scores: np.ndarray, relevance: np.ndarray, image_of_text: np.ndarray,
             top: int = 10) -> dict[str, float]:
    """How relevant are the wrong results among the first ones, on average over all of them?

    Args:    scores, relevance: (I, T); image_of_text: (T,); top: results of each query.
    Returns: mean relevance by direction; NaN where nothing among the first is wrong.
    Example: image 0 finds the text of image 1, of relevance 0.8, among its first two
        >>> table = np.array([[0.9, 0.5, 0.1], [0.2, 0.7, 0.1], [0.2, 0.1, 0.9]])
        >>> graded = np.array([[1.0, 0.8, 0.3], [0.8, 1.0, 0.1], [0.3, 0.1, 1.0]])
        >>> round(mistakes(table, graded, np.arange(3), 2)["i2t"], 3)  # 0.8, 0.8, 0.3
        0.633
    """
    match = np.asarray(image_of_text) == np.arange(len(scores))[:, None]
    found = {}
    tables = scores, np.asarray(relevance, dtype=float), match
    for way, (s, r, m) in (("i2t", tables), ("t2i", [table.T for table in tables])):
        first = np.argsort(-s, axis=1, kind="stable")[:, :top]
        wrong = ~np.take_along_axis(m, first, 1)
        values = np.take_along_axis(r, first, 1)[wrong]
        found[way] = float(values.mean()) if len(values) else float("nan")
    return found
