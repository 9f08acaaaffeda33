"""One look for every picture: sizes, fonts, colours and markers; nothing global is changed."""

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import wraps
from io import BytesIO
from math import ceil
from textwrap import fill
from typing import Any, NamedTuple

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from itr_study.plots import png
from itr_study.plots.names import SHORT, name_of, unmarked
from itr_study.plots.places import lay_out

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
    few = png.in_few_colours(drawn)
    if few is None and dpi > SMOOTH:
        drawn = rendered(figure, SMOOTH)
        few = png.in_few_colours(drawn)
    return png.written(drawn, few)


def rendered(figure: Figure, dpi: int) -> Image.Image:
    """The figure in points, RGB."""
    drawn = BytesIO()
    with style():
        figure.savefig(drawn, format="png", dpi=dpi, pil_kwargs={"compress_level": 1})
    return png.on_white(Image.open(drawn))


def quick_png(figure: Figure) -> bytes:
    """The picture as PNG for a screen, soon: drawn once (`savefig` draws twice), not made small."""
    with style():
        figure.set_dpi(SCREEN)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    shown = BytesIO()
    Image.fromarray(np.asarray(canvas.buffer_rgba())).save(shown, "png", compress_level=1)
    return shown.getvalue()
