"""Backgrounds of `scenes`: one function per place, each with a little chance in it."""

import math
from collections.abc import Callable

from PIL import Image, ImageDraw, ImageFilter, ImageOps

from itr_study.data.scenes.world import Dice

Colour = tuple[int, int, int]


def meadow(side: int, dice: Dice) -> Image.Image:
    picture = _gradient(side, (118, 184, 240), (222, 240, 252))
    _sun(picture, dice, (255, 240, 170))
    _clouds(picture, dice, (255, 255, 255))
    _hills(picture, dice, 0.52, 0.05, (148, 200, 106))
    _hills(picture, dice, 0.64, 0.05, (118, 182, 84))
    _hills(picture, dice, 0.80, 0.03, (98, 164, 72))
    return picture


def beach(side: int, dice: Dice) -> Image.Image:
    picture = _gradient(side, (94, 190, 238), (206, 240, 250))
    _clouds(picture, dice, (255, 255, 255))
    _hills(picture, dice, 0.46, 0.0, (38, 146, 186))
    _hills(picture, dice, 0.56, 0.004, (72, 182, 204))
    _hills(picture, dice, 0.64, 0.02, (240, 246, 244))
    _hills(picture, dice, 0.66, 0.02, (240, 220, 170))
    _specks(picture, dice, 70, 0.70, 1.0, (212, 186, 132), 0.003)
    return picture


def snow(side: int, dice: Dice) -> Image.Image:
    picture = _gradient(side, (168, 194, 222), (232, 240, 248))
    _hills(picture, dice, 0.48, 0.09, (202, 216, 234))
    _hills(picture, dice, 0.62, 0.06, (224, 234, 245))
    _hills(picture, dice, 0.78, 0.04, (242, 247, 252))
    _specks(picture, dice, 110, 0.0, 1.0, (255, 255, 255), 0.006)
    return picture


def desert(side: int, dice: Dice) -> Image.Image:
    picture = _gradient(side, (250, 206, 130), (254, 240, 204))
    _sun(picture, dice, (255, 250, 220))
    _hills(picture, dice, 0.50, 0.07, (232, 180, 104))
    _hills(picture, dice, 0.63, 0.07, (218, 160, 84))
    _hills(picture, dice, 0.79, 0.06, (202, 140, 68))
    return picture


def night(side: int, dice: Dice) -> Image.Image:
    picture = _gradient(side, (12, 16, 48), (48, 60, 116))
    _specks(picture, dice, 90, 0.0, 0.72, (255, 250, 214), 0.004)
    _hills(picture, dice, 0.70, 0.05, (26, 38, 66))
    _hills(picture, dice, 0.82, 0.04, (18, 28, 48))
    return picture


