"""Kendall's tau by comparing every item of a list with every other."""

from math import sqrt

import numpy as np

HAND = [  # scores, image_of_text, arguments, value worked by hand
    # image 0 prefers the wrong text (-1), image 1 the right one (+1); both texts are right
    ([[0.3, 0.4], [0.2, 0.5]], [0, 1], {}, {"i2t_tau": 0.0, "t2i_tau": 1.0}),
    # three images and texts, a perfect match each: 2 pairs right, 1 of 3 ties in relevance
    ([[3, 2, 1], [1, 3, 2], [2, 1, 3]], [0, 1, 2], {"kind": "a"},
     {"i2t_tau": 2 / 3, "t2i_tau": 2 / 3}),
    ([[3, 2, 1], [1, 3, 2], [2, 1, 3]], [0, 1, 2], {"kind": "b"},
     {"i2t_tau": 2 / sqrt(6), "t2i_tau": 2 / sqrt(6)}),
    ([[3, 2, 1], [1, 3, 2], [2, 1, 3]], [0, 1, 2], {"kind": "c"},
     {"i2t_tau": 2 / (9 / 2 / 2), "t2i_tau": 2 / (9 / 2 / 2)}),
    # constant scores order nothing
    ([[0.5] * 2] * 2, [0, 1], {}, {"i2t_tau": 0.0, "t2i_tau": 0.0}),
    # one text for each of two images, and one image only: nothing to order
    ([[0.5]], [0], {"kind": "a"}, {"i2t_tau": 0.0, "t2i_tau": 0.0}),
]


def query_tau(scores, relevance, kind="b"):
    """Tau of one list."""
    n = len(scores)
    a, b = (np.sign(np.subtract.outer(x, x)) for x in (scores, relevance))  # pairs (j, k)
    excess, scores_differ, relevance_differs = (x.sum() / 2 for x in (a * b, a != 0, b != 0))
    fewest = min(len(set(scores)), len(set(relevance)))
    most = {"a": n * (n - 1) / 2, "b": sqrt(scores_differ * relevance_differs),
            "c": n * n * (fewest - 1) / fewest / 2}[kind]
    return excess / most if most else 0.0


def graded_oracle(scores, relevance, **arguments):
    """Values of all images, and of all texts from the transposes, as two lists."""
    columns = list(zip(*scores, strict=True)), list(zip(*relevance, strict=True))
    return tuple([query_tau(s, r, **arguments) for s, r in zip(*rows, strict=True)]
                 for rows in ((scores, relevance), columns))


def oracle(scores, image_of_text, **arguments):
    relevance = [[float(owner == i) for owner in image_of_text] for i in range(len(scores))]
    found = graded_oracle(scores, relevance, **arguments)
    return {f"{d}_tau": sum(x) / len(x) for d, x in zip(("i2t", "t2i"), found, strict=True)}
