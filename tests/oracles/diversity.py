import math

from tests.oracles.heads import cosine, pairs_of

TWO = [[[1.0, 0.0], [3.0, 4.0]]]  # cosine 0.6, in both orders
HAND = [
    (dict(), dict(residuals=TWO, text_residuals=None), [[1]], math.sqrt(2 * 0.36) / 4),
    (dict(), dict(residuals=TWO, text_residuals=TWO), [[1]], 2 * math.sqrt(2 * 0.36) / 4),
    (dict(), dict(residuals=[*TWO, [[1.0, 0.0], [0.0, 2.0]]], text_residuals=None),
     [[1, 0], [0, 1]], math.sqrt(2 * 0.36) / 4 / 2),
    (dict(), dict(residuals=[[[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0]]], text_residuals=None), [[1]],
     math.sqrt(2) / 9),
    (dict(), dict(residuals=[[[1.0, 2.0]]], text_residuals=[[[1.0, 2.0]]]), [[1]], 0.0),
]


def oracle(residuals):
    total = 0.0
    for heads in residuals:
        squares = sum(cosine(heads[a], heads[b]) ** 2 for a, b in pairs_of(len(heads)))
        total += math.sqrt(squares) / len(heads) ** 2
    return total / len(residuals)


def from_output(output, relevance):
    texts = output.text_residuals
    return oracle(output.residuals.tolist()) + (0 if texts is None else oracle(texts.tolist()))
