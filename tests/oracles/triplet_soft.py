from math import exp, log

from tests.oracles.loops import hinge_oracle

HAND = [  # arguments, scores, relevance, value worked by hand
    # equal negatives: the log-sum-exp is their value + log(n) / scale
    (dict(margin=0.2, scale=10), [[0.5, 0.4, 0.4]], [[1, 0, 0]], 0.2 + 0.4 + log(2) / 10 - 0.5),
    (dict(margin=0.2, scale=50), [[0.5], [0.4], [0.4], [0.4]], [[1], [0], [0], [0]],
     0.2 + 0.4 + log(3) / 50 - 0.5),
    # one negative each: exactly the hardest
    (dict(margin=0.2), [[0.9, 0.8], [0.3, 0.5]], [[1, 0], [0, 1]], (0.1 + 0.0 + 0.0 + 0.5) / 2),
    (dict(margin=0.0, scale=1), [[0.0, log(2), log(3)]], [[1, 0, 0]], log(5)),
    (dict(margin=0.2, reduction="sum"), [[0.9, 0.8], [0.3, 0.5]], [[1, 0], [0, 1]], 0.1 + 0.5),
    (dict(), [[0.4, 0.6]], [[1, 1]], 0.0),  # no negative at all
    (dict(), [[0.5, 0.6]], [[0.9, 0.3]], 0.0),  # no match
]


def oracle(scores, relevance, margin=0.2, scale=50.0, reduction="mean"):
    def soft_maximum(others):
        return log(sum(exp(scale * s) for s in others)) / scale
    return hinge_oracle(scores, relevance, margin, soft_maximum, reduction)
