from tests.oracles.loops import directions

SILENT = {"one pair", "no negative", "all tied", "all relevant", "no match"}  # no margin
ROW = [[0.1, 0.5, 0.2]], [[1, 0.4, 0.3]]  # scores, relevance
HAND = [  # arguments, scores, relevance, value worked by hand
    # windows 0.4 (0.3 is below): 0.2 - 0.1; 0.5 ... 0.8 (0.4 too): 0.5 - 0.1
    (dict(), *ROW, (0.1 + 4 * 0.4) / 18),
    (dict(), [[0.1], [0.5], [0.2]], [[1], [0.4], [0.3]], (0.1 + 4 * 0.4) / 18),
    # every window: 0.2 five times (0.4 ... 0.8), 0.5 four times
    (dict(hard=False), *ROW, (5 * 0.1 + 4 * 0.4) / 9),
    (dict(hard=False, reduction="sum"), *ROW, 5 * 0.1 + 4 * 0.4),
    (dict(reduction="sum"), [[0.1, 0.2], [0.2, 0.1]], [[1, 0], [0, 1]],
     4 * 8 / 18 * 0.1),  # four queries; windows 0.1 ... 0.8
    # M = 1.5 / 0.6 = 2.5: windows -0.4, 0.2 and 1 - 0.5
    (dict(relaxation=0.5, stride=0.6), *ROW, 0.4 / 3),
    # an edge: 0.4 is not below the window at 0.4, and 0.6 is positive in it
    (dict(hard=False, relaxation=0.2, stride=0.7), [[0.1, 0.5]], [[0.6, 0.4]], 0.0),
    (dict(hard=False, relaxation=0.2, stride=0.7), [[0.1, 0.5]], [[0.6, 0.39]], 0.4),
    (dict(relaxation=0, stride=1), [[0.1, 0.5, 0.3]], [[1, 0.9, -0.5]], (0.2 + 0.4) / 2),
    (dict(), [[0.1, 0.9]], [[0.5, 0.4]], 0.0),  # too near for any window
]


def windows(relaxation, stride):
    edges, m = [], 1
    while -1 + m * stride <= 1 - relaxation + 1e-6:
        edges.append(-1 + m * stride)
        m += 1
    if abs(edges[-1] - (1 - relaxation)) > 1e-6:
        edges.append(1 - relaxation)
    return edges


def oracle(scores, relevance, hard=True, relaxation=0.2, stride=0.1, reduction="mean"):
    edges = windows(relaxation, stride)
    total = 0.0
    for lists, labels in directions(scores, relevance):
        value, pairs = 0.0, 0
        for s, r in zip(lists, labels, strict=True):
            for edge in edges:
                below = [a for a, b in zip(s, r, strict=True) if b < edge - 1e-6]
                above = [a for a, b in zip(s, r, strict=True)
                         if b == 1 or b >= edge + relaxation - 1e-6]
                if hard and below and above:
                    value += max(0.0, max(below) - min(above)) / len(edges)
                if not hard:
                    value += sum(max(0.0, k - j) for k in below for j in above)
                    pairs += len(below) * len(above)
        number = len(lists) if hard else max(pairs, 1)
        total += value if reduction == "sum" else value / number
    return total