def room(side: int, dice: Dice) -> Image.Image:
    wall = dice.pick(((214, 204, 226), (226, 214, 196), (196, 218, 214)))
    picture = _gradient(side, wall, wall)
    pen = ImageDraw.Draw(picture)
    for x in range(0, side, side // 10):
        pen.rectangle((x, 0, x + side // 20, side), fill=tuple(v - 9 for v in wall))
    floor = round(side * (0.66 + 0.08 * dice.below(100) / 100))
    pen.rectangle((0, floor - side // 36, side, side), fill=(248, 246, 240))
    for row, y in enumerate(range(floor, side, side // 14)):
        pen.rectangle((0, y, side, side), fill=((176, 124, 80), (166, 114, 72))[row % 2])
        for x in range(row % 2 * side // 6, side, side // 3):
            pen.line((x, y, x, y + side // 14), fill=(140, 94, 58), width=side // 220)
    return picture


def sunset(side: int, dice: Dice) -> Image.Image:
    picture = _gradient(side, (96, 62, 138), (255, 176, 96), (236, 104, 110))
    x, y, r = side * (20 + dice.below(60)) // 100, side * 68 // 100, side // 8
    ImageDraw.Draw(picture).ellipse((x - r, y - r, x + r, y + r), fill=(255, 226, 140))
    _hills(picture, dice, 0.68, 0.09, (116, 58, 104))
    _hills(picture, dice, 0.82, 0.05, (72, 38, 80))
    return picture


def sea(side: int, dice: Dice) -> Image.Image:
    picture = _gradient(side, (74, 188, 214), (8, 66, 122))
    rays = Image.new("L", picture.size)
    pen = ImageDraw.Draw(rays)
    for _ in range(4):
        x = dice.below(side)
        pen.polygon([(x, 0), (x + side // 12, 0), (x + side // 3, side), (x + side // 9, side)],
                    fill=36)
    picture.paste((255, 255, 255), (0, 0), rays.filter(ImageFilter.GaussianBlur(side / 80)))
    _hills(picture, dice, 0.84, 0.03, (38, 112, 128))
    _hills(picture, dice, 0.90, 0.03, (196, 184, 138))
    _bubbles(picture, dice)
    return picture


BACKGROUNDS: dict[str, Callable[[int, Dice], Image.Image]] = {
    place.__name__: place for place in (meadow, beach, snow, desert, night, room, sunset, sea)}


def _gradient(side: int, top: Colour, bottom: Colour, middle: Colour | None = None) -> Image.Image:
    """A vertical change of colour."""
    return ImageOps.colorize(Image.linear_gradient("L").resize((side, side)), top, bottom, middle)


def _hills(picture: Image.Image, dice: Dice, level: float, height: float, colour: Colour) -> None:
    """Everything below a wavy line around `level` (both in sides, from the top)."""
    side = picture.width
    waves = [(height * side * share, (1 + k + dice.below(100) / 100) * math.tau / side,
              dice.below(628) / 100) for k, share in enumerate((0.6, 0.3, 0.1))]
    line = [(x, level * side + sum(a * math.sin(f * x + p) for a, f, p in waves))
            for x in range(0, side + 8, 8)]
    ImageDraw.Draw(picture).polygon([(0, side), *line, (side + 8, side)], fill=colour)


def _sun(picture: Image.Image, dice: Dice, colour: Colour) -> None:
    side = picture.width
    x, y, r = side * (12 + dice.below(76)) // 100, side * (8 + dice.below(12)) // 100, side // 14
    glow = Image.new("L", picture.size)
    ImageDraw.Draw(glow).ellipse((x - 2 * r, y - 2 * r, x + 2 * r, y + 2 * r), fill=110)
    small = glow.resize((side // 8, side // 8)).filter(ImageFilter.GaussianBlur(5))
    picture.paste(colour, (0, 0), small.resize(picture.size))
    ImageDraw.Draw(picture).ellipse((x - r, y - r, x + r, y + r), fill=colour)


def _clouds(picture: Image.Image, dice: Dice, colour: Colour) -> None:
    side = picture.width
    veil = Image.new("L", picture.size)
    pen = ImageDraw.Draw(veil)
    for _ in range(3):
        x, y = dice.below(side), side * (6 + dice.below(26)) // 100
        for dx, r in ((-0.06, 0.03), (-0.02, 0.045), (0.03, 0.035), (0.07, 0.025)):
            a, b = x + dx * side, r * side
            pen.ellipse((a - 1.3 * b, y - b, a + 1.3 * b, y + b * 0.7), fill=200)
    picture.paste(colour, (0, 0), veil)


def _specks(picture: Image.Image, dice: Dice, count: int, top: float, bottom: float,
            colour: Colour, radius: float) -> None:
    """Dots scattered between two heights: stars, snow, pebbles."""
    side = picture.width
    pen = ImageDraw.Draw(picture)
    for _ in range(count):
        x, y = dice.below(side), side * (top + (bottom - top) * dice.below(1000) / 1000)
        r = side * radius * (40 + dice.below(60)) / 100
        pen.ellipse((x - r, y - r, x + r, y + r), fill=colour)


def _bubbles(picture: Image.Image, dice: Dice) -> None:
    side = picture.width
    pen = ImageDraw.Draw(picture)
    for _ in range(14):
        x, y, r = dice.below(side), dice.below(side), side * (6 + dice.below(10)) // 1000
        pen.ellipse((x - r, y - r, x + r, y + r), outline=(190, 232, 244), width=side // 220)
