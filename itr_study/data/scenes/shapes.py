"""Outlines of the things of `scenes`, each filling its box from edge to edge."""

import math

from PIL import Image, ImageDraw

Points = list[tuple[float, float]]  # x to the right and y down, in [0, 1]


def _around(radius_at, count: int = 120) -> Points:
    """A closed curve given by (x, y) at each angle."""
    return [radius_at(math.tau * i / count) for i in range(count)]


def _fill_box(points: Points) -> Points:
    """The points stretched so that they touch all four edges of the unit box."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    wide, high = max(xs) - min(xs), max(ys) - min(ys)
    return [((x - min(xs)) / wide, (y - min(ys)) / high) for x, y in points]


def _star() -> Points:
    spokes = [(1.0 if i % 2 == 0 else 0.46, math.pi * i / 5) for i in range(10)]
    return _fill_box([(r * math.sin(a), -r * math.cos(a)) for r, a in spokes])


def _heart() -> Points:
    return _fill_box(_around(lambda t: (
        16 * math.sin(t) ** 3,
        -13 * math.cos(t) + 5 * math.cos(2 * t) + 2 * math.cos(3 * t) + math.cos(4 * t))))


def _moon() -> Points:
    angles = [math.radians(a) for a in range(35, 326, 5)]  # the opening looks to the right
    outer = [(math.cos(a), math.sin(a)) for a in angles]
    tip_x, tip_y = outer[0]
    centre, radius = 0.42, math.hypot(tip_x - 0.42, tip_y)
    first = math.atan2(tip_y, tip_x - centre)
    steps = [first + (math.tau - 2 * first) * (1 - i / 60) for i in range(61)]
    return _fill_box(outer + [(centre + radius * math.cos(a), radius * math.sin(a)) for a in steps])


def _fish() -> Points:
    body = [(0.36 + 0.36 * math.cos(a), 0.5 + 0.5 * math.sin(a))
            for a in (math.radians(d) for d in range(28, 333, 4))]
    return _fill_box(body + [(1.0, 0.06), (0.9, 0.5), (1.0, 0.94)])


ELLIPSE = _around(lambda t: (0.5 + 0.5 * math.cos(t), 0.5 + 0.5 * math.sin(t)))
# Each shape: polygons that are filled, then polygons that are cut out.
OUTLINES: dict[str, tuple[list[Points], list[Points]]] = {
    "ball": ([ELLIPSE], []),
    "block": ([[(0, 0), (1, 0), (1, 1), (0, 1)]], []),
    "triangle": ([[(0.5, 0), (1, 1), (0, 1)]], []),
    "star": ([_star()], []),
    "heart": ([_heart()], []),
    "diamond": ([[(0.5, 0), (1, 0.5), (0.5, 1), (0, 0.5)]], []),
    "ring": ([ELLIPSE], [[(0.5 + 0.7 * (x - 0.5), 0.5 + 0.7 * (y - 0.5)) for x, y in ELLIPSE]]),
    "moon": ([_moon()], []),
    "house": ([[(0.5, 0), (1, 0.42), (0.9, 0.42), (0.9, 1), (0.1, 1), (0.1, 0.42), (0, 0.42)]],
              [[(0.2, 0.52), (0.42, 0.52), (0.42, 0.74), (0.2, 0.74)],
               [(0.56, 0.58), (0.78, 0.58), (0.78, 1), (0.56, 1)]]),
    "tree": ([[(0.5, 0), (0.8, 0.36), (0.68, 0.36), (0.92, 0.6), (0.78, 0.6), (1, 0.84),
               (0.6, 0.84), (0.6, 1), (0.4, 1), (0.4, 0.84), (0, 0.84), (0.22, 0.6),
               (0.08, 0.6), (0.32, 0.36), (0.2, 0.36)]], []),
    "fish": ([_fish()], [[(0.19 + 0.05 * (x - 0.5) * 2, 0.38 + 0.08 * (y - 0.5) * 2)
                          for x, y in ELLIPSE]]),
    "boat": ([[(0, 0.68), (1, 0.68), (0.82, 1), (0.18, 1)],
              [(0.46, 0), (0.51, 0), (0.51, 0.7), (0.46, 0.7)],
              [(0.55, 0.04), (0.95, 0.6), (0.55, 0.6)], [(0.42, 0.12), (0.42, 0.6), (0.12, 0.6)]],
             []),
}


def silhouette(shape: str, wide: int, high: int) -> Image.Image:
    """A mask (mode L, wide x high pixels) of the shape."""
    filled, cut = OUTLINES[shape]
    mask = Image.new("L", (wide, high))
    pen = ImageDraw.Draw(mask)
    for value, polygons in ((255, filled), (0, cut)):
        for points in polygons:
            pen.polygon([(x * (wide - 1), y * (high - 1)) for x, y in points], fill=value)
    return mask
