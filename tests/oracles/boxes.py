"""Boxes, one by one: overlap, union, suppression, pooling."""


def area(box):
    return max(box[2] - box[0], 0) * max(box[3] - box[1], 0)


def common(a, b):
    return area((max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])))


def iou(a, b):
    return common(a, b) / (area(a) + area(b) - common(a, b))


def covered(place, boxes, fine):
    """Share of the points of a raster in a place that lie in a box; exact where all edges are
    multiples of 1 / fine."""
    inside = total = 0
    for row in range(fine):
        for column in range(fine):
            x, y = (column + 0.5) / fine, (row + 0.5) / fine
            if place[0] < x < place[2] and place[1] < y < place[3]:
                total += 1
                inside += any(b[0] < x < b[2] and b[1] < y < b[3] for b in boxes)
    return inside / total


def separate(boxes, scores, overlap, classes):
    """Greedy suppression: a box stays unless one that stays before it is of its class and alike."""
    kept = []
    for i in sorted(range(len(boxes)), key=lambda i: (-scores[i], i)):
        if not any(classes[i] == classes[j] and iou(boxes[i], boxes[j]) > overlap for j in kept):
            kept.append(i)
    return kept


def pooled(grid, side, box):
    """Mean of the cells of a grid by the area they share with a box."""
    total, weights = [0.0] * len(grid[0]), 0.0
    for row in range(side):
        for column in range(side):
            cell = (column / side, row / side, (column + 1) / side, (row + 1) / side)
            weight = common(cell, box)
            weights += weight
            total = [t + weight * g for t, g in zip(total, grid[row * side + column], strict=True)]
    return [t / weights for t in total]


def distances(logits, stride):
    """Mean of a softmax over 0, 1, 2, ... strides, for each of four sides."""
    from math import exp

    found = []
    for side in logits:
        weights = [exp(value - max(side)) for value in side]
        found.append(stride * sum(i * w for i, w in enumerate(weights)) / sum(weights))
    return found
