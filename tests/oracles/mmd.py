import math

EAST, NORTH = [[1.0, 0.0]], [[0.0, 1.0]]
HAND = [
    (dict(gamma=0.5), dict(subembeddings=[EAST], text_subembeddings=[NORTH]), [[1]],
     2 - 2 * math.exp(-0.5 * math.sqrt(2))),
    (dict(gamma=0.5, kernel="square"), dict(subembeddings=[EAST], text_subembeddings=[NORTH]),
     [[1]], 2 - 2 * math.exp(-0.5 * 2)),
    (dict(gamma=1.0), dict(subembeddings=[EAST], text_subembeddings=[EAST]), [[1]], 0.0),
    # two image vectors, one text vector: (1 + e) / 2 - 2 (1 + e) / 2 + 1 with e = exp(-2)
    (dict(gamma=1.0, kernel="square"), dict(subembeddings=[[*EAST, *NORTH]],
                                            text_subembeddings=[EAST]), [[1]],
     (1 + math.exp(-2)) / 2 - (1 + math.exp(-2)) + 1),
]


def oracle(images, texts, gamma=0.5, kernel="distance"):
    def mean(some, others):
        total = 0.0
        for a in some:
            for b in others:
                distance = math.dist(a, b)
                total += math.exp(-gamma * (distance if kernel == "distance" else distance ** 2))
        return total / (len(some) * len(others))

    return mean(images, images) - 2 * mean(images, texts) + mean(texts, texts)


def from_output(output, relevance, **arguments):
    flat = (output.subembeddings.flatten(0, 1).tolist(),
            output.text_subembeddings.flatten(0, 1).tolist())
    return oracle(*flat, **arguments)
