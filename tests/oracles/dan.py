"""m-DAN read from the equations of its §3, one item, one look and one place at a time."""

import torch

from tests.oracles.sgraf import softmax, unit


def looked(places, memory, look):
    """Weights of the places."""
    remembered = torch.tanh(look.memory.weight @ memory)
    hidden = [torch.tanh(look.place.weight @ place) * remembered for place in places]
    return softmax([look.weight.weight[0] @ one for one in hidden])


def glimpses(places, net, mapped):
    """(the 1 + K vectors, the weights of each look) of one item with these places."""
    def seen(vector, step):
        linear = net.maps[step][0] if mapped else None
        return torch.tanh(linear.weight @ vector + linear.bias) if mapped else vector

    vectors, weights = [seen(sum(places) / len(places), 0)], []
    for k, look in enumerate(net.looks, 1):
        weights.append(looked(places, sum(vectors), look))
        mean = sum(weight * place for weight, place in zip(weights[-1], places, strict=True))
        vectors.append(seen(mean, k))
    return vectors, weights


def image_of(model, regions):
    return glimpses(list(regions), model.image, True)


def text_of(model, tokens):
    out = model.text.gru(model.text.words.weight[tokens][None])[0][0]
    half = model.text.gru.hidden_size
    if model.text.gru.bidirectional:
        out = (out[:, :half] + out[:, half:]) / 2
    return glimpses(list(out), model.text.glimpses, False)[0]


def scores(model, images, texts):
    """(I, T) of images, each its existing regions (R, D), and texts, each its tokens."""
    def whole(vectors):
        """All vectors of an item, so scaled that together they have length 1."""
        return unit(torch.cat(vectors)).split(len(vectors[0]))

    images = [whole(image_of(model, regions)[0]) for regions in images]
    texts = [whole(text_of(model, tokens)) for tokens in texts]
    return torch.stack([torch.stack([sum(v @ u for v, u in zip(image, text, strict=True))
                                     for text in texts]) for image in images])
