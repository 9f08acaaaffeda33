from tests.oracles.loops import hinge_oracle

HAND = [  # arguments, scores, relevance, value worked by hand
    (dict(margin=0.2, k=2), [[0.5, 0.6, 0.2]], [[1, 0, 0]], 0.2 + (0.6 + 0.2) / 2 - 0.5),
    (dict(margin=0.2, k=2), [[0.5], [0.6], [0.2]], [[1], [0], [0]], 0.2 + (0.6 + 0.2) / 2 - 0.5),
    # the hinge is outside the mean: 0.1 + (0.9 - 0.9) / 2 - 0.5 < 0, though 0.9 violates alone
    (dict(margin=0.1, k=2), [[0.5, 0.9, -0.9]], [[1, 0, 0]], 0.0),
    (dict(margin=0.2, k=1), [[0.9, 0.8], [0.3, 0.5]], [[1, 0], [0, 1]], (0.1 + 0.5) / 2),
    (dict(margin=0.2, k=1, reduction="sum"), [[0.9, 0.8], [0.3, 0.5]], [[1, 0], [0, 1]], 0.6),
    (dict(margin=0.1, k=2), [[0.1, 0.3, 0.7], [0.2, 0.4, 0.6], [0.5, 0.8, 0.9]],
     [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
     # i2t: 0.1 + 0.5 - 0.1, 0.1 + 0.4 - 0.4, 0.1 + 0.65 - 0.9 -> 0
     # t2i: 0.1 + 0.35 - 0.1, 0.1 + 0.55 - 0.4, 0.1 + 0.65 - 0.9 -> 0
     ((0.5 + 0.1 + 0.0) + (0.35 + 0.25 + 0.0)) / 3),
    (dict(k=2), [[0.4, 0.6]], [[1, 1]], 0.0),  # no negative at all
    (dict(), [[0.5, 0.6]], [[0.9, 0.3]], 0.0),  # no match, so k = 5 of 2 does not matter
]


def oracle(scores, relevance, margin=0.2, k=5, reduction="mean"):
    def negative(others):
        return sum(sorted(others, reverse=True)[:k]) / k
    return hinge_oracle(scores, relevance, margin, negative, reduction)
