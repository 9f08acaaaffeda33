from tests.oracles.loops import hinge_oracle

HAND = [  # arguments, scores, relevance, value worked by hand
    (dict(margin=0.2), [[0.9, 0.8], [0.3, 0.5]], [[1, 0], [0, 1]], (0.1 + 0.0 + 0.0 + 0.5) / 2),
    (dict(margin=0.2), [[0.9, 0.1], [0.1, 0.9]], [[1, 0], [0, 1]], 0.0),  # separated already
    (dict(margin=0.2), [[0.4, 0.6]], [[1, 1]], 0.0),  # no negative at all
    (dict(margin=0.1), [[0.5, 0.4, 0.7], [0.2, 0.3, 0.6]], [[1, 1, 0], [0, 0, 1]],
     ((0.3 + 0.4 + 0.0) + (0.0 + 0.0 + 0.2)) / 3),  # two texts for image 0
    (dict(margin=0.1, reduction="sum"), [[0.5, 0.4, 0.7], [0.2, 0.3, 0.6]],
     [[1, 1, 0], [0, 0, 1]], (0.3 + 0.4 + 0.0) + (0.0 + 0.0 + 0.2)),
    (dict(), [[0.5, 0.6], [0.4, 0.2]], [[1, 0], [0, 0]], (0.2 + 0.1) + (0.2 - 0.1)),  # 1 match
    (dict(), [[0.5, 0.6]], [[0.9, 0.3]], 0.0),  # no match
]


def oracle(scores, relevance, margin=0.2, reduction="mean"):
    return hinge_oracle(scores, relevance, margin, max, reduction)
