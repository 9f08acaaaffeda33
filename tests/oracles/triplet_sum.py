from tests.oracles.loops import per_match

HAND = [  # arguments, scores, relevance, value worked by hand
    (dict(margin=0.2), [[0.5, 0.4, 0.6]], [[1, 0, 0]], 0.1 + 0.3),  # one image: no t2i negatives
    (dict(margin=0.2), [[0.5], [0.4], [0.6]], [[1], [0], [0]], 0.1 + 0.3),  # and the transpose
    (dict(margin=0.2), [[0.9, 0.8], [0.3, 0.5]], [[1, 0], [0, 1]], (0.1 + 0.0 + 0.0 + 0.5) / 2),
    (dict(margin=0.2, reduction="sum"), [[0.9, 0.8], [0.3, 0.5]], [[1, 0], [0, 1]], 0.1 + 0.5),
    (dict(margin=0.1), [[0.5, 0.4, 0.7], [0.2, 0.3, 0.6]], [[1, 1, 0], [0, 0, 1]],
     ((0.3 + 0.4 + 0.0 + 0.0) + (0.0 + 0.0 + 0.2)) / 3),
    (dict(), [[0.4, 0.6]], [[1, 1]], 0.0),  # no negative at all
    (dict(), [[0.5, 0.6]], [[0.9, 0.3]], 0.0),  # no match
]


def oracle(scores, relevance, margin=0.2, reduction="mean"):
    total, matches = 0.0, 0
    for own, other_texts, other_images in per_match(scores, relevance):
        matches += 1
        for other in other_texts + other_images:
            total += max(0.0, margin + other - own)
    return total if reduction == "sum" or matches == 0 else total / matches
