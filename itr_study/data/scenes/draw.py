"""Pictures of `scenes`: things as stickers with texture and shadow, before a background."""

from collections.abc import Callable

from PIL import Image, ImageDraw, ImageFilter

from itr_study.data.scenes.backgrounds import BACKGROUNDS
from itr_study.data.scenes.shapes import silhouette
from itr_study.data.scenes.words import COLOURS, PLACES, SHAPES, TEXTURES
from itr_study.data.scenes.world import Dice, Scene, Thing

SIDE = 224  # pixels
FINER = 3  # drawn this much larger, then reduced: smooth edges
RGB = {"red": (222, 56, 50), "orange": (245, 140, 30), "yellow": (250, 208, 48),
       "green": (60, 160, 72), "blue": (44, 106, 212), "purple": (132, 70, 176),
       "pink": (244, 142, 182), "white": (244, 244, 240), "black": (52, 52, 60)}
Mask = Image.Image  # mode L


def draw(scene: Scene, *key: int) -> Image.Image:
    """The picture, SIDE x SIDE RGB."""
    dice = Dice(*key)
    side = SIDE * FINER
    picture = BACKGROUNDS[PLACES[scene.place]](side, dice)
    for thing in scene.things:
        _put(picture, thing, side)
    return picture.resize((SIDE, SIDE), Image.Resampling.BOX)


def _put(picture: Image.Image, thing: Thing, side: int) -> None:
    """Draws one thing: shadow, light rim, textured body."""
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
    picture.paste((255, 255, 255), (left, top), rim)
    picture.paste(_body(thing, size, side), (left, top), mask)


def _body(thing: Thing, size: tuple[int, int], side: int) -> Image.Image:
    """The colour with its texture and a little light from above."""
    colour = RGB[COLOURS[thing.colour]]
    body = Image.new("RGB", size, colour)
    dark = sum(colour) < 300
    second = _mix(colour, (255, 255, 255), 0.62) if dark else _mix(colour, (20, 20, 40), 0.45)
    if sum(colour) > 300 and colour[2] < 120:
        second = _mix(colour, (255, 255, 255), 0.68)
    body.paste(second, (0, 0), _TEXTURES[TEXTURES[thing.texture]](size, side // 26))
    light = Image.linear_gradient("L").resize(size)
    body.paste((255, 255, 255), (0, 0), light.point(lambda v: max(0, 110 - v) * 60 // 110))
    body.paste((0, 0, 0), (0, 0), light.point(lambda v: max(0, v - 130) * 50 // 125))
    return body


def _mix(a: tuple[int, ...], b: tuple[int, ...], share: float) -> tuple[int, ...]:
    return tuple(round(x * (1 - share) + y * share) for x, y in zip(a, b, strict=True))


def _plain(size: tuple[int, int], step: int) -> Mask:
    return Image.new("L", size)


def _striped(size: tuple[int, int], step: int) -> Mask:
    mask = Image.new("L", size)
    pen = ImageDraw.Draw(mask)
    for x in range(-size[1], size[0], 2 * step):
        pen.polygon([(x, size[1]), (x + step, size[1]), (x + step + size[1], 0), (x + size[1], 0)],
                    fill=255)
    return mask


def _dotted(size: tuple[int, int], step: int) -> Mask:
    mask = Image.new("L", size)
    pen = ImageDraw.Draw(mask)
    radius = step * 0.5
    for row, y in enumerate(range(step // 2, size[1] + step, round(step * 1.3))):
        for x in range(row % 2 * round(step * 0.75), size[0] + step, round(step * 1.5)):
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
    return mask


def _checked(size: tuple[int, int], step: int) -> Mask:
    mask = Image.new("L", size)
    pen = ImageDraw.Draw(mask)
    for row, y in enumerate(range(0, size[1], step)):
        for x in range(row % 2 * step, size[0], 2 * step):
            pen.rectangle((x, y, x + step - 1, y + step - 1), fill=255)
    return mask


_TEXTURES: dict[str, Callable[[tuple[int, int], int], Mask]] = {
    "plain": _plain, "striped": _striped, "dotted": _dotted, "checked": _checked}
