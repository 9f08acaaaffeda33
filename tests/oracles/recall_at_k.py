from math import exp, log

from tests.oracles.loops import directions

SILENT = {"no match"}  # a match at rank k counts half, so that the value is not 0 at the others
PULLS = False  # a match may be pulled down for another match


def sigmoid(x):
    return 1 / (1 + exp(-x)) if x > 0 else exp(max(x, -700)) / (1 + exp(max(x, -700)))


# sigmoid(log 3) = 3/4: with tau = 1, scores 0 and log 3 have ranks 1 + 3/4 and 1 + 1/4
SOFT = dict(ks=(1,), temperature=1)
HAND = [  # arguments, scores, relevance, value worked by hand
    (SOFT, [[log(3), 0.0]], [[1, 0]], (1 - sigmoid(-1 / 4)) + 1 / 2),  # the text's image is first
    (SOFT, [[0.0], [log(3)]], [[1], [0]], 1 / 2 + (1 - sigmoid(-3 / 4))),
    (SOFT | dict(rank_temperature=0.5), [[0.0, log(3)]], [[1, 0]], (1 - sigmoid(-3 / 2)) + 1 / 2),
    # image 1 and text 1 have no match and are left out
    (SOFT, [[0.0, log(3)], [log(3), 0.0]], [[1, 0], [0, 0]], 2 * (1 - sigmoid(-3 / 4))),
    (SOFT | dict(ks=(1, 2)), [[log(3), 0.0]], [[1, 0]],
     1 - (sigmoid(-1 / 4) + sigmoid(3 / 4)) / 2 + 1 - (1 / 2 + sigmoid(1)) / 2),
    # two matches, ranks 1.5 each: of the first k = 1 there can be one, of the first 2 both
    (SOFT, [[0.0, 0.0]], [[1, 1]], 1 - 2 * sigmoid(-1 / 2) + 1 / 2),
    (SOFT | dict(ks=(2,)), [[0.0, 0.0]], [[1, 1]], 1 - sigmoid(1 / 2) + 1 - sigmoid(1)),
    # three of one rank, 2: thrice sigmoid(-1/10) would be more than all there is of k = 1
    (dict(ks=(1,), rank_temperature=10), [[0.5, 0.5, 0.5]], [[1, 1, 1]], 1 / 2),
    (dict(), [[0.4, 0.6]], [[0, 0]], 0.0),
]


def missed(scores, relevance, ks, temperature, rank_temperature):
    """1 - recall of one list, None without a match."""
    matches = [j for j, r in enumerate(relevance) if r == 1]
    if not matches:
        return None
    ranks = [1 + sum(sigmoid((other - scores[j]) / temperature)
                     for u, other in enumerate(scores) if u != j) for j in matches]
    return 1 - sum(min(1, sum(sigmoid((k - rank) / rank_temperature) for rank in ranks)
                       / min(k, len(matches))) for k in ks) / len(ks)


def oracle(scores, relevance, ks=(1, 5, 10), temperature=0.01, rank_temperature=1.0):
    total = 0.0
    for lists, labels in directions(scores, relevance):
        found = [missed(s, r, ks, temperature, rank_temperature)
                 for s, r in zip(lists, labels, strict=True)]
        found = [value for value in found if value is not None]
        total += sum(found) / max(1, len(found))
    return total
