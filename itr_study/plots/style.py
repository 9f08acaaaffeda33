"""One look for every picture: sizes, fonts, colours and markers; nothing global is changed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from io import BytesIO
from math import ceil
from textwrap import fill
from typing import Any, NamedTuple

import matplotlib
import matplotlib.style
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from PIL import Image, ImageChops, ImageStat

from itr_study.digits import counted
from itr_study.metrics.intervals import student_interval
from itr_study.plots.names import SHORT, name_of, unmarked

# Where the parts of a picture stand: found by a layout, or taken over from a picture like it.
#
# A layout costs as much as drawing. While a control is moved, one picture follows another that is
# built alike, so it may stand where that one stood.

_before: ContextVar[Figure | None] = ContextVar("before", default=None)


@contextmanager
def places_of(before: Figure | None) -> Iterator[None]:
    """Inside, a picture stands where this one stands if it fits there, else is laid out anew."""
    token = _before.set(before)
    try:
        yield
    finally:
        _before.reset(token)


def lay_out(figure: Figure) -> None:
    """Give every part its place, once: saving the picture again moves nothing."""
    before = _before.get()
    if before is not None and fits(figure, before):
        for part, then in zip(figure.axes + figure.texts, before.axes + before.texts, strict=True):
            part.set_position(then.get_position())
    else:
        figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")


def fits(figure: Figure, before: Figure) -> bool:
    """Whether a picture needs no more room than another: of the same size, with as many panels, as
    many lines in its headline and caption, and no longer numbers beside its panels."""
    def lines(of: Figure) -> list[int]:
        return [text.get_text().count("\n") for text in of.texts]

    def numbers(of: Figure) -> list[int]:
        axes_y = [axes.yaxis for axes in of.axes]
        return [max(map(len, axis.get_major_formatter().format_ticks(axis.get_majorticklocs())),
                    default=0) for axis in axes_y]

    return (tuple(figure.get_size_inches()) == tuple(before.get_size_inches())
            and len(figure.axes) == len(before.axes) and lines(figure) == lines(before)
            and all(now <= then for now, then in zip(numbers(figure), numbers(before),
                                                     strict=True)))


# Pictures as small PNG files: a palette where it loses nothing that can be seen.

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


SINGLE, DOUBLE = (4.8, 3.2), (9.6, 3.2)  # inches
# Dots per inch: of files, of those with many colours, of 9.6 inches that fill a notebook's column.
DPI, SMOOTH, SCREEN = 200, 125, 88
COLUMN = 848  # pixels wide in a window of 1,280
WIDEST = 10.42  # inches: in that column type of 8 points, the smallest, is 9 pixels high
GREY, INK, RIGHT, WRONG = "#6b6b6b", "#222222", "#117733", "#cc3311"
VALUES, DIFFERENCES = "viridis", "RdBu_r"  # maps: amounts; signed around zero

SETTINGS = {
    "font.family": "DejaVu Sans", "font.size": 9, "axes.titlesize": 10, "axes.labelsize": 9,
    "xtick.labelsize": 8, "ytick.labelsize": 8, "legend.fontsize": 8, "figure.titlesize": 10,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "#e4e4e4", "grid.linewidth": 0.6, "axes.axisbelow": True,
    "axes.edgecolor": GREY, "axes.titlelocation": "left", "text.color": INK,
    "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "lines.linewidth": 1.6,
    "lines.markersize": 5, "legend.frameon": False, "figure.dpi": 100, "savefig.dpi": DPI,
    "text.parse_math": False, "figure.facecolor": "white",
}


class Look(NamedTuple):
    """How one method or metric is drawn, everywhere."""

    label: str
    colour: str
    marker: str
    line: str = "-"


# Colour, marker and line of the methods that are drawn often; names are those of `names`.
METHODS = {name: Look(name_of(name), *drawn) for name, drawn in {
    "triplet_sum": ("#d55e00", "s"),
    "triplet_hardest": ("#0072b2", "o"),
    "triplet_soft": ("#3d9fd6", "D", "--"),  # often on top of the hardest, which shows through
    "topk": ("#007a5a", "^"),
    "kth": ("#c0609a", "v"),
    "info_nce": ("#c4a000", "P"),
    "sigmoid": ("#111111", "X"),
    "smooth_ndcg": ("#7b3294", "*"),
    "hardest+listwise": ("#e7298a", "d", "--"),
    "kendall_window": ("#8c5a2b", "<"),
    "bcls": ("#93003a", "p", "--"),
}.items()}
SAME = SHORT | {"soft+windows": "bcls", "top5": "topk"}  # drawn alike
METRICS = {
    "r1": Look("R@1", "#332288", "o"),
    "r5": Look("R@5", "#aa4499", "s"),
    "r10": Look("R@10", "#117733", "^"),
    "rsum": Look("RSUM", "#222222", "D"),
}
SPARE = ("#882255", "#999933", "#44aa99", "#6699cc", "#994455", "#ee8866")
MARKERS = ("p", "h", "<", ">", "d", "*")
DIRECTIONS = {"i2t": "image → text", "t2i": "text → image"}


def look(name: str, position: int = 0) -> Look:
    """The look of a loss or an arm ("topk", "hardest") or of a metric column ("test_i2t_r5"); spare
    ones by position."""
    if (method := SAME.get(unmarked(name), unmarked(name))) in METHODS:
        return METHODS[method]._replace(label=name_of(name))
    ending = name.rsplit("_", 1)[-1]
    if ending in METRICS:
        return METRICS[ending]
    return Look(name_of(name), SPARE[position % len(SPARE)], MARKERS[position % len(MARKERS)])


class Picture(Figure):
    """A matplotlib figure that shows itself in a notebook without pyplot's global state.

    `alt` says what is seen to those who cannot see it; until it is set, the headline does.
    """

    alt = ""

    def _repr_png_(self) -> tuple[bytes, dict[str, str]]:
        return png_bytes(self, dpi=110), {"alt": self.alt or self.get_suptitle()}


@contextmanager
def style():
    """Draw inside this context to get the project's look; matplotlib's settings are restored."""
    with matplotlib.style.context(["default", SETTINGS]):
        yield


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Make a function draw in the project's look."""
    @wraps(draw)
    def inside(*args: Any, **options: Any) -> Figure:
        with style():
            figure = draw(*args, **options)
            lay_out(figure)
            return figure
    return inside


