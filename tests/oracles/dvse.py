"""DVSE and PVSE read from their equations, one item and one head at a time: no fold, no batch."""

import math

import torch

ACTIVATIONS = {"tanh": math.tanh, "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
               "identity": lambda x: x}


def matvec(weight, vector, bias=None):
    rows = [sum(w * v for w, v in zip(row, vector, strict=True)) for row in weight]
    return rows if bias is None else [r + b for r, b in zip(rows, bias, strict=True)]


def softmax(values):
    exps = [math.exp(v - max(values)) for v in values]
    return [e / sum(exps) for e in exps]


def layer_norm(values, weight, bias):
    mean = sum(values) / len(values)
    variance = sum((v - mean) ** 2 for v in values) / len(values)
    return [(v - mean) / math.sqrt(variance + 1e-5) * w + b
            for v, w, b in zip(values, weight, bias, strict=True)]


def unit(values):
    length = math.sqrt(sum(v * v for v in values))
    return [v / length for v in values]


def heads_of(whole, places, sub, activation, gate=None):
    """(vectors of length 1, residuals, attention) of one item: whole (D), its existing places."""
    norm = sub.norm.weight.tolist(), sub.norm.bias.tolist()
    if sub.attention is None:
        return [unit(layer_norm(whole, *norm))], [], []
    w1, w2 = sub.attention.hidden.weight.tolist(), sub.attention.heads.weight.tolist()
    logits = [matvec(w2, [math.tanh(h) for h in matvec(w1, place)]) for place in places]
    vectors, residuals, attention = [], [], []
    for k in range(len(w2)):
        weights = softmax([row[k] for row in logits])
        seen = [sum(w * place[d] for w, place in zip(weights, places, strict=True))
                for d in range(len(places[0]))]
        residual = [ACTIVATIONS[activation](v) for v in
                    matvec(sub.residual.weight.tolist(), seen, sub.residual.bias.tolist())]
        on = 1 if gate is None else gate[k]
        vectors.append(unit(layer_norm([w + on * r for w, r in zip(whole, residual, strict=True)],
                                       *norm)))
        residuals.append(residual)
        attention.append(weights)
    return vectors, residuals, attention


def dvse_image(model, regions, activation="tanh", masked=True):
    """(vectors, residuals, mask, attention) of one image with these regions."""
    g = model.image.regions
    z = [matvec(g.weight.tolist(), region, g.bias.tolist()) for region in regions]
    whole = [sum(column) / len(z) for column in zip(*z, strict=True)]
    mask = [round(1 / (1 + math.exp(-value))) for value in matvec(model.image.w2.tolist(), whole)]
    vectors, residuals, attention = heads_of(whole, z, model.image.heads, activation,
                                             mask if masked else None)
    return vectors, residuals, mask, attention


def pvse_image(model, regions):
    fc = model.image.whole
    mean = [sum(column) / len(regions) for column in zip(*regions, strict=True)]
    whole = matvec(fc.weight.tolist(), mean, fc.bias.tolist())
    return heads_of(whole, regions, model.image.heads, "sigmoid")


def states_of(gru, words):
    """(states at each word, mean of both directions where there are two; the last state)."""
    out, _ = gru(torch.tensor([words], dtype=torch.float64))
    if not gru.bidirectional:
        return out[0].tolist(), out[0, -1].tolist()
    half = gru.hidden_size
    both = (out[0, :, :half] + out[0, :, half:]) / 2
    return both.tolist(), ((out[0, -1, :half] + out[0, 0, half:]) / 2).tolist()


def dvse_text(model, tokens, activation="tanh"):
    states, last = states_of(model.text.gru, model.text.words.weight[tokens].tolist())
    found = heads_of(last, states, model.text.heads, activation)[0]
    return found if len(found) > 1 else found[0]


def pvse_text(model, tokens):
    words = model.text.words.weight[tokens].tolist()
    return heads_of(states_of(model.text.gru, words)[1], words, model.text.heads, "sigmoid")
