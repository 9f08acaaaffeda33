"""Embedding entropy by the printed formulas, with Python's exponentials."""

from math import exp, log

HAND = [  # scores, image_of_text, temperature, (entropy, share of the noise) of each image by hand
    # all equal: two matches and one noise have a third each; turned round, the noise has two
    ([[0.2, 0.2, 0.2], [0.9, 0.9, 0.9]], [0, 0, 1], 0.07,
     [(log(3), 1 / 3), (log(3) - 2 / 3 * log(2), 2 / 3)]),
    # e^(log 3) against 1: three quarters and one; then 1 : 2, of which the match is the 2
    ([[log(3), 0.0], [log(1), log(2)]], [0, 1], 1.0,
     [(2 * log(2) - 3 / 4 * log(3), 1 / 4), (log(3) - 2 / 3 * log(2), 1 / 3)]),
    # at half the temperature 2 : 1 becomes 4 : 1
    ([[log(2), 0.0], [0.0, log(2)]], [0, 1], 0.5,
     [(log(5) - 4 / 5 * log(4), 1 / 5)] * 2),
    # matches of 1 and 2 beside a noise of 1 + 4: an eighth, a quarter, five eighths
    ([[0.0, log(2), 0.0, log(4)], [0.0, 0.0, 0.0, 0.0]], [0, 0, 1, 1], 1.0,
     [(log(8) - 1 / 4 * log(2) - 5 / 8 * log(5), 5 / 8), (1.5 * log(2), 1 / 2)]),
    ([[0.3, 0.3]], [0, 0], 0.07, [(log(2), 0.0)]),  # nothing but matches: no noise
    ([[500.0, 0.0], [500.0, 0.0]], [0, 1], 0.01, [(0.0, 0.0), (0.0, 1.0)]),  # all found, nothing
]


def oracle(scores, image_of_text, temperature):
    """(entropy, share of the noise) of each row, for scores whose exponentials do not overflow."""
    found = []
    for image, row in enumerate(scores):
        e = [exp(score / temperature) for score in row]
        total = sum(e)
        own = [value / total for value, owner in zip(e, image_of_text, strict=True)
               if owner == image]
        noise = sum(value for value, owner in zip(e, image_of_text, strict=True)
                    if owner != image) / total
        found.append((-sum(p * log(p) for p in (*own, noise) if p > 0), noise))
    return found
