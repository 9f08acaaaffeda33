from math import exp, log

SILENT = {"no match"}  # it asks about single pairs: a match counts where there is nothing else
HAND = [  # arguments, scores, relevance, value worked by hand
    (dict(scale=10, bias=-5), [[0.5, 0.5]], [[1, 0]], log(2) + log(2)),
    (dict(scale=1, bias=0), [[log(2), 0.0], [0.0, log(3)]], [[1, 0], [0, 1]],
     (log(3 / 2) + log(2) + log(2) + log(4 / 3)) / 2),  # sigmoid(log 2) = 2/3, of log 3 = 3/4
    (dict(scale=2, bias=1), [[0.5]], [[1]], log(1 + exp(-2))),
    (dict(scale=1, bias=0), [[0.0, 0.0], [0.0, 7.0]], [[1, 0], [0, 0]], 3 * log(2)),  # 7 unasked
    (dict(), [[0.5, 0.6]], [[0.9, 0.3]], 0.0),  # no match
]


def oracle(scores, relevance, scale=10.0, bias=-10.0):
    total, matches = 0.0, 0
    for i, row in enumerate(scores):
        for t, score in enumerate(row):
            column = [relevance[j][t] for j in range(len(scores))]
            if 1 not in relevance[i] and 1 not in column:
                continue
            sign = 1 if relevance[i][t] == 1 else -1
            matches += sign == 1
            total += log(1 + exp(-sign * (scale * score + bias)))
    return total / max(matches, 1)