def canvas(columns: int = 1, rows: int = 1, size: tuple[float, float] | None = None,
           kind: type[Picture] = Picture, **options: Any) -> tuple[Picture, list[Axes]]:
    """A new picture, of a kind that shows itself in its own way, and its panels, row by row.

    Args:    columns, rows: panels; one is 4.8 x 3.2 inches, two side by side 9.6 x 3.2.
             size: width and height in inches, when that does not fit.
    """
    figure = kind(figsize=size or (SINGLE[0] * min(columns, 2), SINGLE[1] * rows),
                     layout="constrained")
    FigureCanvasAgg(figure)  # a canvas that can really draw, which the layout needs
    panels = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, list(panels.flat)


def headline(figure: Figure, text: str) -> None:
    """The finding, in bold at the top left, in as many lines as the width asks for."""
    letters = int(figure.get_figwidth() * 72 / (0.66 * SETTINGS["figure.titlesize"]))
    figure.suptitle("\n".join(fill(line, letters) for line in text.splitlines()), x=0.01,
                    ha="left", fontweight="bold")


def caption(figure: Figure, text: str) -> None:
    """A line of small type under the figure: other data than the paper's, n, units. A separator
    with nothing after it, such as a note on marks that are not there, is left out."""
    if text := text.rstrip(" ;·"):
        letters = int(figure.get_figwidth() * 72 / (0.56 * 8))
        words_below(figure, fill(text, letters))


