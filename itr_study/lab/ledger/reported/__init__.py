"""What the papers print: every number as CSV, every claim as a row; differences are computed.

README.md beside this file explains the columns and the labels of arms.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from io import StringIO

import numpy as np
import pandas as pd

from itr_study.checks import check_choice
from itr_study.evaluation.table import percent

PAPERS = ("topk", "listwise", "bcls", "dvse")
COMPETITORS = ("clipscore",)  # not studied here, only compared with
RECALLS = tuple(f"test_{way}_r{k}" for way in ("i2t", "t2i") for k in (1, 5, 10))
PRINTED = {"r1": "R@1", "r5": "R@5", "r10": "R@10", "map": "mAP@R", "rp": "R-P",
           "tau": "kendall_tau"}
OF_BOTH = {"test_rsum": "RSUM", "step_milliseconds": "train_seconds_per_epoch",  # a ratio
           "rerank_cpu_seconds": "seconds"}  # of no single direction
FRACTIONS = ("kendall_tau",)  # as papers print it; ours are in percent


@cache
def read_table(name: str) -> pd.DataFrame:
    """Read one CSV of this folder, empty cells as empty strings except in `value`."""
    text = files(__name__).joinpath(name).read_text(encoding="utf-8")
    frame = pd.read_csv(StringIO(text), dtype=str, keep_default_na=False).fillna("")
    return frame.assign(value=pd.to_numeric(frame["value"])) if "value" in frame else frame


def reported(paper: str, table: str | None = None, dataset: str | None = None) -> pd.DataFrame:
    """Look up the numbers a paper prints, as printed (percent for recalls).

    Args:
        paper: one of PAPERS or COMPETITORS.
        table: its number as printed, such as "I"; None takes every table.
        dataset: such as "flickr8k"; None takes every data set.
    Returns: Frame of paper, table, dataset, setting, method, variant, direction, metric, value.
    Raises: ValueError: an unknown paper, table or data set; the message lists those that exist.

    Example:
        >>> len(reported("topk", table="I"))
        58
    """
    check_choice("paper", paper, PAPERS + COMPETITORS)
    frame = read_table(f"reported_{paper}.csv")
    for column, wanted in (("table", table), ("dataset", dataset)):
        if wanted is not None:
            check_choice(f"{column} of {paper}", wanted, sorted(frame[column].unique()))
            frame = frame[frame[column] == wanted]
    return frame.reset_index(drop=True)


def wide(paper: str, table: str, dataset: str | None = None) -> pd.DataFrame:
    """Arrange a printed table with one method per row, in the order printed.

    Columns are method and ours in percent: the six recalls, test_rsum if it is printed, the metrics
    of ECCV Caption, or Kendall's tau; NaN for a dash. A method that is printed for several settings
    (features and text encoder) is named with them. Arguments as in `reported`.

    Example:
        >>> float(wide("topk", "I").set_index("method").loc["TOP-k Ranking, k=5", "test_i2t_r1"])
        32.7
    """
    frame = reported(paper, table, dataset)
    judge = "_eccv" * bool((frame["dataset"] == "eccv").all())
    short = {printed: name for name, printed in PRINTED.items()}
    named = frame.assign(
        method=(frame["method"] + ", " + frame["variant"]).str.rstrip(", "),
        column="test_" + frame["direction"] + "_"
        + frame["metric"].map(short).fillna(frame["metric"]) + judge)
    named["column"] = named["column"].replace("test_both_RSUM", "test_rsum")
    if named.duplicated(["method", "column"]).any():  # once for each kind of features
        named["method"] += " (" + named["setting"] + ")"
    order, names = pd.unique(named["method"]), pd.unique(named["column"])
    recalls = set(RECALLS) <= set(names)
    columns = [*RECALLS, *({"test_rsum"} & set(names))] if recalls else list(names)
    named["value"] = named["value"].mask(named["metric"].isin(FRACTIONS), percent(named["value"]))
    return (named.pivot(index="method", columns="column", values="value")
            .reindex(index=order, columns=columns).rename_axis(columns=None).reset_index())


def load_claims(paper: str | None = None) -> pd.DataFrame:
    """Read every claim of a paper (None: of all), one per row, all columns as text."""
    frame = read_table("claims.csv")
    return frame.copy() if paper is None else frame[frame["paper"] == paper].reset_index(drop=True)


def split_list(cell: str) -> list[str]:
    """Split a cell that holds a list, separated by semicolons."""
    return [item.strip() for item in cell.split(";") if item.strip()]


def reported_value(rows: pd.DataFrame, metric: str) -> float:
    """Look up one printed number by our name of the metric.

    Args:
        rows: of one method in one table.
        metric: "test_i2t_r1" …, "test_i2t_class_r1" (birds are printed by class alone),
            "test_t2i_map_eccv", "test_i2t_tau_sentence", "test_rsum" (the sum of six if they are
            printed), "step_milliseconds" (printed of an epoch; claims are about a ratio),
            "rerank_cpu_seconds" (printed of a whole test), or "a-b" for a contrast.
    Raises: ValueError: the table does not print it, or more than one row fits.
    """
    if "-" in metric:
        first, second = metric.split("-")
        return reported_value(rows, first) - reported_value(rows, second)
    if metric == "test_rsum" and "R@10" in set(rows["metric"]):
        return sum(reported_value(rows, name) for name in RECALLS)
    parts = metric.replace("_class", "").split("_")
    direction, name = ("both", OF_BOTH[metric]) if metric in OF_BOTH else (
        parts[1], PRINTED[parts[2]])
    printed = rows.loc[(rows["direction"] == direction) & (rows["metric"] == name), "value"]
    if len(printed) != 1:
        raise ValueError(f"expected one printed {direction} {name}, found {len(printed)}; "
                         "check the selector `table|method|variant` in claims.csv")
    value = float(printed.iloc[0])
    return percent(value) if name in FRACTIONS else value


@cache
def select(paper: str, table: str, selector: str) -> pd.DataFrame:
    """Select the rows of one method; README.md says what a selector reads."""
    _, method, variant = selector.split("|")
    number, _, place = table.partition("@")
    dataset, _, setting = place.partition("@")
    rows = reported(paper, number)
    rows = rows[rows["dataset"] == dataset] if dataset else rows
    rows = rows[rows["setting"].str.startswith(setting)]
    return rows[(rows["method"] == method) & (rows["variant"].str.replace(";", ",") == variant)]


def reported_differences(claim: Mapping[str, str]) -> pd.DataFrame:
    """Compute the differences behind a claim from the printed numbers.

    Difference and equivalence pair selectors one to one (a single one is repeated), order takes
    neighbours of `reported_a`, peak the best of `reported_a` minus the best of `reported_b`, in
    each table. Under a relative margin ("5%") differences are in percent.

    Returns: Frame of table, metric, first, second, difference; empty if nothing is printed.
    """
    firsts, seconds = split_list(claim["reported_a"]), split_list(claim["reported_b"])
    if claim["kind"] == "order":
        firsts, seconds = firsts[:-1], firsts[1:]
    records = []
    for metric in split_list(claim["metric"]) if firsts else []:
        def value(cell: tuple[str, str], metric: str = metric) -> float:
            return reported_value(select(claim["paper"], *cell), metric)

        pairs = _best_cells(firsts, seconds, value) if claim["kind"] == "peak" else \
            _cell_pairs(firsts, seconds)
        for one, two in pairs:
            place = one[0] if one[0] == two[0] else f"{one[0]}/{two[0]}"
            apart = difference(value(one), value(two), claim["margin"].endswith("%"))
            records.append((place, metric, one[1], two[1], round(apart, 6)))
    return pd.DataFrame(records, columns=["table", "metric", "first", "second", "difference"])


def difference(a: float | np.ndarray, b: float | np.ndarray,
               relative: bool = False) -> float | np.ndarray:
    """Compute a - b; relative: by how many percent a exceeds b."""
    return percent(a / b - 1) if relative else a - b


def _cells(selector: str) -> list[tuple[str, str]]:
    """List (table, selector) for each table of a selector."""
    return [(table, selector) for table in selector.split("|")[0].split("+")]


def _cell_pairs(firsts: list[str], seconds: list[str]) -> list[tuple]:
    """Pair selectors table by table; a list of one is repeated."""
    size = max(len(firsts), len(seconds))
    firsts, seconds = (part * size if len(part) == 1 else part for part in (firsts, seconds))
    return [pair for first, second in zip(firsts, seconds, strict=True)
            for pair in zip(_cells(first), _cells(second), strict=True)]


def _best_cells(firsts: list[str], seconds: list[str], value: Callable) -> list[tuple]:
    """Pair the best of the first selectors with the best of the second in each table."""
    return [tuple(max((cell for selector in group for cell in _cells(selector) if cell[0] == table),
                      key=lambda cell: (value(cell), cell[1])) for group in (firsts, seconds))
            for table, _ in _cells(firsts[0])]
