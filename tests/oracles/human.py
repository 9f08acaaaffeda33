"""Correlations by their definitions."""

from math import sqrt


def sign(x):
    return int(x > 0) - int(x < 0)


def tau(x, y, variant):
    """Kendall's tau-b or tau-c by counting all pairs."""
    n = len(x)
    pairs = [(sign(x[i] - x[j]), sign(y[i] - y[j])) for i in range(n) for j in range(i)]
    surplus = sum(a * b for a, b in pairs)
    if variant == "b":
        return surplus / sqrt(sum(a != 0 for a, _ in pairs) * sum(b != 0 for _, b in pairs))
    m = min(len(set(x)), len(set(y)))
    return 2 * surplus / (n * n * (m - 1) / m)


def pearson(x, y):
    a, b = [v - sum(x) / len(x) for v in x], [v - sum(y) / len(y) for v in y]
    return sum(p * q for p, q in zip(a, b, strict=True)) / sqrt(
        sum(p * p for p in a) * sum(q * q for q in b))


def spearman(x, y):
    return pearson(*[[(sum(w < v for w in z) + sum(w <= v for w in z)) / 2 for v in z]
                     for z in (x, y)])
