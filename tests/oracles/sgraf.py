"""SAF and SGR read from the equations of SCAN and SGRAF, a pair, a word, a region at a time.

Everything is a vector of torch, so that a gradient can be asked for; nothing is padded, masked or
taken together.
"""

import torch

LEAK = 0.1


def unit(vector):
    return vector / vector.square().sum().sqrt()


def softmax(values):
    exps = [torch.exp(value) for value in values]
    return [value / sum(exps) for value in exps]


def leaky(value):
    return value if value > 0 else LEAK * value


def looks(words, regions, scale):
    """SCAN Eqs. 1 and 8 to 10: [w][r], how much word w looks at region r."""
    cosines = [[leaky(unit(w) @ unit(r)) for r in regions] for w in words]
    lengths = [sum(row[r] ** 2 for row in cosines) ** 0.5 for r in range(len(regions))]
    return [softmax([scale * value / length for value, length in zip(row, lengths, strict=True)])
            for row in cosines]


def similarity(x, y, weight):
    """SGRAF Eq. 1."""
    return unit(weight @ (x - y) ** 2)


def nodes_of(regions, image, words, text, pair):
    """SGRAF Eqs. 2 to 4: the vector of the wholes, then that of each word."""
    nets = pair.similarities
    nodes = [similarity(image, text, nets.wholes.weight)]
    for word, weights in zip(words, looks(words, regions, nets.scale), strict=True):
        seen = sum(weight * region for weight, region in zip(weights, regions, strict=True))
        nodes.append(similarity(unit(seen), word, nets.words.weight))
    return nodes


def whole_of(places, pool):
    """Self-attention by the mean of the places."""
    asked = pool.query.weight @ (sum(places) / len(places))
    weights = softmax([(pool.key.weight @ place) @ asked * len(place) ** 0.5 for place in places])
    return unit(sum(weight * place for weight, place in zip(weights, places, strict=True)))


def image_of(model, regions):
    """(regions of length 1, the whole) of an image."""
    linear = model.image.regions
    places = [unit(linear.weight @ region + linear.bias) for region in regions]
    return places, whole_of(places, model.image.whole)


def text_of(model, tokens):
    """(words of length 1, the whole) of a text: the mean of both directions at each word."""
    out = model.text.gru(model.text.words.weight[tokens][None])[0][0]
    half = model.text.gru.hidden_size
    states = [(state[:half] + state[half:]) / 2 for state in out] \
        if model.text.gru.bidirectional else list(out)
    places = [unit(state) for state in states]
    return places, whole_of(places, model.text.whole)


def final(model, vector):
    score = model.pair.score
    return torch.sigmoid(score.weight[0] @ vector + score.bias[0])


def sgr(model, all_nodes):
    """Eqs. 5 and 6 of every pair; all nodes are made in every step."""
    return [[final(model, reasoned(model, nodes)) for nodes in row] for row in all_nodes]


def reasoned(model, nodes):
    for step in model.pair.steps:
        renewed = []
        for asking in nodes:
            edges = softmax([(step.inward.weight @ asking) @ (step.outward.weight @ other)
                             for other in nodes])
            renewed.append(sum(edge * (step.relation.weight @ other)
                               for edge, other in zip(edges, nodes, strict=True)).relu())
        nodes = renewed
    return nodes[0]


def saf(model, all_nodes):
    """Eqs. 7 and 8; the batch norm by the nodes of all pairs in training, as it was kept else."""
    weight, norm = model.pair.weight.weight[0], model.pair.norm
    mean, variance = norm.mean, norm.variance
    if model.training:
        values = [weight @ node for row in all_nodes for nodes in row for node in nodes]
        mean = sum(values) / len(values)
        variance = sum((value - mean) ** 2 for value in values) / len(values)

    def score(nodes):
        gates = [torch.sigmoid((weight @ node - mean) / (variance + 1e-5).sqrt() * norm.slope
                               + norm.shift) for node in nodes]
        return final(model, sum(g / sum(gates) * node
                                for g, node in zip(gates, nodes, strict=True)))

    return [[score(nodes) for nodes in row] for row in all_nodes]


READ = {"saf": saf, "sgr": sgr}


def scores(model, images, texts):
    """(I, T) of images, each its existing regions (R, D), and texts, each its tokens."""
    images = [image_of(model, regions) for regions in images]
    texts = [text_of(model, tokens) for tokens in texts]
    nodes = [[nodes_of(*image, *text, model.pair) for text in texts] for image in images]
    return torch.stack([torch.stack(row) for row in READ[model.name](model, nodes)])
