"""Plain loops shared by the oracles of losses on scores: no tensors, no masks."""


def per_match(scores, relevance):
    """For each match: its score, the scores of the other texts, the scores of the other images."""
    images, texts = range(len(scores)), range(len(scores[0]))
    for i in images:
        for t in texts:
            if relevance[i][t] == 1:
                yield (scores[i][t],
                       [scores[i][u] for u in texts if relevance[i][u] != 1],
                       [scores[j][t] for j in images if relevance[j][t] != 1])


def hinge_oracle(scores, relevance, margin, negative, reduction):
    """Mean (or sum) over matches of [margin + negative(others) - own]+ in both directions."""
    total, matches = 0.0, 0
    for own, other_texts, other_images in per_match(scores, relevance):
        matches += 1
        for others in (other_texts, other_images):
            if others:
                total += max(0.0, margin + negative(others) - own)
    return total if reduction == "sum" or matches == 0 else total / matches


def directions(scores, relevance):
    """(lists of scores, lists of relevance): of every image, then of every text."""
    yield scores, relevance
    yield list(zip(*scores, strict=True)), list(zip(*relevance, strict=True))
