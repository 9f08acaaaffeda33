"""Pictures of `scenes` that nearly agree: families of scenes, some altered copies of others."""

from itr_study.data.scenes.words import COLOURS, PLACES, RELATIONS, SHAPES, TEXTURES, bits
from itr_study.data.scenes.world import Dice, Scene, Thing, fresh_scene, relations

FAMILY = 6  # scenes made together; the last TWINS of them are altered copies of the first ones
TWINS = 2
Things = tuple[Thing, ...]
_JOINED = bits(RELATIONS, "on", "under", "inside", "around")


def family(*key: int) -> list[Scene]:
    """FAMILY scenes, the last TWINS of them differing from an earlier one by a single edit."""
    dice = Dice(*key)
    scenes = [fresh_scene(dice) for _ in range(FAMILY - TWINS)]
    return scenes + [edited(scene, dice) for scene in scenes[:TWINS]]


def edited(scene: Scene, dice: Dice) -> Scene:
    """A near-duplicate: the scene after one edit."""
    while True:
        result = dice.pick(EDITS)(scene, dice)
        if sorted(result.things) != sorted(scene.things) or result.place != scene.place:
            return result


def move(scene: Scene, dice: Dice) -> Scene:
    """The same things in another place."""
    return scene._replace(place=dice.below(len(PLACES)))


def recolour(scene: Scene, dice: Dice) -> Scene:
    """One thing in a colour that no thing of the scene has."""
    used = {thing.colour for thing in scene.things}
    colour = dice.pick([c for c in range(len(COLOURS)) if c not in used])
    return _change(scene, dice.below(len(scene.things)), colour=colour)


def retexture(scene: Scene, dice: Dice) -> Scene:
    """One thing with another texture, or the same by chance (then another edit is drawn)."""
    return _change(scene, dice.below(len(scene.things)), texture=dice.below(len(TEXTURES)))


def reshape(scene: Scene, dice: Dice) -> Scene:
    """One thing that touches no other becomes another shape of the same size."""
    free = _free(scene.things)
    if not free:
        return scene
    return _change(scene, dice.pick(free), shape=dice.below(len(SHAPES)))


def swap_colours(scene: Scene, dice: Dice) -> Scene:
    """Two things exchange colours: only what goes with what differs."""
    first, second = dice.shuffled(range(len(scene.things)))[:2]
    a, b = scene.things[first], scene.things[second]
    return _change(_change(scene, first, colour=b.colour), second, colour=a.colour)


def swap_things(scene: Scene, dice: Dice) -> Scene:
    """Two things of one size that touch no other exchange positions: only relations differ."""
    free = dice.shuffled(_free(scene.things))[:2]
    if len(free) < 2 or scene.things[free[0]].size != scene.things[free[1]].size:
        return scene
    a, b = (scene.things[i] for i in free)
    return _change(_change(scene, free[0], x=b.x, y=b.y), free[1], x=a.x, y=a.y)


EDITS = (recolour, recolour, reshape, reshape, retexture, move, swap_colours, swap_things)


def _change(scene: Scene, index: int, **values: int) -> Scene:
    things = list(scene.things)
    things[index] = things[index]._replace(**values)
    return scene._replace(things=tuple(things))


def _free(things: Things) -> list[int]:
    """Indices of the things that are neither on, under, inside nor around another."""
    return [i for i, a in enumerate(things) if not any(relations(a, b) & _JOINED for b in things)]
