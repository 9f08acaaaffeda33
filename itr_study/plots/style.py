"""One look for every picture: sizes, fonts, colours and markers."""

import unicodedata
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
from matplotlib.font_manager import findfont, fontManager, get_font
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, NullFormatter
from PIL import Image, ImageChops, ImageStat

from itr_study.digits import counted
from itr_study.metrics.intervals import student_interval
from itr_study.plots.names import SHORT, name_of

# Of 255, what a palette may change at most, and on average. Lines, bars and tables are far below
# both; colour bars and pictures with smooth skies are far above, where bands would be seen.
LARGEST, AVERAGE = 4, 0.5


def written(exact: Image.Image, few: Image.Image | None) -> bytes:
    """Encode a picture as PNG, in few colours if there is such a version."""
    target = BytesIO()
    # of many colours, `optimize` gains 2 % and takes five times as long
    (few or exact).save(target, format="png", optimize=few is not None)
    return target.getvalue()


def on_white(picture: Image.Image) -> Image.Image:
    """Put a picture on white, without transparency."""
    seen = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen).convert("RGB")


def in_few_colours(picture: Image.Image) -> Image.Image | None:
    """Reduce an RGB picture to 256 colours; None if that would be seen."""
    few = picture.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    changed = ImageStat.Stat(ImageChops.difference(picture, few.convert("RGB")))
    fits = (max(high for _, high in changed.extrema) <= LARGEST
            and sum(changed.mean) / 3 <= AVERAGE)
    return few if fits else None


def at_most(size: int, picture: Image.Image) -> bytes:
    """Encode a picture as PNG of at most `size` bytes; ValueError if a tenth has more."""
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
DPI, SMOOTH, SCREEN = 150, 125, 88
COLUMN = 848  # pixels wide in a window of 1,280
WIDEST = 10.42  # inches: in that column type of 8 points, the smallest, is 9 pixels high
FOOT = 9  # points of the words below a picture, read at half its size, too
GREY, INK, RIGHT, WRONG = "#6b6b6b", "#222222", "#117733", "#cc3311"
VALUES, DIFFERENCES = "viridis", "RdBu_r"  # maps: amounts; signed around zero

