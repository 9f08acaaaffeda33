"""What the papers print: every number as CSV, every claim as a row; differences are computed.

`reported_<paper>.csv` holds one printed number per row, `claims.csv` one claim per row; the
columns and the labels of arms are explained in README.md beside this file.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from io import StringIO

import numpy as np
import pandas as pd

from itr_study.checks import check_choice
from itr_study.evaluation.percent import percent

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
    """One CSV of this folder, empty cells as empty strings except in `value`; never changed."""
    text = files(__name__).joinpath(name).read_text(encoding="utf-8")
    frame = pd.read_csv(StringIO(text), dtype=str, keep_default_na=False).fillna("")
    return frame.assign(value=pd.to_numeric(frame["value"])) if "value" in frame else frame


def reported(paper: str, table: str | None = None, dataset: str | None = None) -> pd.DataFrame:
    """The numbers a paper prints, as printed (percent for recalls).

    Args:    paper: "topk", "listwise", "bcls" or "dvse", or one of COMPETITORS.
             table: its number as printed, such as "I"; None takes every table.
             dataset: such as "flickr8k"; None takes every data set.
    Returns: frame of paper, table, dataset, setting, method, variant, direction, metric, value.
    Raises:  ValueError for an unknown paper, table or data set, listing those that exist.
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
    """A printed table with one method per row, in the order printed: method, and our columns in
    percent: the six recalls, test_rsum where it is printed, the metrics of ECCV Caption, or
    Kendall's tau; NaN where the paper prints a dash.

    Args:    dataset: where a table prints several; None takes the whole table.
    Example:
        >>> float(wide("topk", "I").set_index("method").loc["TOP-k Ranking, k=5", "test_i2t_r1"])
        32.7
    """
    frame = reported(paper, table, dataset)
    eccv = (frame["dataset"] == "eccv").all()
    short = {printed: name for name, printed in PRINTED.items()}
    named = frame.assign(
        method=(frame["method"] + ", " + frame["variant"]).str.rstrip(", "),
        column=("eccv_" if eccv else "test_") + frame["direction"] + "_"
        + frame["metric"].map(short).fillna(frame["metric"]))
    named["column"] = named["column"].replace("test_both_RSUM", "test_rsum")
    order, names = pd.unique(named["method"]), pd.unique(named["column"])
    recalls = set(RECALLS) <= set(names)
    columns = [*RECALLS, *({"test_rsum"} & set(names))] if recalls else list(names)
    named["value"] = named["value"].mask(named["metric"].isin(FRACTIONS), percent(named["value"]))
    return (named.pivot(index="method", columns="column", values="value")
            .reindex(index=order, columns=columns).rename_axis(columns=None).reset_index())


def load_claims(paper: str | None = None) -> pd.DataFrame:
    """Every claim of a paper (None: of all papers), one per row, all columns as text."""
    frame = read_table("claims.csv")
    return frame.copy() if paper is None else frame[frame["paper"] == paper].reset_index(drop=True)


def split_list(cell: str) -> list[str]:
    """The items of a cell that holds a list, separated by semicolons."""
    return [item.strip() for item in cell.split(";") if item.strip()]


def reported_value(rows: pd.DataFrame, metric: str) -> float:
    """One printed number, by our name of the metric, from the rows of one method.

    Args:    rows: rows of one method in one table.
             metric: "test_i2t_r1" …, "test_i2t_class_r1" (birds are printed by class alone),
             "eccv_t2i_map", "eccv_t2i_rp", "test_i2t_tau_sentence",
             "test_rsum" (the sum of six where they are printed), "step_milliseconds" (of training:
             ours are of a step, those printed of an epoch, and claims are about their ratio),
             "rerank_cpu_seconds" (of the test, whatever else is in it), or "a-b" for a contrast.
    Raises:  ValueError where the table does not print it, or more than one row fits.
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
    """Rows of one method: a selector reads `tables|method|variant`, a table that prints several
    data sets `VI@coco1k`, one that prints several settings too `I@coco1k@ResNet-152`, by how the
    setting begins; a semicolon of a printed variant is written as a comma."""
    _, method, variant = selector.split("|")
    number, _, place = table.partition("@")
    dataset, _, setting = place.partition("@")
    rows = reported(paper, number)
    rows = rows[rows["dataset"] == dataset] if dataset else rows
    rows = rows[rows["setting"].str.startswith(setting)]
    return rows[(rows["method"] == method) & (rows["variant"].str.replace(";", ",") == variant)]


def reported_differences(claim: Mapping[str, str]) -> pd.DataFrame:
    """The differences behind a claim, computed from the printed numbers.

    Selectors name rows as `tables|method|variant`, several of them separated by `;`, several
    tables by `+`. Difference and equivalence pair them one to one (a single one is repeated),
    order takes neighbours of `reported_a`, peak the best of `reported_a` minus the best of
    `reported_b`, in each table. Under a relative margin ("5%") differences are in percent.

    Returns: frame of table, metric, first, second, difference; empty where nothing is printed.
    """
    records = []
    firsts, seconds = split_list(claim["reported_a"]), split_list(claim["reported_b"])
    if claim["kind"] == "order":
        firsts, seconds = firsts[:-1], firsts[1:]
    for metric in split_list(claim["metric"]) if firsts else []:
        if claim["kind"] == "peak":
            records += peak_records(claim["paper"], firsts, seconds, metric)
        else:
            records += pair_records(claim["paper"], firsts, seconds, metric,
                                    claim["margin"].endswith("%"))
    return pd.DataFrame(records, columns=["table", "metric", "first", "second", "difference"])


def pair_records(paper: str, firsts: list[str], seconds: list[str], metric: str,
                 relative: bool = False) -> list[tuple]:
    """One record per pair of selectors and table; a list of one is repeated."""
    size = max(len(firsts), len(seconds))
    firsts, seconds = (part * size if len(part) == 1 else part for part in (firsts, seconds))
    records = []
    for first, second in zip(firsts, seconds, strict=True):
        tables = [selector.split("|")[0].split("+") for selector in (first, second)]
        for one, two in zip(*tables, strict=True):
            a = reported_value(select(paper, one, first), metric)
            b = reported_value(select(paper, two, second), metric)
            place = one if one == two else f"{one}/{two}"
            records.append((place, metric, first, second,
                            round(difference(a, b, relative), 6)))
    return records


def difference(a: float | np.ndarray, b: float | np.ndarray,
               relative: bool = False) -> float | np.ndarray:
    """a - b; relative: by how many percent a exceeds b."""
    return percent(a / b - 1) if relative else a - b


def peak_records(paper: str, firsts: list[str], seconds: list[str], metric: str) -> list[tuple]:
    """One record per table: the best of the first selectors minus the best of the second."""
    records = []
    for table in firsts[0].split("|")[0].split("+"):
        best = [max((reported_value(select(paper, table, selector), metric), selector)
                    for selector in group if table in selector.split("|")[0].split("+"))
                for group in (firsts, seconds)]
        records.append((table, metric, best[0][1], best[1][1],
                        round(best[0][0] - best[1][0], 6)))
    return records
