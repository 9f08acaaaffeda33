"""A picture becomes a palette only where nobody can see it, and one for a page is small."""

import importlib
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

style = importlib.import_module("itr_study.plots.style")

RNG = np.random.default_rng(0)
GROUND = np.full((120, 160, 3), 255, dtype=np.uint8)


def lines() -> np.ndarray:
    """A chart: a few colours and their blends with the ground, 200 of them."""
    picture = GROUND.copy()
    picture[10:110, 10:60] = RNG.integers(0, 256, (199, 3), dtype=np.uint8)[
        RNG.integers(0, 199, (100, 50))]
    return picture


def shades() -> np.ndarray:
    """Some hundred blends that lie near each other: a chart with translucent bands."""
    picture = GROUND.copy()
    picture[..., 0] -= np.arange(160, dtype=np.uint8)
    picture[..., 1] -= (np.arange(120, dtype=np.uint8) // 20)[:, None]
    return picture


def sky(reach: int = 255) -> np.ndarray:
    """A smooth change in two directions, as in a heat map's bar or a photograph."""
    picture = GROUND.copy()
    picture[..., 0] = np.linspace(0, reach, 160)
    picture[..., 2] = np.linspace(0, reach, 120)[:, None]
    return picture


def dusk() -> np.ndarray:
    """A sky so faint that no point is far from a palette's colour, but every point is off."""
    return sky(60)


def encode(picture: Image.Image) -> bytes:
    """As pictures are written."""
    exact = style.on_white(picture)
    return style.written(exact, style.in_few_colours(exact))


def decoded(data: bytes) -> tuple[str, np.ndarray]:
    image = Image.open(BytesIO(data))
    return image.mode, np.asarray(image.convert("RGB"))


@pytest.mark.parametrize(("draw", "mode", "largest"), [
    (lines, "P", 0), (shades, "P", style.LARGEST), (sky, "RGB", 0), (dusk, "RGB", 0)])
def test_a_palette_is_taken_only_where_it_changes_next_to_nothing(draw, mode, largest):
    drawn = draw()
    data = encode(Image.fromarray(drawn))
    found, shown = decoded(data)
    colours = len(np.unique(drawn.reshape(-1, 3), axis=0))
    assert (colours <= 256) == (draw is lines)
    assert found == mode and np.abs(shown.astype(int) - drawn).max() <= largest
    assert data == encode(Image.fromarray(drawn))  # the same bytes each time


def test_one_spot_that_a_palette_would_spoil_keeps_all_colours():
    """A small heat map on a wide white ground: the average alone would not see it."""
    drawn = np.full((1200, 1600, 3), 255, dtype=np.uint8)
    drawn[:120, :160] = sky()
    mode, shown = decoded(encode(Image.fromarray(drawn)))
    assert mode == "RGB" and (shown == drawn).all()


def test_a_palette_is_smaller_and_an_alpha_of_one_is_dropped():
    image = Image.fromarray(lines()).convert("RGBA")
    before = BytesIO()
    image.save(before, format="png")
    assert len(encode(image)) < 0.6 * len(before.getvalue())


@pytest.mark.parametrize("size", [10_000, 3_000, 900])
def test_a_picture_is_made_as_narrow_as_it_must_be(size):
    noise = Image.fromarray(RNG.integers(0, 256, (120, 160, 3), dtype=np.uint8))
    data = style.at_most(size, noise)
    shown = Image.open(BytesIO(data))
    assert len(data) <= size < len(style.at_most(1_000_000, noise)) and shown.width < 160
    assert abs(shown.width / shown.height - 4 / 3) < 0.1
    with pytest.raises(ValueError, match="more than 50"):
        style.at_most(50, noise)


def test_what_is_transparent_is_seen_on_white():
    clear = Image.new("RGBA", (3, 2), (0, 0, 0, 0))
    assert Image.open(BytesIO(encode(clear))).convert("RGB").getpixel((1, 1)) == (255,) * 3