OURS = "DejaVu Sans"  # font of figures; it comes with matplotlib
SETTINGS = {
    "font.family": OURS, "font.size": 9, "axes.titlesize": 10, "axes.labelsize": 9,
    "xtick.labelsize": 8, "ytick.labelsize": 8, "legend.fontsize": 8, "figure.titlesize": 10,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "#e4e4e4", "grid.linewidth": 0.6, "axes.axisbelow": True,
    "axes.edgecolor": GREY, "axes.titlelocation": "left", "text.color": INK,
    "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "lines.linewidth": 1.6,
    "lines.markersize": 5, "legend.frameon": False, "figure.dpi": 100, "savefig.dpi": DPI,
    "text.parse_math": False, "figure.facecolor": "white",
    "figure.constrained_layout.w_pad": 0.08,  # inches: names of lines end before the edge
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
    """Look up how a loss, an arm or a metric column is drawn; spare by position."""
    if (method := SAME.get(name, name)) in METHODS:
        return METHODS[method]._replace(label=name_of(name))
    ending = name.rsplit("_", 1)[-1]
    if ending in METRICS:
        return METRICS[ending]
    return Look(name_of(name), SPARE[position % len(SPARE)], MARKERS[position % len(MARKERS)])


class Picture(Figure):
    """A matplotlib figure that a notebook shows without pyplot, with `alt` text."""

    alt = subtitle = ""  # what is seen (else the title); one plain line below the title

    @property
    def title(self) -> str:
        """The title on one line."""
        return " ".join(self.get_suptitle().split())

    def _repr_png_(self) -> tuple[bytes, dict[str, str]]:
        return png_bytes(self, dpi=110), {"alt": self.alt or self.title}


@contextmanager
def style() -> Iterator[None]:
    """Draw in the project's look inside this context; nothing global is changed."""
    with matplotlib.style.context(["default", SETTINGS]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+")  # of each letter; ours is of all
        yield


def fonts_with(letters: set[int]) -> tuple[list[str], set[int]]:
    """Find fonts of this machine that together have letters, ours first; and what none has."""
    families = []
    for name, path in ({OURS: findfont(OURS)} | {f.name: f.fname for f in fontManager.ttflist
                                                 if f.name != OURS}).items():
        has = letters & get_font(path).get_charmap().keys() if letters else set()
        if has and not name.startswith("Last Resort"):  # which has a box for every letter
            families.append(name)
            letters = letters - has
    return families, letters


def choose_fonts(figure: Figure) -> None:
    """Find other fonts for letters that ours lacks; warn where there is none."""
    texts = figure.findobj(Text)
    families, lacking = fonts_with({ord(c) for text in texts for c in text.get_text()
                                    if unicodedata.category(c) not in ("Cc", "Cf", "Zs")})
    for text in texts if {*families} - {OURS} else ():
        text.set_fontfamily(list(dict.fromkeys([OURS, *families])))
    if lacking:
        scripts = sorted({unicodedata.name(chr(c), "UNNAMED").split()[0] for c in lacking})
        warnings.warn(f"no font here has letters of {', '.join(scripts)}, which are boxes in the "
                      "picture; install one, such as Noto (Debian, Ubuntu: fonts-noto-cjk for "
                      "Chinese, Japanese, Korean, fonts-noto-core for others), delete "
                      f"{matplotlib.get_cachedir()}, and draw again", stacklevel=2)


def lay_out(figure: Picture) -> None:
    """Give every part its place, once: saving the picture again moves nothing."""
    choose_fonts(figure)
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")
    if figure.subtitle:  # on the last line of the title, which was left empty for it
        above = figure._suptitle
        figure.text(*above.get_position(), "\n" * above.get_text().count("\n") + figure.subtitle,
                    fontsize=above.get_fontsize(), ha="left", va=above.get_va(), in_layout=False)


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
           number: int | None = None, **options: Any) -> tuple[Picture, list[Axes]]:
    """Make a picture with panels, given row by row.

    Args:
        columns: panels in a row; one is 4.8 x 3.2 inches, two are 9.6 x 3.2.
        size: width and height in inches, if that does not fit.
        number: of panels, if the last row is not full.
    """
    figure = Picture(figsize=size or (SINGLE[0] * min(columns, 2), SINGLE[1] * rows),
                     layout="constrained")
    FigureCanvasAgg(figure)  # a canvas that can really draw, which the layout needs
    panels = list(figure.subplots(rows, columns, squeeze=False, **options).flat)
    for axes in panels[number:] if number else ():
        axes.remove()
    return figure, panels[:number]


def finish(figure: Picture, title: str, *notes: str, marks: Sequence[Artist] = (),
           columns: int = 4) -> Picture:
    """Give a figure its title (second line: subtitle); below it joined notes, a legend of marks."""
    points = figure.get_figwidth() * 72
    bold, _, figure.subtitle = title.strip().partition("\n")
    letters = int(points / (0.66 * SETTINGS["figure.titlesize"]))
    figure.suptitle(fill(bold, letters) + "\n " * bool(figure.subtitle), x=0.01, ha="left",
                    fontweight="bold")
    if note := " · ".join(filter(None, notes)).rstrip(" ;·"):
        words_below(figure, fill(note, int(points / (0.56 * FOOT))))
    if marks:
        legend_below(figure, marks, columns)
    return figure


def name_above(axes: Axes, x: float, name: str, colour: str = GREY) -> None:
    """Name a vertical line above its panel."""
    axes.annotate(name, (x, 1), (0, 1), fontsize=8, xycoords=("data", "axes fraction"),
                  textcoords="offset points", ha="center", va="bottom", color=colour)


def mark(marker: str, colour: str, label: str, fill: str = "full", **how: Any) -> Line2D:
    """Make a mark for a legend."""
    return Line2D([], [], linestyle="", marker=marker, color=colour, label=label,
                  fillstyle=fill, **how)


def legend_above(axes: Axes, marks: Sequence[Artist] | None = None, columns: int = 4) -> None:
    """Put the legend of a panel (by default of all it draws) above its right end."""
    axes.legend(handles=marks, loc="lower right", bbox_to_anchor=(1, 1), ncols=columns,
                borderaxespad=0.2)


def words_below(figure: Figure, lines: str) -> None:
    """Write small type at the foot of a figure, unwrapped."""
    figure.supxlabel(lines, fontsize=FOOT, color=GREY, x=0.01, ha="left")


def legend_below(figure: Figure, marks: Sequence[Artist], columns: int = 4) -> None:
    """Put one legend for all panels above the caption, which must be written before.

    A layout keeps room for the larger of the two only, so the caption gets empty lines on top.
    """
    words = figure.get_supxlabel()
    columns = min(len(marks), columns)
    own = FOOT * 1.25 * (words.count("\n") + 1) / 72 / figure.get_figheight()
    figure.legend(handles=marks, loc="outside lower right", ncols=columns,
                  bbox_to_anchor=(0, own, 1, 1 - own) if words else None)
    if words:  # entries of 12 points, and a margin
        above = 12 * ceil(len(marks) / columns) + 4
        words_below(figure, "\n" * ceil(above / (1.2 * FOOT)) + words)


def room_for_words(figure: Figure) -> None:
    """Make a picture higher by the further lines of its headline and caption."""
    more = figure.get_suptitle().count("\n") * SETTINGS["figure.titlesize"] + \
        figure.get_supxlabel().count("\n") * FOOT
    figure.set_figheight(figure.get_figheight() + 1.25 * more / 72)


def png_bytes(figure: Figure, dpi: int = DPI) -> bytes:
    """Encode a picture as PNG without times or software names: same data, same bytes.

    One of many colours, such as thumbnails, takes at most `SMOOTH` dots per inch.
    """
    drawn = rendered(figure, dpi)
    few = in_few_colours(drawn)
    if few is None and dpi > SMOOTH:
        drawn = rendered(figure, SMOOTH)
        few = in_few_colours(drawn)
    return written(drawn, few)


def rendered(figure: Figure, dpi: int) -> Image.Image:
    """Draw the figure as an RGB picture."""
    drawn = BytesIO()
    with style():
        figure.savefig(drawn, format="png", dpi=dpi, pil_kwargs={"compress_level": 1})
    return on_white(Image.open(drawn))


def quick_png(figure: Figure) -> bytes:
    """Encode a picture as PNG for a screen, fast: drawn once, little compressed."""
    with style():
        figure.set_dpi(SCREEN)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    shown = BytesIO()
    Image.fromarray(np.asarray(canvas.buffer_rgba())).save(shown, "png", compress_level=1)
    return shown.getvalue()


def summarise(rows: pd.DataFrame, by: str, value: str) -> pd.DataFrame:
    """Compute mean, low, high (95 % Student-t interval over seeds), n per `by`.

    The rows are in order of appearance; below two seeds low and high are NaN.
    """
    records = []
    for key, group in rows.groupby(by, sort=False):
        values = group[value].dropna().to_numpy(dtype=float)
        low, high = student_interval(values) if len(values) > 1 else (np.nan, np.nan)
        records.append({by: key, "mean": values.mean() if len(values) else np.nan,
                        "low": low, "high": high, "n": len(values)})
    return pd.DataFrame(records, columns=[by, "mean", "low", "high", "n"])


def plain_log(axis: Axis) -> None:
    """Write the ticks at powers of ten in full (1, 10, 100)."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))
    axis.set_minor_formatter(NullFormatter())


def seeds_note(counts: pd.Series) -> str:
    """Say how many seeds are behind the points: "5 seeds, 95 % interval", "1 seed"."""
    least, most = int(counts.min()), int(counts.max())
    return counted(least, "seed", most) + ", 95 % interval" * (most > 1)


def band_line(axes: Axes, rows: pd.DataFrame, x: str, value: str, how: Look,
              dots: bool = True, far: float = np.inf) -> pd.DataFrame:
    """Draw the mean with its band and a faint dot for every seed; return the summary.

    A single mean is always marked. Between neighbours of which one is `far` times the other the
    line is dotted and has no band.
    """
    summary = summarise(rows.sort_values(x, kind="stable"), x, value).astype(
        dict.fromkeys((x, "mean", "low", "high"), float))
    if dots:
        axes.plot(rows[x], rows[value], how.marker, color=how.colour, alpha=0.25, markersize=3,
                  markeredgewidth=0)
    marker = how.marker if dots or summary["mean"].notna().sum() == 1 else None
    at = summary[x].to_numpy()
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
    """Draw the mean of some runs as a dashed line from end to end, with its interval."""
    level = summarise(rows.assign(all=0), "all", value).iloc[0]
    axes.plot(ends, [level["mean"]] * 2, color=how.colour, linestyle=(0, (4, 2)), linewidth=1.1)
    axes.fill_between(ends, level["low"], level["high"], color=how.colour, alpha=0.07, linewidth=0)


def spread(heights: np.ndarray, gap: float) -> np.ndarray:
    """Move heights apart until neighbours are at least `gap` apart.

    Example:
        >>> spread(np.array([0.0, 1.0, 1.0, 9.0]), 1.5).round(2).tolist()  # mean of three: 2 / 3
        [-0.83, 0.67, 2.17, 9.0]
    """
    from scipy.optimize import isotonic_regression  # here: slow to load

    order, moved = np.argsort(heights, kind="stable"), np.empty(len(heights))
    steps = gap * np.arange(len(heights))
    moved[order] = isotonic_regression(heights[order] - steps).x + steps  # moves least in squares
    return moved


def label_ends(axes: Axes, ends: list[tuple[float, float, str, str]]) -> None:
    """Write each line's name at its end, moved apart if they would overlap.

    Draws the figure once: the layout decides how far apart labels must be.

    Args: ends: x, y (data units), text and colour of each line.
    """
    if not ends:
        return
    notes = [axes.annotate(text, (x, y), xytext=(8, 0), textcoords="offset points", va="center",
                           fontsize=8, color=colour, annotation_clip=False)
             for x, y, text, colour in ends]
    axes.figure.canvas.draw()
    to_points = 72 / axes.figure.dpi
    heights = axes.transData.transform([(x, y) for x, y, _, _ in ends])[:, 1] * to_points
    for note, shift in zip(notes, spread(heights, 8 * 1.6) - heights, strict=True):
        note.set_position((8, shift))
