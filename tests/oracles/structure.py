"""Every triplet of one view by itself: an item, a neighbour, and one that is none."""

import math

# of length 1: two texts of the first image, one of the second; 1.4142, 0.8944 and 0.6325 apart
TEXTS = [[[1.0, 0.0]], [[0.0, 1.0]], [[0.6, 0.8]]]
FAR, ONE, TWO = math.sqrt(2), math.sqrt(0.8), math.sqrt(0.4)
IMAGES = TEXTS[:2]
MATCH = [[1, 1, 0], [0, 0, 1]]
GIVEN = dict(subembeddings=IMAGES, text_subembeddings=TEXTS)
HAND = [
    (dict(margin=0.1), GIVEN, MATCH, (0.1 + FAR - ONE + 0.1 + FAR - TWO) / 2),
    (dict(margin=0.1, texts=0.5), GIVEN, MATCH, 0.5 * (0.1 + FAR - ONE + 0.1 + FAR - TWO) / 2),
    (dict(margin=0.1, reduction="sum"), GIVEN, MATCH, 0.1 + FAR - ONE + 0.1 + FAR - TWO),
    (dict(margin=0.1, texts=0.0), GIVEN, MATCH, 0.0),  # no image has a neighbour
    # the first and the third text are of one image: [0.1 + 0.89 - 1.41]+ = 0, 0.1 + 0.89 - 0.63
    (dict(margin=0.1), GIVEN, [[1, 0, 1], [0, 1, 0]], (0.1 + ONE - TWO) / 2),
    # one image drawn twice, and another: the views change places
    (dict(margin=0.1, images=2.0), dict(subembeddings=TEXTS, text_subembeddings=IMAGES),
     [[1, 0], [1, 0], [0, 1]], 2 * (0.1 + FAR - ONE + 0.1 + FAR - TWO) / 2),
    (dict(), GIVEN, [[1, 0, 0], [0, 1, 0]], 0.0),  # no neighbours
    (dict(), GIVEN, [[1, 1, 1], [0, 0, 0]], 0.0),  # neighbours alone
]


def oracle(vectors, related, margin, reduction):
    """Of one view with one vector an item; related(i, j) for different i and j."""
    total, count, items = 0.0, 0, range(len(vectors))
    for i in items:
        for j in items:
            for k in items:
                if len({i, j, k}) == 3 and related(i, j) and not related(i, k):
                    total += max(0.0, margin + math.dist(vectors[i], vectors[j])
                                 - math.dist(vectors[i], vectors[k]))
                    count += 1
    return total if reduction == "sum" else total / max(count, 1)


def from_output(output, relevance, margin=0.1, images=1.0, texts=1.0, reduction="mean"):
    match = [[value == 1 for value in row] for row in relevance.tolist()]
    columns = [*zip(*match, strict=True)]

    def view(vectors, rows):
        def related(i, j):
            return any(a and b for a, b in zip(rows[i], rows[j], strict=True))

        heads = [*zip(*vectors.tolist(), strict=True)]
        return sum(oracle(head, related, margin, reduction) for head in heads) / len(heads)

    return images * view(output.subembeddings, match) + texts * view(
        output.text_subembeddings, columns)
