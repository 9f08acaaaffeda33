from tests.oracles.heads import cosine, pairs_of

TWO = [[[1.0, 0.0], [3.0, 4.0]]]  # one image, two heads, cosine 0.6
THREE = [[[1.0, 0.0], [3.0, 4.0], [0.0, -2.0]]]  # cosines 0.6, 0, -0.8
HAND = [
    (dict(bound=0.4), dict(residuals=TWO, mask=[[1, 1]]), [[1]], 2 * 0.6 - 0.4),
    (dict(bound=0.4), dict(residuals=TWO, mask=[[1, 0]]), [[1]], 0.0),
    (dict(bound=0.4, masked=False), dict(residuals=TWO, mask=[[1, 0]]), [[1]], 2 * 0.6 - 0.4),
    (dict(bound=1.0), dict(residuals=THREE, mask=[[1, 1, 1]]), [[1]], 2 * (0.6 + 0.8) - 1.0),
    (dict(bound=1.0), dict(residuals=THREE, mask=[[1, 1, 0]]), [[1]], 2 * 0.6 - 1.0),
    (dict(bound=0.1, over="mean"), dict(residuals=THREE, mask=[[1, 1, 1]]), [[1]],
     2 * (0.6 + 0.8) / 6 - 0.1),
    (dict(bound=0.1, over="mean"), dict(residuals=THREE, mask=[[0, 1, 1]]), [[1]], 0.8 - 0.1),
    (dict(bound=0.7, over="pair"), dict(residuals=THREE, mask=[[1, 1, 1]]), [[1]],
     2 * (0.8 - 0.7) / 6),
    (dict(bound=0.4), dict(residuals=[*TWO, *TWO], mask=[[1, 1], [0, 1]]), [[1, 0], [0, 1]],
     (2 * 0.6 - 0.4) / 2),
    (dict(bound=0.0), dict(residuals=[[[1.0, 2.0]]], mask=[[1]]), [[1]], 0.0),  # one head
    (dict(bound=0.0), dict(residuals=[[[1.0, 2.0], [0.0, 0.0]]], mask=[[1, 1]]), [[1]], 0.0),
]


def oracle(residuals, mask, bound=0.4, masked=True, over="sum"):
    total = 0.0
    for heads, on in zip(residuals, mask, strict=True):
        used = [(a, b) for a, b in pairs_of(len(heads)) if not masked or (on[a] and on[b])]
        values = [abs(cosine(heads[a], heads[b])) for a, b in used]
        if over == "pair":
            total += sum(max(0.0, v - bound) for v in values) / max(len(values), 1)
        else:
            divisor = max(len(values), 1) if over == "mean" else 1
            total += max(0.0, sum(values) / divisor - bound)
    return total / len(residuals)


def from_output(output, relevance, **arguments):
    return oracle(output.residuals.tolist(), output.mask.tolist(), **arguments)
