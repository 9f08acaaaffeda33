"""Fisher vectors one number at a time, from Perronnin et al. 2010, and a case worked by hand."""

import math

# One Gaussian in one dimension: weight 1, mean 1, variance 4. Words at 3 and 1: scaled 1 and 0.
#   u = (1 + 0) / 2                       = 1/2
#   v = ((1 - 1) + (0 - 1)) / (2 sqrt 2)  = -1 / (2 sqrt 2)
# Square roots with sign, then length 1.
U, V = math.sqrt(1 / 2), -math.sqrt(1 / (2 * math.sqrt(2)))
LENGTH = math.sqrt(U * U + V * V)
HAND = {"words": [[3.0], [1.0]], "weights": [1.0], "means": [[1.0]], "variances": [[4.0]],
        "expected": [U / LENGTH, V / LENGTH]}


def normal(x, mean, variance):
    value = 1.0
    for a, m, s in zip(x, mean, variance, strict=True):
        value *= math.exp(-((a - m) ** 2) / (2 * s)) / math.sqrt(2 * math.pi * s)
    return value


def density(x, means, scales, laplacian):
    value = 1.0
    for a, m, s, sharp in zip(x, means, scales, laplacian, strict=True):
        value *= (math.exp(-abs(a - m) / s) / (2 * s) if sharp else normal([a], [m], [s * s]))
    return value


def hybrid_oracle(words, weights, means, scales, laplacian):
    """The same of a mixture whose numbers are Gaussian or Laplacian, Klein et al. 2015."""
    components, dims, n = range(len(weights)), range(len(means[0])), len(words)
    u = [[0.0 for _ in dims] for _ in components]
    v = [[0.0 for _ in dims] for _ in components]
    for x in words:
        joint = [weights[k] * density(x, means[k], scales[k], laplacian[k]) for k in components]
        for k in components:
            share = joint[k] / sum(joint) / (n * math.sqrt(weights[k]))
            for d in dims:
                scaled = (x[d] - means[k][d]) / scales[k][d]
                if laplacian[k][d]:
                    u[k][d] += share * math.copysign(1, scaled)
                    v[k][d] += share * (abs(scaled) - 1)
                else:
                    u[k][d] += share * scaled
                    v[k][d] += share * (scaled**2 - 1) / math.sqrt(2)
    return rooted_unit(u, v)


def oracle(words, weights, means, variances):
    """Fisher vector of one text: all u (component by component), then all v."""
    components, dims, n = range(len(weights)), range(len(means[0])), len(words)
    u = [[0.0 for _ in dims] for _ in components]
    v = [[0.0 for _ in dims] for _ in components]
    for x in words:
        joint = [weights[k] * normal(x, means[k], variances[k]) for k in components]
        for k in components:
            posterior = joint[k] / sum(joint)
            for d in dims:
                scaled = (x[d] - means[k][d]) / math.sqrt(variances[k][d])
                u[k][d] += posterior * scaled / (n * math.sqrt(weights[k]))
                v[k][d] += posterior * (scaled**2 - 1) / (n * math.sqrt(2 * weights[k]))
    return rooted_unit(u, v)


def rooted_unit(u, v):
    flat = [value for rows in (u, v) for row in rows for value in row]
    rooted = [math.copysign(math.sqrt(abs(value)), value) for value in flat]
    length = math.sqrt(sum(value**2 for value in rooted))
    return [value / length for value in rooted] if length else rooted
