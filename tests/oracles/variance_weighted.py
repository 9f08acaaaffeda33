import math

from tests.oracles.loops import directions

ONE_HEAD = [[[0.9, 0.8, 0.6], [0.3, 0.5, 0.1]]]
STD = math.sqrt(0.02)  # of 0.8 and 0.6, and (around 0.2) of 0.3 and 0.1
HAND = [  # arguments, fields of the output, relevance, value worked by hand
    # one image, one head: hinge 0.1, Std of 0.8 and 0.6 is 0.1414; no other image
    (dict(margin=0.2), dict(head_scores=[[[0.9, 0.8, 0.6]]]), [[1, 0, 0]],
     0.1 / (1 + STD) ** 2 + math.log(1 + STD)),
    (dict(margin=0.2, weights="equal"), dict(head_scores=[[[0.9, 0.8, 0.6]]]), [[1, 0, 0]], 0.1),
    # two heads add up; each has its own spread
    (dict(margin=0.2), dict(head_scores=[[[0.9, 0.8, 0.6]], [[0.5, 0.4, 0.4]]]), [[1, 0, 0]],
     0.1 / (1 + STD) ** 2 + math.log(1 + STD) + 0.1),
    # two images: texts 0 and 1 match them; of a text there is one other image: no spread
    (dict(margin=0.2), dict(head_scores=ONE_HEAD), [[1, 0, 0], [0, 1, 0]],
     (0.1 / (1 + STD) ** 2 + math.log(1 + STD) + 0.0 / (1 + STD) ** 2 + math.log(1 + STD)
      + 0.0 + (0.2 + 0.8 - 0.5)) / 2),
    (dict(margin=0.2, reduction="sum", weights="equal"), dict(head_scores=ONE_HEAD),
     [[1, 0, 0], [0, 1, 0]], 0.1 + 0.0 + 0.0 + 0.5),
    (dict(), dict(head_scores=[[[0.4, 0.6]]]), [[1, 1]], 0.0),  # no negative at all
    # of two texts of one image each is among the other's non-targets: Std of 0.7 and 0.1, and of
    # 0.9 and 0.1; no hinge
    (dict(margin=0.2), dict(head_scores=[[[0.9, 0.7, 0.1]]]), [[1, 1, 0]],
     (math.log(1 + 0.6 / math.sqrt(2)) + math.log(1 + 0.8 / math.sqrt(2))) / 2),
]


def oracle(head_scores, relevance, margin=0.2, weights="variance", spread="cosine",
           detach=True, reduction="mean"):
    total, matches = 0.0, sum(value == 1 for row in relevance for value in row)
    for scores in head_scores:
        for queries, labels in directions(scores, relevance):
            for row, of in zip(map(list, queries), labels, strict=True):
                values = softmax(row) if spread == "softmax" else row
                negatives = [v for v, r in zip(row, of, strict=True) if r != 1]
                for t, relevant in enumerate(of):
                    if relevant == 1:
                        sigma = 1 + std(values[:t] + values[t + 1:])
                        hinge = max([0.0, *(margin + other - row[t] for other in negatives)])
                        total += (hinge if weights == "equal"
                                  else hinge / sigma ** 2 + math.log(sigma))
    return total if reduction == "sum" or not matches else total / matches


def std(values):
    if len(values) < 2:
        return 0.0
    mean = sum(values) / len(values)
    return math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))


def softmax(values):
    exps = [math.exp(v) for v in values]
    return [e / sum(exps) for e in exps]


def from_output(output, relevance, **arguments):
    return oracle(output.head_scores.tolist(), relevance.tolist(), **arguments)