def words_below(figure: Figure, lines: str) -> None:
    """Small type at the foot of a figure, as it comes."""
    figure.supxlabel(lines, fontsize=8, color=GREY, x=0.01, ha="left")


def legend_below(figure: Figure, handles: Sequence[Artist], labels: Sequence[str],
                 columns: int = 4) -> None:
    """One legend for all panels, below them and above the caption, if it has one, which must be
    there already: a layout keeps room for the larger of the two alone, and for no legend that
    stands at a place of its own."""
    words = figure.get_supxlabel()
    columns = min(len(labels), columns)
    own = 8 * 1.25 * (words.count("\n") + 1) / 72 / figure.get_figheight()
    figure.legend(handles, labels, loc="outside lower right", ncols=columns,
                  bbox_to_anchor=(0, own, 1, 1 - own) if words else None)
    if words:  # lines of 8 points, entries of 12, and a margin
        words_below(figure, "\n" * ceil((12 * ceil(len(labels) / columns) + 4) / 9.6) + words)


def room_for_words(figure: Figure) -> None:
    """Make a picture higher by the lines of its headline and of its caption beyond the first."""
    more = figure.get_suptitle().count("\n") * SETTINGS["figure.titlesize"] + \
        figure.get_supxlabel().count("\n") * 8
    figure.set_figheight(figure.get_figheight() + 1.25 * more / 72)


def png_bytes(figure: Figure, dpi: int = DPI) -> bytes:
    """The picture as PNG without times or software names: the same data gives the same bytes.

    One of many colours, such as thumbnails, takes at most `SMOOTH` dots per inch: it would be ten
    times as large as a drawing of lines, for what no screen shows.
    """
    drawn = rendered(figure, dpi)
    few = in_few_colours(drawn)
    if few is None and dpi > SMOOTH:
        drawn = rendered(figure, SMOOTH)
        few = in_few_colours(drawn)
    return written(drawn, few)


def rendered(figure: Figure, dpi: int) -> Image.Image:
    """The figure in points, RGB."""
    drawn = BytesIO()
    with style():
        figure.savefig(drawn, format="png", dpi=dpi, pil_kwargs={"compress_level": 1})
    return on_white(Image.open(drawn))


def quick_png(figure: Figure) -> bytes:
    """The picture as PNG for a screen, soon: drawn once (`savefig` draws twice), not made small."""
    with style():
        figure.set_dpi(SCREEN)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    shown = BytesIO()
    Image.fromarray(np.asarray(canvas.buffer_rgba())).save(shown, "png", compress_level=1)
    return shown.getvalue()


# Pieces that several pictures share: seeds with their band, labels at line ends.

def summarise(rows: pd.DataFrame, by: str, value: str) -> pd.DataFrame:
    """Mean and 95 % Student-t interval over the seeds, one row per value of `by`, in its order.

    With fewer than two seeds `low` and `high` are NaN: there is no interval to draw.
    """
    records = []
    for key, group in rows.groupby(by, sort=False):
        values = group[value].dropna().to_numpy(dtype=float)
        low, high = student_interval(values) if len(values) > 1 else (np.nan, np.nan)
        records.append({by: key, "mean": values.mean() if len(values) else np.nan,
                        "low": low, "high": high, "n": len(values)})
    return pd.DataFrame(records, columns=[by, "mean", "low", "high", "n"])


