"""Pictures as small PNG files: a palette where it loses nothing that can be seen."""

from io import BytesIO

from PIL import Image, ImageChops, ImageStat

# Of 255, what a palette may change at most, and on average. Lines, bars and tables are far below
# both; colour bars and pictures with smooth skies are far above, where bands would be seen.
LARGEST, AVERAGE = 4, 0.5


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


def at_most(size: int, picture: Image.Image) -> bytes:
    """The picture as a PNG file of at most so many bytes: in 256 colours, narrower where that is
    not enough.

    Raises:  ValueError where even a tenth of its width is too much.
    """
    exact = on_white(picture)
    for tenths in range(10, 0, -1):
        width = exact.width * tenths // 10
        small = exact.resize((width, max(1, exact.height * tenths // 10)), Image.Resampling.LANCZOS)
        data = written(small, small.quantize(256, dither=Image.Dither.NONE))
        if len(data) <= size:
            return data
    raise ValueError(f"a tenth of the picture still has {len(data):,} bytes, more than {size:,}")
