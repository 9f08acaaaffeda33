from math import exp, log

from tests.oracles.loops import per_match

HAND = [  # arguments, scores, relevance, value worked by hand
    (dict(temperature=0.1), [[0.5, 0.5, 0.5]], [[1, 0, 0]], log(3)),
    (dict(temperature=1), [[0.0, log(2)], [log(3), 0.0]], [[1, 0], [0, 1]],
     # i2t: log(1 + 2), log(1 + 3); t2i: log(1 + 3), log(1 + 2)
     (log(3) + log(4) + log(4) + log(3)) / 2),
    # two matches of image 0: each against text 2 alone, the other match is left out
    (dict(temperature=1), [[log(2), log(4), log(6)]], [[1, 1, 0]], (log(4) + log(2.5)) / 2),
    (dict(temperature=0.5), [[0.5, 0.0]], [[1, 0]], -log(exp(1) / (exp(1) + 1))),
    (dict(), [[0.4, 0.6]], [[1, 1]], 0.0),  # no negative at all
    (dict(), [[0.5, 0.6]], [[0.9, 0.3]], 0.0),  # no match
]


def oracle(scores, relevance, temperature=0.07):
    total, matches = 0.0, 0
    for own, other_texts, other_images in per_match(scores, relevance):
        matches += 1
        for others in (other_texts, other_images):
            mine = exp(own / temperature)
            total -= log(mine / (mine + sum(exp(s / temperature) for s in others)))
    return total / max(matches, 1)
