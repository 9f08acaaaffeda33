"""Exact relevance: worked by hand, and equal to a slow oracle."""

import numpy as np
import pytest

from itr_study.data.scenes.captions import (
    Count,
    Has,
    Pattern,
    Related,
    Where,
    as_world,
    captions,
    meaning_scores,
)
from itr_study.data.scenes.styles import STYLES
from itr_study.data.scenes.words import COLOURS, PLACES, RELATIONS, SHAPES, SIZES, TEXTURES, bits
from itr_study.data.scenes.world import Scene, Thing, family, relations
from tests.oracles import scenes as oracle


def thing(size, texture, colour, shape, x, y, radius):
    return Thing(SHAPES.index(shape), COLOURS.index(colour), SIZES.index(size),
                 TEXTURES.index(texture), x, y, radius)


def pattern(shape=(), colour=(), size=(), texture=()):
    named = [(SHAPES, shape), (COLOURS, colour), (SIZES, size), (TEXTURES, texture)]
    return Pattern(*(bits(v, *n) if n else default
                     for (v, n), default in zip(named, Pattern(), strict=True)))


# A large red ball; left of it a small blue striped star; above that a small red star. At night.
SCENE = Scene(PLACES.index("night"), (
    thing("large", "plain", "red", "ball", 700, 700, 160),
    thing("small", "striped", "blue", "star", 200, 700, 70),
    thing("small", "plain", "red", "star", 200, 300, 70)))
BALL, RED_STAR = pattern(("ball",), ("red",)), pattern(("star",), ("red",))
LEFT, ON = bits(RELATIONS, "left"), bits(RELATIONS, "on")

HAND = [  # what is said, how much of it holds in SCENE
    ((Has(RED_STAR),), 1.0),
    ((Has(pattern(("ball",), ("blue",))),), 1 / 2),  # a ball, or a blue thing
    ((Has(pattern(("ball",), ("blue",), ("small",), ("striped",))),), 3 / 4),  # the blue star
    ((Has(pattern(("boat",), ("green",))),), 0.0),
    ((Has(pattern(colour=("green", "blue"))),), 1.0),  # cool-coloured
    ((Count(Pattern(), 3),), 1.0),
    ((Count(Pattern(), 4),), 1 - 1 / 4),
    ((Count(pattern(("star",)), 2),), 1.0),
    ((Count(pattern(("star",)), 1),), 1 - 1 / 1),
    ((Count(pattern(("boat",)), 2),), 0.0),
    ((Related(pattern(("star",), ("blue",)), LEFT, BALL),), 1.0),
    ((Related(BALL, LEFT, pattern(("star",), ("blue",))),), (1 + 1 + 0) / 3),  # wrong way round
    ((Related(RED_STAR, ON, BALL),), (1 + 1 + 0) / 3),
    ((Related(pattern(("star",), ("blue",)), LEFT, pattern(("boat",), ("red",))),),
     (1 + 1 / 2 + 1) / 3),
    ((Where(bits(PLACES, "night", "sunset")),), 1.0),
    ((Where(bits(PLACES, "room")),), 0.0),
    ((Has(RED_STAR), Count(Pattern(), 4), Where(bits(PLACES, "room"))), (1 + 3 / 4 + 0) / 3),
]


@pytest.mark.parametrize("meaning, value", HAND)
def test_worked_by_hand(meaning, value):
    assert meaning_scores(as_world([SCENE]), [meaning])[0, 0] == pytest.approx(value, abs=1e-6)
    assert oracle.relevance(meaning, SCENE, relations) == pytest.approx(value, abs=1e-12)


def test_equals_the_slow_oracle():
    scenes = [scene for g in range(8) for scene in family(9, g)]  # 48: more than one block
    meanings = [c.meaning for i, scene in enumerate(scenes)
                for c in captions(scene, 6, 9, i, style=STYLES[i % len(STYLES)])]
    assert {type(a) for m in meanings for a in m} == {Has, Count, Related, Where}
    expected = [[oracle.relevance(m, scene, relations) for m in meanings] for scene in scenes]
    np.testing.assert_allclose(meaning_scores(as_world(scenes), meanings), expected, atol=2e-6)


def test_thousands_of_pictures_take_bounded_memory():
    import tracemalloc

    scenes = [scene for g in range(40) for scene in family(9, g)]
    meanings = [c.meaning for i, scene in enumerate(scenes) for c in captions(scene, 5, 9, i)]
    world = as_world(scenes)
    tracemalloc.start()
    meaning_scores(world, meanings)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6
