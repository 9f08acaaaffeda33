"""A picture becomes a palette only where nobody can see it, and a redraw that looks the same is
no new file."""

import struct
import zlib
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from itr_study.plots import png

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


def decoded(data: bytes) -> tuple[str, np.ndarray]:
    image = Image.open(BytesIO(data))
    return image.mode, np.asarray(image.convert("RGB"))


@pytest.mark.parametrize(("draw", "mode", "largest"), [
    (lines, "P", 0), (shades, "P", png.LARGEST), (sky, "RGB", 0), (dusk, "RGB", 0)])
def test_a_palette_is_taken_only_where_it_changes_next_to_nothing(draw, mode, largest):
    drawn = draw()
    data = png.encode(Image.fromarray(drawn))
    found, shown = decoded(data)
    colours = len(np.unique(drawn.reshape(-1, 3), axis=0))
    assert (colours <= 256) == (draw is lines)
    assert found == mode and np.abs(shown.astype(int) - drawn).max() <= largest
    assert data == png.encode(Image.fromarray(drawn))  # the same bytes each time


def test_one_spot_that_a_palette_would_spoil_keeps_all_colours():
    """A small heat map on a wide white ground: the average alone would not see it."""
    drawn = np.full((1200, 1600, 3), 255, dtype=np.uint8)
    drawn[:120, :160] = sky()
    mode, shown = decoded(png.encode(Image.fromarray(drawn)))
    assert mode == "RGB" and (shown == drawn).all()


def test_a_palette_is_smaller_and_an_alpha_of_one_is_dropped():
    image = Image.fromarray(lines()).convert("RGBA")
    before = BytesIO()
    image.save(before, format="png")
    assert len(png.encode(image)) < 0.6 * len(before.getvalue())


def test_what_can_be_seen_is_a_difference():
    drawn = lines()
    old = png.encode(Image.fromarray(drawn))
    for value, same in ((8, True), (9, False)):
        point = drawn.copy()
        point[0, 0] -= value  # one point of the white ground
        assert png.looks_like(old, png.encode(Image.fromarray(point))) is same
    assert not png.looks_like(old, png.encode(Image.fromarray(drawn[:-1])))


def test_a_broken_file_looks_like_nothing():
    good = png.encode(Image.fromarray(lines()))
    huge = good[:16] + struct.pack(">II", 30_000, 30_000) + good[24:29]
    bomb = huge + struct.pack(">I", zlib.crc32(huge[12:])) + good[33:]
    short = good[:8] + struct.pack(">I", 5) + b"IHDR" + b"\0" * 40
    for broken in (b"", b"no picture", good[:200], good[:8] + b"\0" * 50, bomb, short):
        assert not png.looks_like(broken, good)


def test_what_is_transparent_is_seen_on_white():
    clear = Image.new("RGBA", (3, 2), (0, 0, 0, 0))
    assert Image.open(BytesIO(png.encode(clear))).convert("RGB").getpixel((1, 1)) == (255,) * 3
