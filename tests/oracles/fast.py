"""FR by loops: the logarithm of Eq. 14, with the set of Eq. 13 put right, in two parts."""

from math import exp, log, log1p

# e.g. i2t (0, 0) of the first: 0.5 - log(exp 0.5 + exp 0.9) = 0.9 - 0.9 - 0.4 - log(1 + exp(-0.4))
HAND = [  # scores, arguments, i2t, t2i: value worked by hand
    ([[0.5, 0.4], [0.9, 0.1]], {"gamma1": 1, "gamma2": 1, "lambda1": 1, "lambda2": 1},
     [[-0.4 - log(1 + exp(-0.4)), -log(1 + exp(-0.3))],
      [-log(1 + exp(-0.4)), -0.3 - log(1 + exp(-0.3))]],
     [[-log(1 + exp(-0.1)), -0.1 - log(1 + exp(-0.1))],
      [-log(1 + exp(-0.8)), -0.8 - log(1 + exp(-0.8))]]),
    # gamma1 scales all queries, gamma2 the pair's own score: 3 * 1 - log(exp 2 + exp 0)
    ([[1.0], [0.0]], {"gamma1": 2, "gamma2": 3, "lambda1": 5, "lambda2": 7},
     [[3 - log(exp(2) + 1)], [0 - log(exp(2) + 1)]],
     [[7 - 5], [0]]),  # one text: the sum is its own score
]


def one_way(scores, queries_of, first, second):
    """queries_of(i, j): the scores over which pair (i, j) is normalised."""
    return [[score(x, queries_of(i, j), first, second) for j, x in enumerate(row)]
            for i, row in enumerate(scores)]


def score(x, queries, first, second):
    winner = queries.index(max(queries))
    top = queries[winner]
    others = sum(exp(first * (y - top)) for place, y in enumerate(queries) if place != winner)
    return first * (x - top) + (second - first) * x - log1p(others)


def oracle(scores, gamma1=25, gamma2=25, lambda1=20, lambda2=20):
    """(i2t, t2i) as lists of rows."""
    return (one_way(scores, lambda i, j: [row[j] for row in scores], gamma1, gamma2),
            one_way(scores, lambda i, j: list(scores[i]), lambda1, lambda2))


def alone(own, others, first, second):
    """The score of one query and one candidate: its own beside those of a bank, and no other."""
    top = max([own, *others])
    return second * own - first * top - log(sum(exp(first * (x - top)) for x in [own, *others]))
