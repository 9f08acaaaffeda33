"""VSE∞ read from its equations, one item, one place and one feature at a time."""

import math

import torch

SIZE, TEMPERATURE = 32, 0.1


def gru_states(steps, weights):
    """States after each step: r, z, n as in Cho et al., 2014."""
    into, over, into_bias, over_bias = weights
    state, states = steps[0].new_zeros(over.shape[1]), []
    for step in steps:
        r_in, z_in, n_in = (into @ step + into_bias).chunk(3)
        r_over, z_over, n_over = (over @ state + over_bias).chunk(3)
        reset, update = torch.sigmoid(r_in + r_over), torch.sigmoid(z_in + z_over)
        state = (1 - update) * torch.tanh(n_in + reset * n_over) + update * state
        states.append(state)
    return states


def states_of(gru, steps):
    """At each step the state, or the mean of those of both directions."""
    onward = gru_states(steps, gru.all_weights[0])
    if not gru.bidirectional:
        return onward
    back = gru_states(steps[::-1], gru.all_weights[1])[::-1]
    return [(a + b) / 2 for a, b in zip(onward, back, strict=True)]


def place(number):
    """Sines and cosines in turn, of rates that fall from 1."""
    return torch.tensor([f(number / 10_000 ** (2 * i / SIZE)) for i in range(SIZE // 2)
                         for f in (math.sin, math.cos)], dtype=torch.float64)


def coefficients(gpo, count):
    """θ_1, …, θ_count: they sum to 1."""
    scores = [gpo.linear.weight[0] @ state / TEMPERATURE
              for state in states_of(gpo.gru, [place(k) for k in range(count)])]
    exps = [torch.exp(score - max(scores).detach()) for score in scores]
    return [e / sum(exps) for e in exps]


def pooled(gpo, vectors):
    """sum_k θ_k of the k-th largest, feature by feature."""
    weights = coefficients(gpo, len(vectors))
    return torch.stack([sum(w * value for w, value in zip(
        weights, sorted((vector[d] for vector in vectors), reverse=True), strict=True))
        for d in range(len(vectors[0]))])


def unit(vector):
    return vector / vector.square().sum().sqrt()


def image(model, regions):
    linear, beside = model.image.map.linear, model.image.map.beside
    mapped = [linear.weight @ region + linear.bias for region in regions]
    if beside is not None:
        mapped = [m + beside[2].weight @ torch.relu(beside[0].weight @ region + beside[0].bias)
                  + beside[2].bias for m, region in zip(mapped, regions, strict=True)]
    return unit(pooled(model.image.pool, mapped))


def text(model, tokens):
    states = states_of(model.text.gru, [model.text.words.weight[token] for token in tokens])
    if isinstance(model.text.head, torch.nn.Sequential):
        linear = model.text.head[1]
        states = [linear.weight @ state + linear.bias for state in states]
    return unit(pooled(model.text.pool, states))
