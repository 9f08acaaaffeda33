"""Pictures as small PNG files: a palette where it loses nothing that can be seen."""

from io import BytesIO

from PIL import Image, ImageChops, ImageStat

# Of 255, what a palette may change at most, and on average. Lines, bars and tables are far below
# both; colour bars and pictures with smooth skies are far above, where bands would be seen.
LARGEST, AVERAGE = 4, 0.5
UNSEEN = 2 * LARGEST  # of 255: two palettes of one drawing differ by no more


def encode(picture: Image.Image) -> bytes:
    """The picture as PNG, the same bytes each time: at most 256 colours where they suffice."""
    exact = on_white(picture)
    return written(exact, in_few_colours(exact))


def written(exact: Image.Image, few: Image.Image | None) -> bytes:
    """The RGB picture as PNG, or it in few colours where there is one."""
    target = BytesIO()
    # of many colours, `optimize` gains 2 % and takes five times as long
    (few or exact).save(target, format="png", optimize=few is not None)
    return target.getvalue()


def on_white(picture: Image.Image) -> Image.Image:
    """The picture without transparency."""
    seen = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen).convert("RGB")


def in_few_colours(picture: Image.Image) -> Image.Image | None:
    """The RGB picture in at most 256 colours; None where that would be seen."""
    few = picture.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    changed = ImageStat.Stat(ImageChops.difference(picture, few.convert("RGB")))
    fits = (max(high for _, high in changed.extrema) <= LARGEST
            and sum(changed.mean) / 3 <= AVERAGE)
    return few if fits else None


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
