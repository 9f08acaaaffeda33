"""Mean relevance of the first k by sorting each list; of equal scores the least relevant first."""

HAND = [  # scores, image_of_text, arguments, value worked by hand
    # image 0: texts 2, 0 are the first two, one its own: 1/2; image 1: texts 2, 0, one its own: 1/2
    # texts: both images are the first two, one is theirs
    ([[0.5, 0.1, 0.7], [0.4, 0.3, 0.6]], [0, 0, 1], {"k": 2}, {"i2t_rel2": 0.5, "t2i_rel2": 0.5}),
    # a list of three, all of it: image 0 has two texts of three, image 1 has one
    ([[0.5, 0.1, 0.7], [0.4, 0.3, 0.6]], [0, 0, 1], {}, {"i2t_rel10": 0.5, "t2i_rel10": 0.5}),
    # equal scores: the match is not the one that is taken
    ([[0.5, 0.5], [0.5, 0.5]], [0, 1], {"k": 1}, {"i2t_rel1": 0.0, "t2i_rel1": 0.0}),
    # image 0 finds its text first, image 1 does not; text 0 finds image 0; text 1 image 0 too
    ([[0.9, 0.8], [0.3, 0.2]], [0, 1], {"k": 1}, {"i2t_rel1": 0.5, "t2i_rel1": 0.5}),
]


def query_relevance(scores, relevance, k):
    """Of one list."""
    order = sorted(range(len(scores)), key=lambda j: (-scores[j], relevance[j]))[:k]
    return sum(relevance[j] for j in order) / len(order)


def graded_oracle(scores, relevance, k=10):
    """Values of all images, and of all texts from the transposes, as two lists."""
    columns = list(zip(*scores, strict=True)), list(zip(*relevance, strict=True))
    return tuple([query_relevance(s, r, k) for s, r in zip(*rows, strict=True)]
                 for rows in ((scores, relevance), columns))


def oracle(scores, image_of_text, k=10):
    relevance = [[float(owner == i) for owner in image_of_text] for i in range(len(scores))]
    values = graded_oracle(scores, relevance, k)
    return {f"{d}_rel{k}": sum(x) / len(x) for d, x in zip(("i2t", "t2i"), values, strict=True)}