def plain_log(axis: Axis) -> None:
    """Ticks at the powers of ten, written out (1, 10, 100)."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def seeds_note(counts: pd.Series) -> str:
    """How many seeds stand behind the points: "n = 5 seeds", "n = 3 to 5 seeds"."""
    least, most = int(counts.min()), int(counts.max())
    return f"n = {counted(least, 'seed', most)}, " + (
        "band: 95 % interval of the mean" if most > 1 else "no interval")


def band_line(axes: Axes, rows: pd.DataFrame, x: str, value: str, how: Look,
              dots: bool = True, far: float = np.inf) -> pd.DataFrame:
    """Mean line with its band and a faint dot for every seed; a single mean, which makes no line,
    is marked in any case. Between neighbours of which one is `far` times the other, where nothing
    is known, the line is dotted and has no band. Returns the summary."""
    summary = summarise(rows.sort_values(x, kind="stable"), x, value)
    if dots:
        axes.plot(rows[x], rows[value], how.marker, color=how.colour, alpha=0.25, markersize=3,
                  markeredgewidth=0)
    marker = how.marker if dots or summary["mean"].notna().sum() == 1 else None
    at = summary[x].to_numpy(dtype=float)
    holes = np.flatnonzero(at[1:] >= far * at[:-1]) + 1 if np.isfinite(far) else []
    for place, piece in enumerate(np.split(np.arange(len(at)), holes)):
        part = summary.iloc[piece]
        axes.fill_between(part[x], part["low"], part["high"], color=how.colour, alpha=0.15,
                          linewidth=0)
        axes.plot(part[x], part["mean"], how.line, marker=marker, color=how.colour,
                  label="_" if place else how.label)
        if len(holes) and len(part) == 1:  # has no band: its interval as a bar
            axes.plot([part[x].iloc[0]] * 2, [part["low"].iloc[0], part["high"].iloc[0]],
                      color=how.colour, linewidth=1.2)
    for hole in holes:
        ends = summary.iloc[hole - 1:hole + 1]
        axes.plot(ends[x], ends["mean"], ":", color=how.colour, linewidth=1)
    return summary


def level_line(axes: Axes, ends: tuple[float, float], rows: pd.DataFrame, value: str,
               how: Look) -> None:
    """The mean of some runs as a dashed line from end to end, with its interval."""
    level = summarise(rows.assign(all=0), "all", value).iloc[0]
    axes.plot(ends, [level["mean"]] * 2, color=how.colour, linestyle=(0, (4, 2)), linewidth=1.1)
    axes.fill_between(ends, level["low"], level["high"], color=how.colour, alpha=0.07, linewidth=0)


def spread(heights: np.ndarray, gap: float) -> np.ndarray:
    """Move heights apart as little as is simple, until neighbours are at least `gap` apart.

    Example:
        >>> spread(np.array([0.0, 1.0, 1.0, 9.0]), 1.5).round(2).tolist()  # mean of three: 2 / 3
        [-0.83, 0.67, 2.17, 9.0]
    """
    order = np.argsort(heights, kind="stable")
    clusters = [([index], float(heights[index])) for index in order]
    position = 0
    while position + 1 < len(clusters):
        (low, centre_low), (high, centre_high) = clusters[position:position + 2]
        if centre_high - centre_low >= gap * (len(low) + len(high)) / 2 - 1e-9:
            position += 1
            continue
        members = low + high
        shift = gap * (np.arange(len(members)) - (len(members) - 1) / 2)
        clusters[position:position + 2] = [(members, float((heights[members]).mean()
                                                           - shift.mean()))]
        position = max(position - 1, 0)
    moved = np.empty(len(heights))
    for members, centre in clusters:
        moved[members] = centre + gap * (np.arange(len(members)) - (len(members) - 1) / 2)
    return moved


def label_ends(axes: Axes, ends: list[tuple[float, float, str, str]], size: float = 8) -> None:
    """Write each line's name beside its end, moved apart where they would overlap.

    Args:    ends: (x, y in data units, text, colour) of each line.
    Notes:   draws the figure once, because the layout decides how far apart labels must be.
    """
    if not ends:
        return
    notes = [axes.annotate(text, (x, y), xytext=(8, 0), textcoords="offset points", va="center",
                           fontsize=size, color=colour, annotation_clip=False)
             for x, y, text, colour in ends]
    axes.figure.canvas.draw()
    to_points = 72 / axes.figure.dpi
    heights = axes.transData.transform([(x, y) for x, y, _, _ in ends])[:, 1] * to_points
    for note, shift in zip(notes, spread(heights, size * 1.35) - heights, strict=True):
        note.set_position((8, shift))
