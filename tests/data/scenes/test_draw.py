"""The pictures: size, what is where, and that different things look different."""

import numpy as np
import pytest

from itr_study.data.scenes import draw as scenes_draw
from itr_study.data.scenes.draw import OUTLINES, RGB, SIDE, background, draw, silhouette
from itr_study.data.scenes.words import COLOURS, PLACES, SHAPES, SIZES, TEXTURES
from itr_study.data.scenes.world import Dice, Scene, Thing


def one_thing(shape="block", colour="red", texture="plain", place="room", x=500, y=500):
    return Scene(PLACES.index(place), (Thing(
        SHAPES.index(shape), COLOURS.index(colour), SIZES.index("large"), TEXTURES.index(texture),
        x, y, 160),))


def pixels(scene, *key):
    return np.asarray(draw(scene, *(key or (1,))), np.int64)


def test_size_and_mode():
    picture = draw(one_thing(), 1)
    assert picture.size == (SIDE, SIDE) == (224, 224) and picture.mode == "RGB"


@pytest.mark.parametrize("colour", COLOURS)
def test_a_thing_has_its_colour_where_it_is(colour):
    seen = pixels(one_thing(colour=colour, x=300, y=600))[600 * 224 // 1000, 300 * 224 // 1000]
    assert np.abs(seen - RGB[colour]).max() < 45
    nearest = min(RGB, key=lambda name: np.abs(seen - RGB[name]).sum())
    assert nearest == colour


def test_a_thing_changes_only_its_neighbourhood():
    with_thing, without = pixels(one_thing(x=250, y=250)), pixels(one_thing()._replace(things=()))
    changed = np.argwhere(np.abs(with_thing - without).sum(axis=-1) > 0) / 224
    assert changed.min() > 0.05 and changed.max() < 0.47
    assert changed.max() > 0.40  # the right edge of a block of half side 0.16 at 0.25


@pytest.mark.parametrize("shape", SHAPES)
def test_outlines_touch_all_edges(shape):
    mask = silhouette(shape, 90, 70)
    assert mask.size == (90, 70) and mask.getbbox() == (0, 0, 90, 70)
    share = np.asarray(mask).mean() / 255
    assert 0.2 < share <= 1


def test_outlines_differ():
    masks = {shape: np.asarray(silhouette(shape, 60, 60)) > 127 for shape in SHAPES}
    assert set(OUTLINES) == set(SHAPES)
    for a in SHAPES:
        for b in SHAPES:
            assert a == b or (masks[a] != masks[b]).mean() > 0.05, (a, b)


def test_textures_and_places_look_different():
    textures = [pixels(one_thing(texture=t)) for t in TEXTURES]
    places = [pixels(one_thing(place=p)) for p in PLACES]
    for group, least in ((textures, 1), (places, 8)):
        for i, a in enumerate(group):
            assert all(np.abs(a - b).mean() > least for b in group[:i])


def test_the_key_varies_the_background_only_a_little():
    a, b = pixels(one_thing(), 1), pixels(one_thing(), 2)
    assert (a != b).any()
    np.testing.assert_allclose(a[90:130, 90:130], b[90:130, 90:130], atol=3)


@pytest.mark.parametrize("place", PLACES)
def test_backgrounds_fill_the_picture(place):
    picture = background(place, 300, Dice(1))
    assert picture.size == (300, 300) and picture.mode == "RGB"
    assert len(picture.getcolors(90_000)) > 5


def test_drawing_finer_smooths_edges(monkeypatch):
    ball = one_thing("ball", "black", place="snow")
    tones = len(draw(ball, 1).convert("L").crop((70, 70, 154, 154)).getcolors())
    monkeypatch.setattr(scenes_draw, "FINER", 1)
    assert tones > 1.2 * len(draw(ball, 1).convert("L").crop((70, 70, 154, 154)).getcolors())
