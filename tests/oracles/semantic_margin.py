from tests.oracles.loops import directions

HAND = [  # arguments, scores, relevance, value worked by hand
    (dict(), [[0.5, 0.4, 0.3]], [[1, 0.4, 0.1]], (0.2 - 0.1 + 0.3 - 0.2) / 2),
    (dict(), [[0.5], [0.4], [0.3]], [[1], [0.4], [0.1]], (0.2 - 0.1 + 0.3 - 0.2) / 2),
    (dict(negatives="hardest"), [[0.5, 0.4, 0.35]], [[1, 0.4, 0.1]], 0.2 - 0.1),  # 0.4 is larger
    (dict(temperature=0.1), [[0.5, 0.4]], [[1, 0.4]], 1 - 0.1),  # margins end at 1
    (dict(temperature=1, reduction="sum"), [[0.5, 0.5], [0.5, 0.5]], [[1, 0.7], [0.6, 1]],
     2 * (0.3 + 0.4)),
    (dict(temperature=1), [[0.5, 0.5], [0.5, 0.5]], [[1, 0.7], [0.6, 1]], 0.3 + 0.4),
    (dict(), [[0.4, 0.6]], [[1, 1]], 0.0),  # no negative at all
    (dict(), [[0.5, 0.6]], [[0.9, 0.3]], 0.0),  # no match
]


def oracle(scores, relevance, temperature=3.0, negatives="all", reduction="mean"):
    total = 0.0
    for lists, labels in directions(scores, relevance):
        value, matches = 0.0, 0
        for s, r in zip(lists, labels, strict=True):
            others = [(a, b) for a, b in zip(s, r, strict=True) if b != 1]
            if negatives == "hardest":
                others = [max(others)] if others else []
            for own, label in zip(s, r, strict=True):
                if label == 1:
                    matches += 1
                    value += sum(max(0.0, min(1, (1 - b) / temperature) + a - own)
                                 for a, b in others) / max(len(others), 1)
        total += value if reduction == "sum" else value / max(matches, 1)
    return total
