from tests.oracles.loops import directions
from tests.oracles.triplet_hardest import oracle as triplet

HAND = [  # arguments, scores, relevance, value worked by hand
    (dict(), [[0.9, 0.2, 0.5]], [[1, 0.7, 0.3]], 0.25 * (0.01 + 0.5 - 0.2)),
    (dict(), [[0.9], [0.2], [0.5]], [[1], [0.7], [0.3]], 0.25 * (0.01 + 0.5 - 0.2)),
    (dict(thresholds=(0.8, 0.5), margins=(0.0, 0.1, 0.2), weights=(1, 0.5)),
     [[0.9, 0.2, 0.5]], [[1, 0.7, 0.3]], 0.5 * (0.2 + 0.5 - 0.2)),
    (dict(thresholds=(0.5,), margins=(0.2, 0.1), weights=(1,)),  # 0.5 lies above the rung
     [[0.9, 0.2, 0.5]], [[1, 0.5, 0.3]], 0.1 + 0.5 - 0.2),
    (dict(margins=(0.2, 0.0), weights=(1,)), [[0.5, 0.6]], [[1, 0.2]], 0.3 + 0.1),
    (dict(thresholds=(), margins=(0.2,), weights=()), [[0.5, 0.6]], [[1, 0.2]], 0.3),
    (dict(margins=(0, 0.1), weights=(2,), reduction="sum"), [[0.5, 0.5], [0.5, 0.5]],
     [[1, 0], [0, 1]], 4 * 2 * 0.1),
    (dict(), [[0.5, 0.6]], [[0.9, 0.7]], 0.0),  # no match, nothing below the rung
    (dict(margins=(0.2, 0.1), weights=(1,)), [[0.5, 0.6]], [[0.9, 0.3]], 0.2),  # no match
]


def oracle(scores, relevance, thresholds=(0.63,), margins=(0.2, 0.01), weights=(0.25,),
           reduction="mean"):
    total = triplet(scores, relevance, margins[0], reduction)
    for threshold, margin, weight in zip(thresholds, margins[1:], weights, strict=True):
        for lists, labels in directions(scores, relevance):
            value = 0.0
            for s, r in zip(lists, labels, strict=True):
                above = [a for a, b in zip(s, r, strict=True) if b >= threshold]
                below = [a for a, b in zip(s, r, strict=True) if b < threshold]
                if above and below:
                    value += max(0.0, margin + max(below) - min(above))
            total += weight * (value if reduction == "sum" else value / len(lists))
    return total
