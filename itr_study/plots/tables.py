"""Tables of runs: their numbers, as HTML for notebooks and as pictures for slides."""

from collections.abc import Sequence
from html import escape

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from itr_study.digits import number
from itr_study.plots.names import MARK, name_of
from itr_study.plots.style import (
    GREY,
    WIDEST,
    Picture,
    canvas,
    finish,
    room_for_words,
    styled,
    summarise,
)

RECALL_COLUMNS = tuple(f"test_{way}_r{k}" for way in ("i2t", "t2i") for k in (1, 5, 10))
HEADS = {f"test_{way}_r{k}": f"{arrow} R@{k}" for way, arrow in (("i2t", "i→t"), ("t2i", "t→i"))
         for k in (1, 5, 10)} | {"test_rsum": "RSUM", "train_rsum": "train RSUM",
                                 "test_fast_rsum": "RSUM with FR",
                                 "rerank_gain": "gain of RSUM",
                                 "rerank_seconds": "seconds to\nre-rank",
                                 "rerank_cpu_seconds": "seconds to\nre-rank",
                                 "rerank_milliseconds": "ms to\nre-rank",
                                 "test_entropy": "entropy", "test_entropy_noise": "noise",
                                 "minutes": "minutes\na run", "epoch_seconds": "seconds an\nepoch",
                                 "test_human_expert_tau_c": "experts\nτ-c",
                                 "test_human_crowdflower_tau_b": "crowd\nτ-b"}
FAINT = f"color:var(--jp-ui-font-color2, {GREY})"
MANY = 12  # printed rows alone that fill half a screen
HALF = "±: half the 95 % interval of the mean"
ARROWS, OTHERS = {"i2t": "i→t", "t2i": "t→i"}, {"ndcg": "NDCG", "tau": "τ", "cs100": "CS@100",
                                                "map": "mAP@R", "rp": "R-P", "r1": "R@1",
                                                "hubness": "hubness", "rel10": "relevance of 10"}


def head(column: str) -> str:
    """Name a column in tables and plots, with a line break if it is long.

    Example:
        >>> head("test_i2t_r1"), head("test_t2i_ndcg_exact"), head("eccv_i2t_map"), head("loss")
        ('i→t R@1', 't→i NDCG\\n(exact)', 'i→t mAP@R', 'loss')
    """
    if column in HEADS:
        return HEADS[column]
    _, *parts = column.split("_")
    if len(parts) < 2 or parts[0] not in ARROWS or parts[1] not in OTHERS:
        return column
    text = f"{ARROWS[parts[0]]} {OTHERS[parts[1]]}"
    return text if len(parts) == 2 else f"{text}\n({'_'.join(parts[2:])})"


def title_of(column: str) -> str:
    """Name a column, or the difference of two, on one line.

    Example:
        >>> title_of("test_t2i_ndcg_exact"), title_of("test_fast_rsum-test_rsum")
        ('t→i NDCG (exact)', 'RSUM with FR − RSUM')
    """
    return " − ".join(head(name) for name in column.split("-")).replace("\n", " ")


def table_cells(rows: pd.DataFrame, by: str, columns: Sequence[str],
                reported: pd.DataFrame | None = None) -> pd.DataFrame:
    """Compute mean and half width of the 95 % interval per method and column.

    Args:
        rows: one run per row: `by`, seed, columns.
        by, columns: columns of the methods and of the numbers.
        reported: printed rows: `by` and columns (NaN: a dash).

    Returns:
        Frame of `by`, column, mean, half (NaN for one seed, or seeds that all agree), n, reported;
        printed rows after ours.
    """
    frames = [summarise(rows, by, column).assign(column=column, reported=False)
              for column in columns]
    if reported is not None:
        frames += [pd.DataFrame({by: reported[by], "mean": reported[column], "low": np.nan,
                                 "high": np.nan, "n": 0, "column": column, "reported": True})
                   for column in columns]
    cells = pd.concat(frames, ignore_index=True)
    half = (cells["high"] - cells["low"]) / 2
    # Seeds that agree, but for rounding, say nothing of chance: a cost beside every run, or luck.
    cells["half"] = half.where(half > 1e-9 * cells["mean"].abs())
    return cells[[by, "column", "mean", "half", "n", "reported"]]


