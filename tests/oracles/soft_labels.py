from math import exp, log

from tests.oracles.loops import directions

SILENT = {"one pair"}
PULLS = False  # a match is pulled down where it has more weight than the labels give it
HAND = [  # arguments, scores, relevance, value worked by hand
    # labels e^2 : 1, scores 1 : 1
    (dict(), [[0.5, 0.5]], [[1, 0]],
     log(2) + (2 * exp(2) - (exp(2) + 1) * log(exp(2) + 1)) / (exp(2) + 1)),
    # labels 3/4 and 1/4, scores 2/3 and 1/3
    (dict(temperature=1, relevance_temperature=1 / log(3)), [[log(2), 0.0]], [[1, 0]],
     3 / 4 * log(9 / 8) + 1 / 4 * log(3 / 4)),
    (dict(temperature=0.5, relevance_temperature=1 / log(3)), [[log(2) / 2], [0.0]], [[1], [0]],
     3 / 4 * log(9 / 8) + 1 / 4 * log(3 / 4)),
    # labels 1/2 and 1/2, scores 2/3 and 1/3 in all four lists
    (dict(temperature=1), [[log(2), 0.0], [0.0, log(2)]], [[1, 1], [1, 1]],
     2 * (1 / 2 * log(3 / 4) + 1 / 2 * log(3 / 2))),
    (dict(temperature=0.1, relevance_temperature=0.1), [[0.3, 0.2]], [[0.6, 0.5]], 0.0),  # alike
    (dict(), [[0.3]], [[1]], 0.0),
]


def divergence(scores, relevance, temperature, relevance_temperature):
    wanted = [exp(r / relevance_temperature) for r in relevance]
    given = [exp(s / temperature) for s in scores]
    return sum(w / sum(wanted) * (log(w / sum(wanted)) - log(g / sum(given)))
               for w, g in zip(wanted, given, strict=True))


def oracle(scores, relevance, temperature=0.45, relevance_temperature=0.5):
    total = 0.0
    for lists, labels in directions(scores, relevance):
        total += sum(divergence(s, r, temperature, relevance_temperature)
                     for s, r in zip(lists, labels, strict=True)) / len(lists)
    return total
