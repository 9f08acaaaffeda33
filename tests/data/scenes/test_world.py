"""What is in a picture: arrangements, relations, and pictures that nearly agree."""

from collections import Counter

import pytest

from itr_study.data.scenes import world
from itr_study.data.scenes.words import (
    ATTRIBUTES,
    COLOURS,
    NOUNS,
    PLACE_PHRASES,
    PLACES,
    RELATIONS,
    SHAPES,
    bits,
)
from itr_study.data.scenes.world import (
    FAMILY,
    TWINS,
    Dice,
    Thing,
    family,
    fresh_scene,
    relations,
)

SCENES = [scene for g in range(60) for scene in family(5, g)]


def at(x, y, radius, shape="block"):
    return Thing(SHAPES.index(shape), 0, 0, 0, x, y, radius)


@pytest.mark.parametrize("a, b, held", [
    (at(200, 500, 70), at(700, 500, 70), ["left"]),
    (at(700, 500, 70), at(200, 520, 70), ["right"]),
    (at(500, 200, 70), at(500, 700, 70), ["above"]),
    (at(200, 200, 70), at(600, 600, 70), ["left", "above"]),
    (at(200, 200, 70), at(700, 499, 70), ["left"]),  # 5 * 299 < 3 * 500
    (at(200, 200, 70), at(700, 500, 70), ["left", "above"]),  # 5 * 300 = 3 * 500
    (at(500, 330, 70), at(500, 500, 100), ["above", "on"]),  # 330 + 70 = 500 - 100
    (at(500, 500, 100), at(500, 330, 70), ["below", "under"]),
    (at(500, 500, 70), at(500, 500, 160), ["inside"]),
    (at(500, 500, 160), at(500, 500, 70), ["around"]),
    (at(500, 500, 70), at(500, 500, 70), []),
])
def test_relations_worked_by_hand(a, b, held):
    assert relations(a, b) == bits(RELATIONS, *held)


def test_relations_seen_from_the_other_side():
    other = dict(zip(("left", "above", "on", "inside"), ("right", "below", "under", "around"),
                     strict=True))
    for scene in SCENES:
        for a in scene.things:
            for b in scene.things:
                for one, two in other.items():
                    assert bool(relations(a, b) & bits(RELATIONS, one)) == \
                        bool(relations(b, a) & bits(RELATIONS, two))
                assert relations(a, b) or a is b


def test_arrangements():
    counts = Counter(len(scene.things) for scene in SCENES)
    assert set(counts) == {2, 3, 4, 5}
    seen = 0
    for scene in SCENES:
        for thing in scene.things:
            (wide, high), x, y = thing.extent, thing.x, thing.y
            assert 0 <= x - wide and x + wide <= 1000 and 0 <= y - high and y + high <= 1000
            assert all(v < len(values) for v, values in zip(thing[:4], ATTRIBUTES, strict=True))
        for a in scene.things:
            for b in scene.things:
                seen |= relations(a, b)
    assert seen == (1 << len(RELATIONS)) - 1  # every relation occurs
    assert {scene.place for scene in SCENES} == set(range(len(PLACES)))


def test_things_overlap_only_when_one_is_inside_the_other():
    joined = bits(RELATIONS, "inside", "around")
    for scene in SCENES:
        for i, a in enumerate(scene.things):
            for b in scene.things[:i]:
                apart = abs(a.x - b.x) >= a.extent[0] + b.extent[0] - 2 or \
                    abs(a.y - b.y) >= a.extent[1] + b.extent[1] - 2
                assert apart != bool(relations(a, b) & joined)


def difference(one, two):
    """Which of place, shape, colour, size, texture, position differ, thing by thing."""
    names = ("shape", "colour", "size", "texture", "x", "y")
    found = ["place"] * (one.place != two.place)
    for a, b in zip(one.things, two.things, strict=True):
        found += [n for n in names if getattr(a, n) != getattr(b, n)]
    return found


def test_near_duplicates_differ_by_one_edit():
    kinds = Counter()
    for g in range(100):
        scenes = family(6, g)
        assert len(scenes) == FAMILY
        for original, twin in zip(scenes, scenes[-TWINS:], strict=False):
            changed = difference(original, twin)
            kinds[tuple(sorted(set(changed)))] += 1
            assert changed in (["place"], ["colour"], ["shape"], ["texture"],
                               ["colour", "colour"]) or set(changed) <= {"x", "y"}
            assert changed
    assert len(kinds) >= 5


@pytest.mark.parametrize("edit", world.EDITS)
def test_edits_leave_the_number_of_things(edit):
    dice = Dice(1)
    results = [(scene, edit(scene, dice)) for scene in SCENES]
    assert all(len(a.things) == len(b.things) for a, b in results)
    assert sum(a != b for a, b in results) > 0.1 * len(results)


def test_dice_are_fair_and_reproducible():
    first, second = Dice(1, 2), Dice(1, 2)
    rolls = [first.below(6) for _ in range(6000)]
    assert rolls == [second.below(6) for _ in range(6000)]
    assert all(800 < rolls.count(face) < 1200 for face in range(6))
    assert rolls != [Dice(1, 3).below(6) for _ in range(6000)]
    assert sorted(first.shuffled("abcd")) == list("abcd")
    orders = Counter("".join(first.shuffled("abc")) for _ in range(3000))
    assert len(orders) == 6 and min(orders.values()) > 350


def test_colours_follow_habit_but_not_always():
    dice = Dice(4)
    trees = [t.colour for _ in range(800) for t in fresh_scene(dice).things
             if SHAPES[t.shape] == "tree"]
    green = trees.count(COLOURS.index("green")) / len(trees)
    assert 0.2 < green < 0.6


def test_every_value_has_a_word():
    assert set(NOUNS) == set(SHAPES)
    for place in PLACES:
        assert any(places == bits(PLACES, place) for _, places in PLACE_PHRASES)
