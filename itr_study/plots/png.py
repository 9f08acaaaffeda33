"""Pictures as small PNG files: a palette where it loses nothing that can be seen."""

from io import BytesIO

from PIL import Image, ImageChops, ImageStat

# Of 255, what a palette may change at most, and on average. Lines, bars and tables are far below
# both; colour bars and pictures with smooth skies are far above, where bands would be seen.
LARGEST, AVERAGE = 4, 0.5
UNSEEN = 2 * LARGEST  # of 255: two palettes of one drawing differ by no more


def encode(picture: Image.Image) -> bytes:
    """The picture as PNG, the same bytes each time: at most 256 colours where they suffice."""
    seen = picture.convert("RGBA")
    exact = Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen).convert("RGB")
    few = exact.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    changed = ImageStat.Stat(ImageChops.difference(exact, few.convert("RGB")))
    fits = (max(high for _, high in changed.extrema) <= LARGEST
            and sum(changed.mean) / 3 <= AVERAGE)
    target = BytesIO()
    # of many colours, `optimize` gains 2 % and takes five times as long
    (few if fits else exact).save(target, format="png", optimize=fits)
    return target.getvalue()


def looks_like(old: bytes, new: bytes) -> bool:
    """Whether no point of two PNG files differs by more than `UNSEEN`; False for a broken old one.

    A digit or a line that moved by a thirtieth of a pixel differs by more.
    """
    try:
        before = Image.open(BytesIO(old)).convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):  # no whole PNG
        return False
    after = Image.open(BytesIO(new)).convert("RGB")
    if before.size != after.size:
        return False
    return max(high for _, high in ImageChops.difference(before, after).getextrema()) <= UNSEEN
