"""MR by stable sorts, as published code goes, but for what is not among the first k."""

from math import exp

from tests.oracles.reciprocal import reverse
from tests.oracles.sets import stable_order

HAND = [  # scores, arguments, order of results: of images, of texts
    # image 0: text 0 has share 0.75 / 1.7, text 1 share 0.7 / 1.25, rank 1 and 2, position 2 and 1:
    # e^-1 + 0.441 against e^-2 + 0.56 without p3; with w2 = 1 p2 + p3 are equal, so text 1
    ([[0.5, 0.4], [0.9, 0.1]], {"w2": 0, "decay": 1}, [[0, 1], [0, 1]], [[1, 0], [0, 1]]),
    ([[0.5, 0.4], [0.9, 0.1]], {"w2": 1, "decay": 1}, [[1, 0], [0, 1]], [[1, 0], [0, 1]]),
]


def lists(scores, k, w1, w2, decay, unit):
    """All results of every row, the first k in order of p2 + w1 p1 + w2 p3."""
    mapped = [[(1 + x) / 2 if unit else x for x in row] for row in scores]
    found = []
    for q, row in enumerate(scores):
        order = stable_order(row)
        first = order[:k]
        position = sorted(first, key=lambda c: reverse(scores, c, q))
        value = {}
        for rank, c in enumerate(first, 1):
            total = sum(r[c] for r in mapped)
            share = mapped[q][c] / total if total else 0
            value[c] = (exp(-decay * rank) + w1 * share
                        + w2 * exp(-decay * (1 + position.index(c))))
        found.append(sorted(first, key=lambda c: -value[c]) + order[k:])
    return found


def oracle(scores, k=30, w1=1.0, w2=0.7, decay=0.05, unit=True):
    """(order of the texts of every image, order of the images of every text)."""
    turned = [list(column) for column in zip(*scores, strict=True)]
    return tuple(lists(s, k, w1, w2, decay, unit) for s in (scores, turned))
