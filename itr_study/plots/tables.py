"""Tables of runs and of differences for a reader."""

from collections.abc import Sequence
from html import escape

import numpy as np
import pandas as pd

from itr_study.digits import digits_for, number, signed
from itr_study.plots.names import name_of
from itr_study.plots.style import GREY, summarise

RECALL_COLUMNS = tuple(f"test_{way}_r{k}" for way in ("i2t", "t2i") for k in (1, 5, 10))
HEADS = {f"test_{way}_r{k}": f"{arrow} R@{k}" for way, arrow in (("i2t", "i→t"), ("t2i", "t→i"))
         for k in (1, 5, 10)} | {"test_rsum": "RSUM", "train_rsum": "train RSUM",
                                 "dev_rsum": "RSUM on dev",
                                 "test_ndcg_exact": "exact NDCG", "stood": "not\ncollapsed",
                                 "test_fast_rsum": "RSUM with FR",
                                 "rerank_gain": "gain of RSUM", "rerank_cpu_growth": "growth",
                                 "rerank_seconds": "seconds to\nre-rank",
                                 "rerank_cpu_seconds": "seconds to\nre-rank",
                                 "rerank_milliseconds": "ms to\nre-rank",
                                 "test_entropy": "entropy", "test_entropy_noise": "noise",
                                 "parameters": "thousand\nparameters",
                                 "score_seconds": "seconds to\nscore",
                                 "memory_mb": "MB more\nto score",
                                 "minutes": "minutes\na run", "epoch_seconds": "seconds an\nepoch",
                                 "test_seconds": "seconds a\ntest",
                                 "test_human_expert_tau_c": "experts\nτ-c",
                                 "test_human_crowdflower_tau_b": "crowd\nτ-b"}
FAINT = f"color:var(--jp-ui-font-color2, {GREY})"
MANY = 12  # printed rows alone that fill half a screen
HALF = "±: half the 95 % interval of the mean"
ARROWS = {"i2t": "i→t", "t2i": "t→i"}
OTHERS = {"ndcg": "NDCG", "tau": "τ", "cs100": "CS@100", "map": "mAP@R", "rp": "R-P", "r1": "R@1",
          "r5": "R@5", "r10": "R@10", "hubness": "hubness", "rel10": "relevance of 10"}


def head(column: str) -> str:
    r"""Name a column in tables and plots, with a line break if it is long.

    Example:
        >>> head("test_i2t_r1"), head("test_t2i_ndcg_exact"), head("eccv_i2t_map"), head("loss")
        ('i→t R@1', 't→i NDCG\n(exact)', 'i→t mAP@R', 'loss')
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
        reported: printed rows: `by` and columns (NaN: a dash).
    Returns: Frame of `by`, column, mean, half (NaN for one seed, or seeds that all agree), n,
        reported; printed rows after ours.
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


def number_text(value: float) -> str:
    """Write a number of a table, or a dash.

    Example:
        >>> number_text(12.34), number_text(0.03), number_text(0.0), number_text(float("nan"))
        ('12.3', '<0.1', '0.0', '–')
    """
    if 0 < value < 0.05:  # which is not nothing
        return "<0.1"
    return "–" if pd.isna(value) else number(value, 1)


class Page(str):
    """HTML that a notebook renders."""

    def _repr_html_(self) -> str:
        return str(self)


def table_html(rows: pd.DataFrame, by: str, columns: Sequence[str] = RECALL_COLUMNS,
               reported: pd.DataFrame | None = None, title: str = "", note: str = "") -> Page:
    """Make the table for a notebook; folded if many rows are printed and none is ours.

    Args: as `table_cells`, with a title above and a note below. Words in a column `note` of rows
    are shown behind the numbers.
    """
    cells = table_cells(rows, by, columns, reported)
    notes = {name_of(str(name)): words for name, words in zip(rows[by], rows["note"], strict=True)
             } if "note" in rows else {}
    heads = "".join(f"<th>{escape(head(column)).replace(chr(10), '<br>')}</th>"
                    for column in [*columns, *["note"] * any(notes.values())])
    grid = cells.set_index("column").groupby([by, "reported"], sort=False)
    folded = rows.empty and len(grid) > MANY
    lines = [f"<caption style='text-align:left'>{escape(title)}</caption>"] * bool(
        title and not folded)
    lines.append(f"<tr><th style='text-align:left'>{escape(by)}</th><th>n</th>{heads}</tr>")
    for (arm, printed), of_row in grid:
        name, texts = name_of(str(arm)), []
        for cell in (of_row.loc[column] for column in columns):
            half = "" if pd.isna(cell["half"]) else f" <small>±{cell['half']:.1f}</small>"
            texts.append(f"<td style='white-space:nowrap'>{number_text(cell['mean'])}{half}</td>")
        if any(notes.values()):
            texts.append(f"<td style='text-align:left'>{escape(notes.get(name, ''))}</td>")
        shade = f" style='{FAINT};font-style:italic'" if printed else ""
        seeds = "reported" if printed else int(of_row["n"].max())
        lines.append(f"<tr{shade}><td style='text-align:left'>{escape(name)}</td>"
                     f"<td>{seeds}</td>{''.join(texts)}</tr>")
    note = "; ".join(filter(None, [note.rstrip("; "), HALF * bool(cells["half"].notna().any())]))
    below = f"<div style='{FAINT};font-size:90%'>{escape(note)}</div>" if note else ""
    page = "<div style='overflow-x:auto'><table>" + "".join(lines) + f"</table>{below}</div>"
    return Page(f"<details><summary>{escape(title) or 'printed rows'}</summary>{page}</details>"
                if folded else page)


def readable(differences: pd.DataFrame) -> pd.DataFrame:
    """Write names and numbers of `Study.compare` as text: two decimals, more if tiny."""
    ends = ["difference", "low", "high"]
    digits = [max(2, digits_for(*row)) for row in differences[ends].to_numpy()]
    texts = {name: ["–" if pd.isna(value) else signed(value, count) for value, count in
                    zip(differences[name], digits, strict=True)] for name in ends}
    shown = differences.assign(comparison=differences["comparison"].map(name_of),
                               metric=differences["metric"].map(title_of), **texts)
    noted = ["note"] * ("note" in shown and bool(shown["note"].any()))
    return shown[["comparison", "metric", "n", *ends, "verdict", *noted]]


def finding(differences: pd.DataFrame, zero: str = "zero") -> str:
    """Say what is settled of all of some differences, for a subtitle; else nothing.

    Example:
        >>> table = pd.DataFrame({"verdict": ["higher", "higher"]})
        >>> finding(table), finding(table.assign(verdict="undecided")), finding(table.head(0))
        ('all above zero', 'no difference found', '')
        >>> finding(table.assign(verdict=["higher", "lower"]))
        ''
    """
    verdicts = set(differences["verdict"])
    return {"higher": f"all above {zero}", "lower": f"all below {zero}",
            "undecided": "no difference found"}.get(
                verdicts.pop() if len(verdicts) == 1 else "", "")
