from tests.oracles.loops import hinge_oracle

HAND = [  # arguments, scores, relevance, value worked by hand
    (dict(margin=0.2, k=2), [[0.5, 0.6, 0.4]], [[1, 0, 0]], 0.2 + 0.4 - 0.5),
    (dict(margin=0.2, k=2), [[0.5], [0.6], [0.4]], [[1], [0], [0]], 0.2 + 0.4 - 0.5),
    # the match ranks third: second line of Eq. 8 gives 0.1 + 0.6 - 0.5, the first only 0.1
    (dict(margin=0.1, k=2), [[0.5, 0.7, 0.6, 0.2]], [[1, 0, 0, 0]], 0.1 + 0.6 - 0.5),
    (dict(margin=0.2, k=1), [[0.9, 0.8], [0.3, 0.5]], [[1, 0], [0, 1]], (0.1 + 0.5) / 2),
    (dict(margin=0.2, k=1, reduction="sum"), [[0.9, 0.8], [0.3, 0.5]], [[1, 0], [0, 1]], 0.6),
    (dict(k=2), [[0.4, 0.6]], [[1, 1]], 0.0),  # no negative at all
    (dict(), [[0.5, 0.6]], [[0.9, 0.3]], 0.0),  # no match
]


def oracle(scores, relevance, margin=0.2, k=5, reduction="mean"):
    def negative(others):
        return sorted(others, reverse=True)[k - 1]
    return hinge_oracle(scores, relevance, margin, negative, reduction)
