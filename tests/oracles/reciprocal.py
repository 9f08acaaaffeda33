"""RR by stable sorts, as published code goes: who finds whom, and where."""

from tests.oracles.sets import stable_order

HAND = [  # scores, arguments, order of results: of images, of texts
    # image 0: texts 0, 1; text 0 has image 0 second, text 1 first: swapped. image 1: first, second
    # text 0: images 1, 0; each has it first: kept. text 1: images 0, 1; each has it second: kept
    ([[0.5, 0.4], [0.9, 0.1]], {}, [[1, 0], [0, 1]], [[1, 0], [0, 1]]),
    # of three texts only the first one is re-ordered, which changes nothing
    ([[0.5, 0.4, 0.3], [0.9, 0.1, 0.2]], {"k_i2t": 1, "k_t2i": 1},
     [[0, 1, 2], [0, 2, 1]], [[1, 0], [0, 1], [0, 1]]),
]


def reverse(scores, candidate, query):
    """Position of the query among all queries ranked for this candidate."""
    return stable_order([row[candidate] for row in scores]).index(query)


def lists(scores, k, siblings=None):
    """All results of every row, the first k in order of reverse rank."""
    found = []
    for q, row in enumerate(scores):
        order = stable_order(row)
        queries = [q] if siblings is None else [s for s, o in enumerate(siblings)
                                                if o == siblings[q]]
        best = {c: min(reverse(scores, c, s) for s in queries) for c in order[:k]}
        found.append(sorted(order[:k], key=best.__getitem__) + order[k:])
    return found


def oracle(scores, k_i2t=15, k_t2i=20, siblings=None):
    """(order of the texts of every image, order of the images of every text)."""
    turned = [list(column) for column in zip(*scores, strict=True)]
    return lists(scores, k_i2t), lists(turned, k_t2i, siblings)
