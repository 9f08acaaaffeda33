"""Recall by loops: compare every candidate with the best match, count, done."""

HAND = [  # scores, image_of_text, arguments, value worked by hand
    # image 0 finds text 0 second, image 1 finds text 1 first; both texts find their image first
    ([[0.3, 0.4], [0.2, 0.5]], [0, 1], {"ks": (1, 2)},
     {"i2t_r1": 1 / 2, "i2t_r2": 2 / 2, "t2i_r1": 2 / 2, "t2i_r2": 2 / 2}),
    # one of three texts first and two last: found at 1, not a third found
    ([[0.9, 0.1, 0.2, 0.5], [0.4, 0.3, 0.3, 0.6]], [0, 0, 0, 1], {"ks": (1,)},
     {"i2t_r1": 2 / 2, "t2i_r1": (1 + 0 + 0 + 1) / 4}),
    # constant scores: every match is last, image 0 of 1 rival text, image 1 of 2
    ([[0.5] * 3] * 2, [0, 0, 1], {"ks": (1, 2, 3)},
     {"i2t_r1": 0.0, "i2t_r2": 1 / 2, "i2t_r3": 1.0, "t2i_r1": 0.0, "t2i_r2": 1.0, "t2i_r3": 1.0}),
    ([[0.1, 0.1]], [0, 0], {"ks": (1,)}, {"i2t_r1": 1.0, "t2i_r1": 1.0}),  # nothing but matches
]


def oracle_ranks(scores, image_of_text):
    """(i2t, t2i) 1-based ranks as lists."""
    images, texts = range(len(scores)), range(len(image_of_text))
    i2t = []
    for i in images:
        best = max(scores[i][t] for t in texts if image_of_text[t] == i)
        i2t.append(1 + sum(scores[i][t] >= best for t in texts if image_of_text[t] != i))
    t2i = []
    for t in texts:
        own = scores[image_of_text[t]][t]
        t2i.append(1 + sum(scores[i][t] >= own for i in images if i != image_of_text[t]))
    return i2t, t2i


def oracle(scores, image_of_text, ks=(1, 5, 10)):
    found = dict(zip(("i2t", "t2i"), oracle_ranks(scores, image_of_text), strict=True))
    return {f"{d}_r{k}": sum(r <= k for r in found[d]) / len(found[d]) for d in found for k in ks}
