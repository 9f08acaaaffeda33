"""Maps over regions and the objects they fall on, image by image and head by head."""


def rank_weights(cosines, exists):
    """rho (R - r)^2; regions that tie have the mean of their weights."""
    places = [r for r, there in enumerate(exists) if there]
    ordered = sorted(places, key=lambda r: -cosines[r])
    raw = [(len(ordered) - r) ** 2 for r in range(len(ordered))]
    weights = [0.0] * len(cosines)
    for place in places:
        same = [raw[r] for r, other in enumerate(ordered) if cosines[other] == cosines[place]]
        weights[place] = sum(same) / len(same) / sum(raw)
    return weights


def mass(weights, shown):
    """Of one head on each object."""
    return [sum(w * region[o] for w, region in zip(weights, shown, strict=True))
            for o in range(len(shown[0]))]


def focus(heads, shown):
    return sum(max(mass(weights, shown)) for weights in heads) / len(heads)


def coverage(heads, shown):
    looked = set()
    for weights in heads:
        of_head = mass(weights, shown)
        if max(of_head) > 0:
            looked.add(of_head.index(max(of_head)))
    visible = sum(any(region[o] > 0 for region in shown) for o in range(len(shown[0])))
    return len(looked) / min(len(heads), visible)
