"""What is in a picture of `scenes`: a place, things, and where the things are.

All lengths are whole thousandths of the picture's side, x to the right and y down, so that every
relation is decided by integers and is the same on every machine. Scenes come in families, some
of them altered copies of others.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from itr_study.data.scenes.words import COLOURS, PLACES, RELATIONS, SHAPES, SIZES, TEXTURES, bits

MOST_THINGS = 5
RADII = {"small": (68, 80), "medium": (106, 122), "large": (156, 176)}  # half sides
# half width and half height of a shape in units of its radius, in percent
EXTENT = {"diamond": (74, 100), "moon": (78, 100), "house": (88, 100), "tree": (74, 100),
          "fish": (100, 64), "boat": (100, 92)}
USUAL_COLOUR = {"tree": "green", "heart": "red", "moon": "yellow", "star": "yellow",
                "fish": "orange", "boat": "blue", "house": "white", "ball": "red"}
CONTAINERS = ("ring", "block", "ball")
SUPPORTS = ("block", "house", "tree", "triangle", "ball")
FAMILY = 6  # scenes made together; the last TWINS of them are altered copies of the first ones
TWINS = 2
TOUCHING = bits(RELATIONS, "on", "under", "inside", "around")
Item = TypeVar("Item")


class Thing(NamedTuple):
    """One thing: indices into SHAPES, COLOURS, SIZES, TEXTURES; centre and radius (1/1000)."""

    shape: int
    colour: int
    size: int
    texture: int
    x: int
    y: int
    radius: int

    @property
    def extent(self) -> tuple[int, int]:
        """Half width and half height (1/1000)."""
        wide, high = EXTENT.get(SHAPES[self.shape], (100, 100))
        return self.radius * wide // 100, self.radius * high // 100


class Scene(NamedTuple):
    """A picture: an index into PLACES, and its things, those at the back first."""

    place: int
    things: tuple[Thing, ...]


class Dice:
    """Random choices from one numpy generator, with exact arithmetic only."""

    def __init__(self, *key: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))

    def below(self, n: int) -> int:
        """Draw a whole number in [0, n)."""
        return int(self._generator.random() * n)

    def chance(self, p: float) -> bool:
        """Draw yes with this probability."""
        return self._generator.random() < p

    def pick(self, options: Sequence[Item]) -> Item:
        """Draw one of the options."""
        return options[self.below(len(options))]

    def shuffled(self, items: Iterable[Item]) -> list[Item]:
        """Put the items in a random order."""
        items = list(items)
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
        return items


@lru_cache(maxsize=1024)  # each pair of a picture is asked for some ten times
def relations(a: Thing, b: Thing) -> int:
    """Tell which RELATIONS hold of a towards b, as a set of bits (0 for a thing and itself)."""
    dx, dy = b.x - a.x, b.y - a.y
    (aw, ah), (bw, bh) = a.extent, b.extent
    if abs(dx) + aw <= bw and abs(dy) + ah <= bh and ah < bh:
        return bits(RELATIONS, "inside")
    if abs(dx) + bw <= aw and abs(dy) + bh <= ah and bh < ah:
        return bits(RELATIONS, "around")
    held = []
    if dx and 5 * abs(dx) >= 3 * abs(dy):  # diagonal pairs are both beside and above or below
        held.append("left" if dx > 0 else "right")
    if dy and 5 * abs(dy) >= 3 * abs(dx):
        held.append("above" if dy > 0 else "below")
    if abs(dx) < max(aw, bw) // 2 and abs(abs(dy) - ah - bh) <= 2:  # they touch
        held.append("on" if dy > 0 else "under")
    return bits(RELATIONS, *held)


def family(*key: int) -> list[Scene]:
    """Make FAMILY scenes, the last TWINS of them differing from an earlier one by a single edit."""
    dice = Dice(*key)
    scenes = [fresh_scene(dice) for _ in range(FAMILY - TWINS)]
    return scenes + [edited(scene, dice) for scene in scenes[:TWINS]]


def fresh_scene(dice: Dice) -> Scene:
    """Make a scene from nothing; arrangements that do not fit are thrown away."""
    while True:
        count = dice.pick((2, 3, 3, 3, 4, 4, 4, 5, 5))
        groups = [_pair(dice)] if dice.chance(0.55) else []
        groups += [[_thing(dice, dice.pick(SIZES))] for _ in range(count - 2 * len(groups))]
        placed = _arrange(groups, dice)
        if placed is not None:
            return Scene(dice.below(len(PLACES)), placed)


def _thing(dice: Dice, size: str, shapes: tuple[str, ...] = SHAPES) -> Thing:
    shape = dice.pick(shapes)
    colour = dice.pick(COLOURS)
    if shape in USUAL_COLOUR and dice.chance(0.3):
        colour = USUAL_COLOUR[shape]
    texture = "plain" if dice.chance(0.45) else dice.pick(TEXTURES[1:])
    low, high = RADII[size]
    return Thing(SHAPES.index(shape), COLOURS.index(colour), SIZES.index(size),
                 TEXTURES.index(texture), 0, 0, low + dice.below(high - low + 1))


def _pair(dice: Dice) -> list[Thing]:
    """Two things, one inside or on the other, placed around the origin."""
    if dice.chance(0.45):
        outer = _thing(dice, "large", CONTAINERS)
        inner = _thing(dice, "small")
        while inner.colour == outer.colour:  # it must stand out
            inner = inner._replace(colour=dice.below(len(COLOURS)))
        return [outer, inner]
    lower = _thing(dice, dice.pick(("medium", "large")), SUPPORTS)
    upper = _thing(dice, dice.pick(("small", "small", "medium")))
    return [lower, upper._replace(y=-lower.extent[1] - upper.extent[1])]


def _arrange(groups: list[list[Thing]], dice: Dice) -> tuple[Thing, ...] | None:
    """All groups placed so that none overlap, or None after many attempts."""
    taken: list[tuple[int, int, int, int]] = []
    placed: list[Thing] = []
    for group in groups:
        left, top = (min(t[4 + axis] - t.radius for t in group) for axis in (0, 1))
        right, bottom = (max(t[4 + axis] + t.radius for t in group) for axis in (0, 1))
        for _ in range(40):
            x = 30 - left + dice.below(940 - (right - left))
            y = 30 - top + dice.below(940 - (bottom - top))
            box = (x + left - 12, y + top - 12, x + right + 12, y + bottom + 12)
            if not any(box[0] < other[2] and other[0] < box[2]
                       and box[1] < other[3] and other[1] < box[3] for other in taken):
                break
        else:
            return None
        taken.append(box)
        placed += [t._replace(x=t.x + x, y=t.y + y) for t in group]
    return tuple(placed)


# Edits that make near-duplicates. One that changes nothing, by chance or because the scene does
# not allow it, is drawn again.


def edited(scene: Scene, dice: Dice) -> Scene:
    """Make a near-duplicate: the scene after one edit."""
    while True:
        result = dice.pick(EDITS)(scene, dice)
        if sorted(result.things) != sorted(scene.things) or result.place != scene.place:
            return result


def move(scene: Scene, dice: Dice) -> Scene:
    """Put the same things in another place."""
    return scene._replace(place=dice.below(len(PLACES)))


def recolour(scene: Scene, dice: Dice) -> Scene:
    """Give one thing a colour that no thing of the scene has."""
    used = {thing.colour for thing in scene.things}
    colour = dice.pick([c for c in range(len(COLOURS)) if c not in used])
    return _change(scene, dice.below(len(scene.things)), colour=colour)


def retexture(scene: Scene, dice: Dice) -> Scene:
    """Give one thing a texture."""
    return _change(scene, dice.below(len(scene.things)), texture=dice.below(len(TEXTURES)))


def reshape(scene: Scene, dice: Dice) -> Scene:
    """Make one thing that touches no other another shape of the same size."""
    free = _free(scene)
    return _change(scene, dice.pick(free), shape=dice.below(len(SHAPES))) if free else scene


def swap_colours(scene: Scene, dice: Dice) -> Scene:
    """Let two things exchange colours: only what goes with what differs."""
    return _swap(scene, dice.shuffled(range(len(scene.things)))[:2], "colour")


def swap_things(scene: Scene, dice: Dice) -> Scene:
    """Let two things of one size that touch no other change places: only relations differ."""
    free = dice.shuffled(_free(scene))[:2]
    if len(free) < 2 or scene.things[free[0]].size != scene.things[free[1]].size:
        return scene
    return _swap(scene, free, "x", "y")


EDITS = (recolour, recolour, reshape, reshape, retexture, move, swap_colours, swap_things)


def _change(scene: Scene, index: int, **values: int) -> Scene:
    things = list(scene.things)
    things[index] = things[index]._replace(**values)
    return scene._replace(things=tuple(things))


def _swap(scene: Scene, pair: list[int], *fields: str) -> Scene:
    """Two things with each other's values of some fields."""
    values = [{field: scene.things[i]._asdict()[field] for field in fields} for i in pair]
    return _change(_change(scene, pair[0], **values[1]), pair[1], **values[0])


def _free(scene: Scene) -> list[int]:
    """Indices of the things that neither touch nor hold another."""
    return [i for i, a in enumerate(scene.things)
            if not any(relations(a, b) & TOUCHING for b in scene.things)]
