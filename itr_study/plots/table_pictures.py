"""Tables as pictures, for slides; a notebook shows the real table."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from itr_study.plots.style import (
    GREY,
    WIDEST,
    Picture,
    canvas,
    caption,
    headline,
    room_for_words,
    styled,
)
from itr_study.plots.tables import (
    RECALL_COLUMNS,
    Page,
    footnote,
    grid_of,
    head,
    number_text,
    seam_of,
    table_cells,
    table_html,
)

STEP, NARROW, COUNT = 0.86, 0.66, 0.8  # inches: a column, one without intervals, that of n
ROW = 0.27  # inches
HEADING = 1.6  # rows from the line above a block to the first of its names


class TablePicture(Picture):
    """A table drawn for slides that shows itself in a notebook as the table: its type does not
    shrink with the window, it scrolls, and it can be read aloud and copied."""

    page = Page()

    def _repr_html_(self) -> str:
        return self.page

    def _repr_png_(self) -> None:
        return None


@styled
def table_figure(rows: pd.DataFrame, by: str, title: str,
                 columns: Sequence[str] = RECALL_COLUMNS,
                 reported: pd.DataFrame | None = None, note: str = "") -> Picture:
    """The table of `tables.table_html` as a picture; columns that would make it too wide to be read
    go on below, with the names again.

    Args:    as in `tables.table_cells`.
    """
    cells = table_cells(rows, by, columns, reported)
    grid = grid_of(cells, by, columns)
    left = 0.3 + 0.075 * max(len(name) for name, *_ in grid) + COUNT
    blocks, step = in_blocks(columns, WIDEST - left, cells["half"].notna().any())
    height, width = len(grid) + HEADING, left + step * len(blocks[0])  # in rows; in inches
    figure, (axes,) = canvas(size=(width, 0.9 + ROW * (height * len(blocks) - 0.6)),
                             kind=TablePicture)
    figure.page = table_html(rows, by, columns, reported, title, note)
    two_lines = any("\n" in head(column) for column in columns)
    axes.set(xlim=(0, width), ylim=(height * len(blocks) - 1.0, -1.0 if two_lines else -0.6))
    axes.axis("off")
    for place, block in enumerate(blocks):
        draw_block(axes, grid, block, height * place, left, step)
    headline(figure, title)
    caption(figure, footnote(cells, note))
    room_for_words(figure)
    return figure


def in_blocks(columns: Sequence[str], room: float, intervals: bool
              ) -> tuple[list[list[str]], float]:
    """Columns that stand side by side in so many inches, block by block, and how wide each is.

    Example:
        >>> in_blocks("abcdefg", 4.9, False)[1], in_blocks("abcde", 1.8, True)[0]
        (0.7, [['a', 'b'], ['c', 'd'], ['e']])
    """
    fitting = max(1, int(room / (STEP if intervals else NARROW) + 1e-9))
    blocks = [list(columns[start:start + fitting]) for start in range(0, len(columns), fitting)]
    return blocks, min(STEP, max(NARROW, int(100 * room / len(blocks[0])) / 100))


def draw_block(axes: Axes, grid: Sequence[tuple], columns: Sequence[str], top: float, left: float,
               step: float) -> None:
    """Some columns of every row, from a height downwards (in rows)."""
    for place, text in enumerate(["n", *map(head, columns)]):
        at = left + step * (place - 0.5) if place else left - 0.43
        axes.text(at, top + 0.3, text, ha="center", va="bottom", fontweight="bold", fontsize=8)
    axes.plot([0, left + step * len(columns)], [top + 0.5] * 2, color=GREY, linewidth=0.8)
    if (seam := seam_of(grid)) is not None:
        axes.plot([0, left + step * len(columns)], [top + seam + 0.5] * 2, color=GREY,
                  linewidth=0.4)
    for height, (name, printed, seeds, values) in enumerate(grid, start=1):
        how = {"va": "center", "fontsize": 8.5, "color": GREY if printed else "black",
               "fontstyle": "italic" if printed else "normal"}
        axes.text(0.05, top + height, name, **how)
        axes.text(left - 0.43, top + height, "reported" if printed else seeds, ha="center", **how)
        by_column = {cell.name: cell for cell in values}
        for place, column in enumerate(columns):
            number(axes, left + step * (place + 0.5), top + height, by_column[column], how)


def number(axes: Axes, x: float, y: float, cell: pd.Series, how: dict) -> None:
    """One cell: the mean, and its interval small beside it."""
    interval = not pd.isna(cell["half"])
    axes.text(x + 0.02 if interval else x, y, number_text(cell["mean"]),
              ha="right" if interval else "center", **how)
    if interval:
        axes.text(x + 0.05, y, f"±{cell['half']:.1f}", ha="left", **(how | {"fontsize": 8,
                                                                           "color": GREY}))
