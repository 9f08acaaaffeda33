"""Cosines between the sub-embeddings of an image, pair by pair."""

from math import sqrt


def cosine(a, b):
    lengths = sqrt(sum(x * x for x in a)) * sqrt(sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0


def matrix(heads, on, signed=False):
    """K x K of one image."""
    both = [[cosine(a, b) if on[i] and on[j] else 0.0 for j, b in enumerate(heads)]
            for i, a in enumerate(heads)]
    return both if signed else [[abs(value) for value in row] for row in both]


def mean(images, masks, signed=False):
    """Over the pairs of heads that are on, then over images that have one."""
    means = []
    for heads, on in zip(images, masks, strict=True):
        values = matrix(heads, on, signed)
        pairs = [values[i][j] for i in range(len(heads)) for j in range(len(heads))
                 if i != j and on[i] and on[j]]
        if pairs:
            means.append(sum(pairs) / len(pairs))
    return sum(means) / len(means)
