"""Draw pictures of `scenes`: things as stickers with texture and shadow, before a background."""

import math
from collections.abc import Callable
from typing import Any

from PIL import Image, ImageDraw, ImageFilter, ImageOps

from itr_study.data.scenes.words import COLOURS, PLACES, SHAPES, TEXTURES
from itr_study.data.scenes.world import Dice, Scene, Thing

SIDE = 224  # pixels
FINER = 3  # drawn this much larger, then reduced: smooth edges
RGB = {"red": (222, 56, 50), "orange": (245, 140, 30), "yellow": (250, 208, 48),
       "green": (60, 160, 72), "blue": (44, 106, 212), "purple": (132, 70, 176),
       "pink": (244, 142, 182), "white": (244, 244, 240), "black": (52, 52, 60)}
WHITE = (255, 255, 255)
Colour = tuple[int, int, int]
Points = list[tuple[float, float]]  # x to the right and y down, in [0, 1]


def draw(scene: Scene, *key: int) -> Image.Image:
    """Draw a scene, SIDE x SIDE RGB; the key seeds what chance adds to the background."""
    side = SIDE * FINER
    picture = background(PLACES[scene.place], side, Dice(*key))
    for thing in scene.things:
        _put(picture, thing, side)
    return picture.resize((SIDE, SIDE), Image.Resampling.BOX)


def background(place: str, side: int, dice: Dice) -> Image.Image:
    """Paint an empty place: its sky, then its layers from back to front."""
    sky, *layers = BACKGROUNDS[place]
    picture = ImageOps.colorize(Image.linear_gradient("L").resize((side, side)), *sky)
    for paint, *arguments in layers:
        paint(picture, dice, *arguments)
    return picture


def _hills(picture: Image.Image, dice: Dice, level: float, height: float, colour: Colour) -> None:
    """Fill everything below a wavy line around `level` (both in sides, from the top)."""
    side = picture.width
    waves = [(height * side * share, (1 + k + dice.below(100) / 100) * math.tau / side,
              dice.below(628) / 100) for k, share in enumerate((0.6, 0.3, 0.1))]
    line = [(x, level * side + sum(a * math.sin(f * x + p) for a, f, p in waves))
            for x in range(0, side + 8, 8)]
    ImageDraw.Draw(picture).polygon([(0, side), *line, (side + 8, side)], fill=colour)


def _disc(picture: Image.Image, x: float, y: float, radius: float, **style: Any) -> None:
    ImageDraw.Draw(picture).ellipse((x - radius, y - radius, x + radius, y + radius), **style)


