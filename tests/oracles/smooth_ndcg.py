from math import exp, log, log2

from tests.oracles.loops import directions

SILENT = {"one pair", "no match"}
PULLS = False  # a match may be pulled down for another match
# sigmoid(log 3) = 3/4: with tau = 1, scores 0 and log 3 have ranks 1 + 3/4 and 1 + 1/4
HAND = [  # arguments, scores, relevance, value worked by hand
    (dict(), [[0.5, 0.5]], [[1, 0]], 1 - 1 / log2(2.5)),
    (dict(), [[0.5], [0.5]], [[1], [0]], 1 - 1 / log2(2.5)),  # t2i
    (dict(temperature=1), [[log(3), 0.0]], [[1, 0]], 1 - 1 / log2(2.25)),
    (dict(temperature=1), [[0.0, log(3)]], [[1, 0]], 1 - 1 / log2(2.75)),
    (dict(temperature=2), [[0.0, 2 * log(3)]], [[1, 0]], 1 - 1 / log2(2.75)),
    (dict(temperature=1, reduction="sum"), [[0.0, log(3)], [log(3), 0.0]], [[1, 0], [0, 1]],
     4 * (1 - 1 / log2(2.75))),
    (dict(temperature=1), [[0.0, log(3)], [log(3), 0.0]], [[1, 0], [0, 1]],
     2 * (1 - 1 / log2(2.75))),
    # two equal relevances take ranks 1 and 2 of the ideal: ideal 1 + 1 / log2(3), ranks 1.5 twice
    (dict(), [[0.5, 0.5]], [[1, 1]], 1 - (2 / log2(2.5)) / (1 + 1 / log2(3))),
    # relevance is not symmetric: row 0 has [1, 1/2], column 0 has [1, 0]; gain of 1/2: sqrt 2 - 1
    (dict(temperature=1), [[0.0, 0.0], [0.0, 0.0]], [[1, 0.5], [0, 1]],
     ((1 - (2**0.5 / log2(2.5)) / (1 + (2**0.5 - 1) / log2(3))) + (1 - 1 / log2(2.5))) / 2 * 2),
    (dict(), [[0.4, 0.6]], [[0, 0]], 0.0),  # nothing to find
]


def list_ndcg(scores, relevance, temperature):
    """Smooth NDCG of one list, None without gains."""
    def gain(r):
        return 2**r - 1

    def sigmoid(x):
        return 1 / (1 + exp(-x)) if x > 0 else exp(max(x, -700)) / (1 + exp(max(x, -700)))

    dcg = 0.0
    for j, own in enumerate(scores):
        rank = 1 + sum(sigmoid((other - own) / temperature)
                       for k, other in enumerate(scores) if k != j)
        dcg += gain(relevance[j]) / log2(1 + rank)
    best = sorted(relevance, reverse=True)
    ideal = sum(gain(r) / log2(1 + place) for place, r in enumerate(best, start=1))
    return dcg / ideal if ideal > 0 else None


def oracle(scores, relevance, temperature=0.01, reduction="mean"):
    total = 0.0
    for lists, labels in directions(scores, relevance):
        found = [list_ndcg(s, r, temperature) for s, r in zip(lists, labels, strict=True)]
        missing = sum(1 - value for value in found if value is not None)
        total += missing if reduction == "sum" else missing / len(found)
    return total
