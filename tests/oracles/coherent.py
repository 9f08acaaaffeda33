"""The coherent score by sorting each list, cutting it and comparing all pairs of what is left."""

from tests.oracles.kendall_tau import query_tau

HAND = [  # scores, image_of_text, arguments, value worked by hand
    # image 0: texts 1, 0 are the best two, its own second: -1; image 1: texts 2, 1, both its own: 0
    # the texts have two images each: 0 finds the wrong one first, 1 and 2 the right one
    ([[2.0, 3.0, 1.0], [4.0, 5.0, 6.0]], [0, 1, 1], {"k": 2},
     {"i2t_cs2": -0.5, "t2i_cs2": 1 / 3}),
    # image 0: the best two tie, the third, its own, is not looked at; images 1 and 2: all tie
    # text 0: images 0, 1, its own second: -1; text 1: 0, 1 (first of a tie), not its own: 0;
    # text 2: images 1, 2 tie, and its own is last: 0
    ([[3.0, 3.0, -1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [1, 2, 0], {"k": 2},
     {"i2t_cs2": 0.0, "t2i_cs2": -1 / 3}),
]


def query_coherence(scores, relevance, k):
    """Of one list; Python sorts stably, so of equal scores the first stay."""
    best = sorted(range(len(scores)), key=lambda j: -scores[j])[:k]
    return query_tau([scores[j] for j in best], [relevance[j] for j in best])


def graded_oracle(scores, relevance, k=100):
    """Values of all images, and of all texts from the transposes, as two lists."""
    columns = list(zip(*scores, strict=True)), list(zip(*relevance, strict=True))
    return tuple([query_coherence(s, r, k) for s, r in zip(*rows, strict=True)]
                 for rows in ((scores, relevance), columns))


def oracle(scores, image_of_text, k=100):
    relevance = [[float(owner == i) for owner in image_of_text] for i in range(len(scores))]
    found = graded_oracle(scores, relevance, k)
    return {f"{d}_cs{k}": sum(x) / len(x) for d, x in zip(("i2t", "t2i"), found, strict=True)}
