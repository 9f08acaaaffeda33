"""NDCG by loops: put the items in order one by one, add up gains, divide by the best order."""

from math import log2

HAND = [  # scores, image_of_text, arguments, value worked by hand
    # image 0 finds its text second: 1 / log2(3) of the ideal 1; everything else is first
    ([[0.3, 0.4], [0.2, 0.5]], [0, 1], {}, {"i2t_ndcg": (1 / log2(3) + 1) / 2, "t2i_ndcg": 1.0}),
    # two texts of image 0 on ranks 1 and 3 of 3: (1 + 1/2) / (1 + 1/log2(3)); text 1 is second
    ([[0.9, 0.1, 0.5], [0.4, 0.3, 0.6]], [0, 0, 1], {},
     {"i2t_ndcg": (1.5 / (1 + 1 / log2(3)) + 1) / 2, "t2i_ndcg": (1 + 1 / log2(3) + 1) / 3}),
    # the same, only the first two ranks count: 1 / (1 + 1/log2(3))
    ([[0.9, 0.1, 0.5], [0.4, 0.3, 0.6]], [0, 0, 1], {"at": 2},
     {"i2t_ndcg": (1 / (1 + 1 / log2(3)) + 1) / 2, "t2i_ndcg": (1 + 1 / log2(3) + 1) / 3}),
    # constant scores: the match is last of two (worst), or everything is first (Eq. 10)
    ([[0.5] * 2] * 2, [0, 1], {}, {"i2t_ndcg": 1 / log2(3), "t2i_ndcg": 1 / log2(3)}),
    ([[0.5] * 2] * 2, [0, 1], {"ties": "paper"}, {"i2t_ndcg": 1.0, "t2i_ndcg": 1.0}),
    # Eq. 10 gives both texts of one image rank 1: more than the ideal order can have
    ([[0.5, 0.5]], [0, 0], {"ties": "paper"},
     {"i2t_ndcg": 2 / (1 + 1 / log2(3)), "t2i_ndcg": 1.0}),
]


def query_ndcg(scores, relevance, ties="worst", at=None):
    """NDCG of one list."""
    at = at or len(scores)
    items = list(range(len(scores)))
    order = sorted(items, key=lambda j: (-scores[j], relevance[j]))  # relevant last among ties
    reached = ideal = 0.0
    for place, j in enumerate(order, 1):
        rank = place if ties == "worst" else 1 + sum(scores[k] > scores[j] for k in items)
        reached += (2 ** relevance[j] - 1) / log2(1 + rank) if rank <= at else 0.0
    for rank, r in enumerate(sorted(relevance, reverse=True)[:at], 1):
        ideal += (2**r - 1) / log2(1 + rank)
    return reached / ideal if ideal else 0.0


def graded_oracle(scores, relevance, **arguments):
    """Values of all images, and of all texts from the transposes, as two lists."""
    columns = list(zip(*scores, strict=True)), list(zip(*relevance, strict=True))
    return tuple([query_ndcg(s, r, **arguments) for s, r in zip(*rows, strict=True)]
                 for rows in ((scores, relevance), columns))


def oracle(scores, image_of_text, **arguments):
    relevance = [[float(owner == i) for owner in image_of_text] for i in range(len(scores))]
    found = graded_oracle(scores, relevance, **arguments)
    return {f"{d}_ndcg": sum(x) / len(x) for d, x in zip(("i2t", "t2i"), found, strict=True)}