def grid_of(cells: pd.DataFrame, by: str, columns: Sequence[str]) -> list[tuple]:
    """List (name, reported, n, [cell of each column]) for each row of the table."""
    keys = cells[[by, "reported"]].drop_duplicates().itertuples(index=False)
    return [(name_of(str(name)), printed, int(part["n"].max()),
             [part.loc[column] for column in columns])
            for name, printed in keys
            for part in [cells[(cells[by] == name) & (cells["reported"] == printed)]
                         .set_index("column")]]


def seam_of(grid: Sequence[tuple]) -> int | None:
    """Find the row of `grid_of` that begins the part marked †; None if there are no two parts.

    Example:
        >>> rows = [("a", False, 5, []), ("b †", False, 5, []), ("printed", True, 0, [])]
        >>> seam_of(rows), seam_of(rows[::-1]), seam_of(rows[:1]), seam_of(rows[1:])
        (1, None, None, None)
    """
    seen = [MARK in name for name, printed, *_ in grid if not printed]
    first = len(seen) - sum(seen)
    return first if 0 < first < len(seen) and all(seen[first:]) else None


def number_text(value: float) -> str:
    """Write a number of a table, or a dash.

    Example:
        >>> number_text(12.34), number_text(0.03), number_text(0.0), number_text(float("nan"))
        ('12.3', '<0.1', '0.0', '–')
    """
    if 0 < value < 0.05:  # which is not nothing
        return "<0.1"
    return "–" if pd.isna(value) else number(value, 1)


def footnote(cells: pd.DataFrame, note: str) -> str:
    """Join the words below a table, with the meaning of ± if there is any."""
    return "; ".join(filter(None, [note.rstrip("; "), HALF * bool(cells["half"].notna().any())]))


class Page(str):
    """HTML that a notebook renders."""

    def _repr_html_(self) -> str:
        return str(self)


def marked(rows: pd.DataFrame, apart: bool = True) -> pd.DataFrame:
    """Name the arm of runs in `method`, with † if an encoder or the labels have seen captions.

    Args:
        rows: runs with arm and seen.
        apart: whether to put the marked ones last.
    """
    seen = rows["seen"] != ""
    named = rows.assign(method=[name_of(arm) + MARK * mark for arm, mark in zip(
        rows["arm"], seen, strict=True)])
    return named.sort_values("seen", kind="stable") if apart else named


def marked_names(rows: pd.DataFrame) -> dict[str, str]:
    """Map the arms of some runs to their names, with the † of `marked`."""
    named = marked(rows)
    return dict(zip(named["arm"], named["method"], strict=True))


def tables_by_seen(rows: pd.DataFrame, title: str, columns: Sequence[str] = RECALL_COLUMNS,
                   reported: pd.DataFrame | None = None) -> Page:
    """Make one table of the runs that have seen no captions, and one of those that have (†).

    Args:
        rows: runs, as `Study.train` gives them.
        title: in front of each table.
        columns, reported: as in `table_cells`.
    """
    rows = marked(rows)
    kinds = {False: "nothing has seen captions", True: "encoder or labels have seen captions (†)"}
    return Page("".join(table_html(part, "method", columns, reported, f"{title}: {kinds[seen]}")
                        for seen, part in rows.groupby(rows["seen"] != "")))