def _sun(picture: Image.Image, dice: Dice, colour: Colour) -> None:
    side = picture.width
    x, y, r = side * (12 + dice.below(76)) // 100, side * (8 + dice.below(12)) // 100, side // 14
    glow = Image.new("L", picture.size)
    _disc(glow, x, y, 2 * r, fill=110)
    small = glow.resize((side // 8, side // 8)).filter(ImageFilter.GaussianBlur(5))
    picture.paste(colour, (0, 0), small.resize(picture.size))
    _disc(picture, x, y, r, fill=colour)


def _low_sun(picture: Image.Image, dice: Dice, colour: Colour) -> None:
    side = picture.width
    _disc(picture, side * (20 + dice.below(60)) // 100, side * 68 // 100, side // 8, fill=colour)


def _clouds(picture: Image.Image, dice: Dice) -> None:
    side = picture.width
    veil = Image.new("L", picture.size)
    pen = ImageDraw.Draw(veil)
    for _ in range(3):
        x, y = dice.below(side), side * (6 + dice.below(26)) // 100
        for dx, r in ((-0.06, 0.03), (-0.02, 0.045), (0.03, 0.035), (0.07, 0.025)):
            a, b = x + dx * side, r * side
            pen.ellipse((a - 1.3 * b, y - b, a + 1.3 * b, y + b * 0.7), fill=200)
    picture.paste(WHITE, (0, 0), veil)


def _specks(picture: Image.Image, dice: Dice, count: int, top: float, bottom: float,
            colour: Colour, radius: float) -> None:
    """Scatter dots between two heights: stars, snow, pebbles."""
    side = picture.width
    for _ in range(count):
        x, y = dice.below(side), side * (top + (bottom - top) * dice.below(1000) / 1000)
        _disc(picture, x, y, side * radius * (40 + dice.below(60)) / 100, fill=colour)


def _walls(picture: Image.Image, dice: Dice) -> None:
    side, pen = picture.width, ImageDraw.Draw(picture)
    wall = dice.pick(((214, 204, 226), (226, 214, 196), (196, 218, 214)))
    picture.paste(wall, (0, 0, side, side))
    for x in range(0, side, side // 10):
        pen.rectangle((x, 0, x + side // 20, side), fill=tuple(v - 9 for v in wall))
    floor = round(side * (0.66 + 0.08 * dice.below(100) / 100))
    pen.rectangle((0, floor - side // 36, side, side), fill=(248, 246, 240))
    for row, y in enumerate(range(floor, side, side // 14)):
        pen.rectangle((0, y, side, side), fill=((176, 124, 80), (166, 114, 72))[row % 2])
        for x in range(row % 2 * side // 6, side, side // 3):
            pen.line((x, y, x, y + side // 14), fill=(140, 94, 58), width=side // 220)


def _rays(picture: Image.Image, dice: Dice) -> None:
    side = picture.width
    rays = Image.new("L", picture.size)
    for _ in range(4):
        x = dice.below(side)
        ImageDraw.Draw(rays).polygon([(x, 0), (x + side // 12, 0), (x + side // 3, side),
                                      (x + side // 9, side)], fill=36)
    picture.paste(WHITE, (0, 0), rays.filter(ImageFilter.GaussianBlur(side / 80)))


def _bubbles(picture: Image.Image, dice: Dice) -> None:
    side = picture.width
    for _ in range(14):
        x, y, r = dice.below(side), dice.below(side), side * (6 + dice.below(10)) // 1000
        _disc(picture, x, y, r, outline=(190, 232, 244), width=side // 220)


# Of each place the sky, from top to bottom (and in its middle), then what is painted over it.
BACKGROUNDS: dict[str, tuple[tuple, ...]] = {
    "meadow": (((118, 184, 240), (222, 240, 252)), (_sun, (255, 240, 170)), (_clouds,),
               (_hills, 0.52, 0.05, (148, 200, 106)), (_hills, 0.64, 0.05, (118, 182, 84)),
               (_hills, 0.80, 0.03, (98, 164, 72))),
    "beach": (((94, 190, 238), (206, 240, 250)), (_clouds,),
              (_hills, 0.46, 0.0, (38, 146, 186)), (_hills, 0.56, 0.004, (72, 182, 204)),
              (_hills, 0.64, 0.02, (240, 246, 244)), (_hills, 0.66, 0.02, (240, 220, 170)),
              (_specks, 70, 0.70, 1.0, (212, 186, 132), 0.003)),
    "snow": (((168, 194, 222), (232, 240, 248)), (_hills, 0.48, 0.09, (202, 216, 234)),
             (_hills, 0.62, 0.06, (224, 234, 245)), (_hills, 0.78, 0.04, (242, 247, 252)),
             (_specks, 110, 0.0, 1.0, WHITE, 0.006)),
    "desert": (((250, 206, 130), (254, 240, 204)), (_sun, (255, 250, 220)),
               (_hills, 0.50, 0.07, (232, 180, 104)), (_hills, 0.63, 0.07, (218, 160, 84)),
               (_hills, 0.79, 0.06, (202, 140, 68))),
    "night": (((12, 16, 48), (48, 60, 116)), (_specks, 90, 0.0, 0.72, (255, 250, 214), 0.004),
              (_hills, 0.70, 0.05, (26, 38, 66)), (_hills, 0.82, 0.04, (18, 28, 48))),
    "room": ((WHITE, WHITE), (_walls,)),
    "sunset": (((96, 62, 138), (255, 176, 96), (236, 104, 110)), (_low_sun, (255, 226, 140)),
               (_hills, 0.68, 0.09, (116, 58, 104)), (_hills, 0.82, 0.05, (72, 38, 80))),
    "sea": (((74, 188, 214), (8, 66, 122)), (_rays,), (_hills, 0.84, 0.03, (38, 112, 128)),
            (_hills, 0.90, 0.03, (196, 184, 138)), (_bubbles,)),
}

# Outlines of the things, each filling its box from edge to edge.


def _around(point_at: Callable[[float], tuple[float, float]], count: int = 120) -> Points:
    """A closed curve given by (x, y) at each angle."""
    return [point_at(math.tau * i / count) for i in range(count)]


def _fill_box(points: Points) -> Points:
    """The points stretched to all four edges of the unit box."""
    xs, ys = zip(*points, strict=True)
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
    """Draw a shape as a mask (mode L, wide x high pixels)."""
    mask = Image.new("L", (wide, high))
    pen = ImageDraw.Draw(mask)
    for value, polygons in zip((255, 0), OUTLINES[shape], strict=True):
        for points in polygons:
            pen.polygon([(x * (wide - 1), y * (high - 1)) for x, y in points], fill=value)
    return mask


def _put(picture: Image.Image, thing: Thing, side: int) -> None:
    """Draw one thing: shadow, light rim, textured body."""
    wide, high = (round(e * side / 500) for e in thing.extent)
    pad = side // 40
    size = (wide + 2 * pad, high + 2 * pad)
    mask = Image.new("L", size)
    mask.paste(silhouette(SHAPES[thing.shape], wide, high), (pad, pad))
    rim = mask.filter(ImageFilter.GaussianBlur(side / 270)).point(lambda v: min(255, 7 * v))
    shadow = rim.filter(ImageFilter.GaussianBlur(side / 110)).point(lambda v: v * 90 // 255)
    left = round(thing.x * side / 1000) - size[0] // 2
    top = round(thing.y * side / 1000) - size[1] // 2
    drop = side // 90
    picture.paste((0, 0, 0), (left + drop // 2, top + drop), shadow)
    picture.paste(WHITE, (left, top), rim)
    picture.paste(_body(thing, size, side), (left, top), mask)


def _body(thing: Thing, size: tuple[int, int], side: int) -> Image.Image:
    """The colour with its texture and a little light from above."""
    colour = RGB[COLOURS[thing.colour]]
    body = Image.new("RGB", size, colour)
    dark = sum(colour) < 300
    second = _mix(colour, WHITE, 0.62) if dark else _mix(colour, (20, 20, 40), 0.45)
    if sum(colour) > 300 and colour[2] < 120:
        second = _mix(colour, WHITE, 0.68)
    if paint := _TEXTURES.get(TEXTURES[thing.texture]):  # none is painted on a plain thing
        texture = Image.new("L", size)
        paint(ImageDraw.Draw(texture), *size, side // 26)
        body.paste(second, (0, 0), texture)
    light = Image.linear_gradient("L").resize(size)
    body.paste(WHITE, (0, 0), light.point(lambda v: max(0, 110 - v) * 60 // 110))
    body.paste((0, 0, 0), (0, 0), light.point(lambda v: max(0, v - 130) * 50 // 125))
    return body


def _mix(a: Colour, b: Colour, share: float) -> tuple[int, ...]:
    return tuple(round(x * (1 - share) + y * share) for x, y in zip(a, b, strict=True))


def _striped(pen: ImageDraw.ImageDraw, wide: int, high: int, step: int) -> None:
    for x in range(-high, wide, 2 * step):
        pen.polygon([(x, high), (x + step, high), (x + step + high, 0), (x + high, 0)], fill=255)


def _dotted(pen: ImageDraw.ImageDraw, wide: int, high: int, step: int) -> None:
    radius = step * 0.5
    for row, y in enumerate(range(step // 2, high + step, round(step * 1.3))):
        for x in range(row % 2 * round(step * 0.75), wide + step, round(step * 1.5)):
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)


def _checked(pen: ImageDraw.ImageDraw, wide: int, high: int, step: int) -> None:
    for row, y in enumerate(range(0, high, step)):
        for x in range(row % 2 * step, wide, 2 * step):
            pen.rectangle((x, y, x + step - 1, y + step - 1), fill=255)


_TEXTURES = {"striped": _striped, "dotted": _dotted, "checked": _checked}
