from tests.oracles.loops import directions

SILENT = {"one pair", "no negative", "all tied", "all relevant", "no match"}  # no margin
HAND = [  # arguments, scores, relevance, value worked by hand
    (dict(), [[0.1, 0.5, 0.2]], [[1, 0.4, 0.3]], (0.4 + 0.1) / 2),  # 0.4 - 0.3 is not 0.2
    (dict(), [[0.1], [0.5], [0.2]], [[1], [0.4], [0.3]], (0.4 + 0.1) / 2),
    (dict(relaxation=0), [[0.1, 0.2, 0.5]], [[1, 0.4, 0.3]], (0.1 + 0.4 + 0.3) / 3),
    (dict(relaxation=0, reduction="sum"), [[0.1, 0.2, 0.5]], [[1, 0.4, 0.3]], 0.1 + 0.4 + 0.3),
    (dict(relaxation=0.7), [[0.1, 0.2, 0.5]], [[1, 0.4, 0.3]], 0.4),  # exactly alpha: a pair
    (dict(relaxation=0), [[0.1, 0.5, 0.9]], [[1, 1, 0.3]], (0.8 + 0.4) / 2),  # equal: no pair
    (dict(relaxation=0.5), [[0.1, 0.5]], [[-0.2, -0.8]], 0.4),  # t2i has one image, no pair
    # relevance is not symmetric: i2t 0.9 over 0.1, met; t2i of text 0: 0.9 over 0.95, 0.05
    (dict(), [[0.9, 0.1], [0.95, 0.99]], [[1, 0], [0, 1]], (0 + 0) / 2 + (0.05 + 0) / 2),
    (dict(relaxation=1.99), [[0.1, 0.9]], [[0.5, -1]], 0.0),  # no pair beyond alpha
]


def oracle(scores, relevance, relaxation=0.2, reduction="mean"):
    total = 0.0
    for lists, labels in directions(scores, relevance):
        value, pairs = 0.0, 0
        for s, r in zip(lists, labels, strict=True):
            for j in range(len(s)):
                for k in range(len(s)):
                    if r[j] > r[k] and r[j] - r[k] >= relaxation - 1e-6:
                        value += max(0.0, s[k] - s[j])
                        pairs += 1
        total += value if reduction == "sum" else value / max(pairs, 1)
    return total