def table_html(rows: pd.DataFrame, by: str, columns: Sequence[str] = RECALL_COLUMNS,
               reported: pd.DataFrame | None = None, title: str = "", note: str = "") -> Page:
    """Make the table for a notebook; folded if many rows are printed and none is ours.

    Args:
        rows, by, columns, reported: as in `table_cells`.
        title, note: caption of the table, and the words below it.
    """
    cells = table_cells(rows, by, columns, reported)
    heads = "".join(f"<th>{escape(head(column)).replace(chr(10), '<br>')}</th>"
                    for column in columns)
    grid = grid_of(cells, by, columns)
    folded = rows.empty and len(grid) > MANY
    lines = [f"<caption style='text-align:left'>{escape(title)}</caption>"] * bool(
        title and not folded)
    lines.append(f"<tr><th style='text-align:left'>{escape(by)}</th><th>n</th>{heads}</tr>")
    seam = seam_of(grid)
    for place, (name, printed, seeds, values) in enumerate(grid):
        texts = []
        for cell in values:
            number = number_text(cell["mean"])
            half = "" if pd.isna(cell["half"]) else f" <small>±{cell['half']:.1f}</small>"
            texts.append(f"<td style='white-space:nowrap'>{number}{half}</td>")
        shade = f" style='{FAINT};font-style:italic'" if printed else (
            f" style='border-top:1px solid {GREY}'" * (place == seam))
        lines.append(f"<tr{shade}><td style='text-align:left'>{escape(name)}</td>"
                     f"<td>{'reported' if printed else seeds}</td>{''.join(texts)}</tr>")
    note = footnote(cells, note)
    below = f"<div style='{FAINT};font-size:90%'>{escape(note)}</div>" if note else ""
    page = "<div style='overflow-x:auto'><table>" + "".join(lines) + f"</table>{below}</div>"
    return Page(f"<details><summary>{escape(title) or 'printed rows'}</summary>{page}</details>"
                if folded else page)


STEP, NARROW, COUNT = 0.86, 0.66, 0.8  # inches: a column, one without intervals, that of n
ROW = 0.27  # inches
HEADING = 1.6  # rows from the line above a block to the first of its names


class TablePicture(Picture):
    """A table drawn for slides; a notebook shows the HTML, which scrolls and can be copied."""

    page = Page()

    def _repr_html_(self) -> str:
        return self.page

    def _repr_png_(self) -> None:
        return None


@styled
def table_figure(rows: pd.DataFrame, by: str, title: str,
                 columns: Sequence[str] = RECALL_COLUMNS,
                 reported: pd.DataFrame | None = None, note: str = "") -> Picture:
    """Draw the table of `table_html`; columns that do not fit go on below, with the names again.

    Args:
        rows, by, columns, reported: as in `table_cells`.
        title, note: headline and caption.
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
    finish(figure, title, footnote(cells, note))
    room_for_words(figure)
    return figure


def in_blocks(columns: Sequence[str], room: float, intervals: bool
              ) -> tuple[list[list[str]], float]:
    """Cut columns into blocks that fit into so many inches; also return a column's width.

    Example:
        >>> in_blocks("abcdefg", 4.9, False)[1], in_blocks("abcde", 1.8, True)[0]
        (0.7, [['a', 'b'], ['c', 'd'], ['e']])
    """
    fitting = max(1, int(room / (STEP if intervals else NARROW) + 1e-9))
    blocks = [list(columns[start:start + fitting]) for start in range(0, len(columns), fitting)]
    return blocks, min(STEP, max(NARROW, int(100 * room / len(blocks[0])) / 100))


def draw_block(axes: Axes, grid: Sequence[tuple], columns: Sequence[str], top: float, left: float,
               step: float) -> None:
    """Draw some columns of every row, from a height downwards (in rows)."""
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
            cell, x = by_column[column], left + step * (place + 0.5)
            if pd.isna(cell["half"]):
                axes.text(x, top + height, number_text(cell["mean"]), ha="center", **how)
                continue
            axes.text(x + 0.02, top + height, number_text(cell["mean"]), ha="right", **how)
            axes.text(x + 0.05, top + height, f"±{cell['half']:.1f}", ha="left",
                      **how | {"fontsize": 8, "color": GREY})
