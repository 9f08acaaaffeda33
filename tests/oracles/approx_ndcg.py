from math import log, log2

from tests.oracles.loops import directions
from tests.oracles.smooth_ndcg import list_ndcg

SILENT = {"no match"}
PULLS = False
HAND = [  # arguments, scores, relevance, value worked by hand
    (dict(), [[0.5, 0.5]], [[1, 0]], -1 / log2(2.5) - (1 + 0) / 2),
    (dict(), [[0.5], [0.5]], [[1], [0]], -1 / log2(2.5) - (1 + 0) / 2),
    (dict(alpha=1), [[0.0, log(3)], [log(3), 0.0]], [[1, 0], [0, 1]], -2 / log2(2.75)),
    (dict(alpha=2), [[0.0, log(3) / 2], [log(3) / 2, 0.0]], [[1, 0], [0, 1]], -2 / log2(2.75)),
    (dict(), [[0.5, 0.5]], [[1, 1]], -(2 / log2(2.5)) / (1 + 1 / log2(3)) - 1),
    (dict(), [[0.4, 0.6]], [[0, 0]], 0.0),  # nothing to find
]


def oracle(scores, relevance, alpha=10.0):
    total = 0.0
    for lists, labels in directions(scores, relevance):
        found = [list_ndcg(s, r, 1 / alpha) for s, r in zip(lists, labels, strict=True)]
        total -= sum(value for value in found if value is not None) / len(found)
    return total
