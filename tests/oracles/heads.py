"""Plain loops shared by the oracles of losses on outputs: lists of lists, no tensors."""

import math


def cosine(a, b):
    """0 where one of them is 0."""
    lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0


def pairs_of(count):
    """All ordered pairs of different heads."""
    return [(a, b) for a in range(count) for b in range(count) if a != b]
