"""CCA one pair of directions at a time: each view's best answer to the other, until none moves."""

import numpy as np


def oracle(images, texts, size, regularisation=0.0, turns=3000):
    """(correlations (D,), image directions (P, D), text directions (Q, D)) of pairs of rows.

    Solves Cxy Cyy^-1 Cyx a = c^2 Cxx a (generalised eigenvectors) by turns; what was found before
    is taken out of every answer.
    """
    n = len(images)
    x, y = images - images.mean(axis=0), texts - texts.mean(axis=0)
    cxx, cyy, cxy = x.T @ x / n, y.T @ y / n, x.T @ y / n
    cxx = cxx + regularisation * np.trace(cxx) / len(cxx) * np.eye(len(cxx))
    cyy = cyy + regularisation * np.trace(cyy) / len(cyy) * np.eye(len(cyy))
    found = []
    for number in range(size):
        b = np.random.default_rng(number).normal(size=len(cyy))
        for _ in range(turns):
            a = answer(cxx, cxy @ b, [one for _, one, _ in found])
            b = answer(cyy, cxy.T @ a, [one for _, _, one in found])
        found.append((a @ cxy @ b, a, b))
    values, left, right = zip(*found, strict=True)
    return np.array(values), np.array(left).T, np.array(right).T


def answer(variances, pull, before):
    """The direction that a pull moves most, at right angles to those before, of variance 1."""
    direction = np.linalg.solve(variances, pull)
    for other in before:
        direction = direction - (direction @ variances @ other) * other
    return direction / np.sqrt(direction @ variances @ direction)
