"""Read times that benchmarks saved (`--save`): of steps, re-rankers and models.

Rounds of a benchmark count as seeds: all arms took turns in each, so that two of them are compared
at the same speed of the machine.
"""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from itr_study.files.paths import evidence_folder
from itr_study.lab.ledger.verdict import GROWTH, RERANKING, STEPS

TIMES = {"steps": STEPS, "rerank": RERANKING, "growth": GROWTH}  # benchmark -> its column
EPOCH, TEST = "epoch_seconds", "test_seconds"
COSTS = ("arm", "parameters", "score_seconds", "memory_mb")
SCRIPTS = {"epochs": "steps"}  # where a file is not called as what makes it
EPOCHS = ("model", "arm", "seed", EPOCH, TEST, "precision")


def times_file(benchmark: str, dataset: str = "common") -> Path:
    """Locate what benchmarks/<benchmark>.py saved, of a data set or of none."""
    return evidence_folder() / dataset / f"{benchmark}.csv"


def saved_times(benchmark: str, columns: Sequence[str], dataset: str = "common") -> pd.DataFrame:
    """Read what a benchmark saved; no lines if it has not run. ValueError for missing columns."""
    path = times_file(benchmark, dataset)
    table = pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=list(columns))
    if missing := set(columns) - set(table.columns):
        raise ValueError(f"{path} lacks the columns {', '.join(sorted(missing))}; "
                         f"{again(benchmark, dataset)}")
    return table


def again(benchmark: str, dataset: str = "common") -> str:
    """Say how to repeat a benchmark."""
    where = f" --dataset {dataset}" * (dataset != "common")
    return f"measure again: python benchmarks/{SCRIPTS.get(benchmark, benchmark)}.py{where} --save"


def timed_rows(benchmark: str) -> pd.DataFrame:
    """Read arm, seed (round), the time (`TIMES`), dataset, model of a benchmark, if measured.

    Raises: ValueError: a column is missing, a time is none, rounds come twice, or there are several
        data sets or models.
    """
    path, times = times_file(benchmark), TIMES[benchmark]
    table = saved_times(benchmark, ("arm", "seed", times, "dataset", "model"))
    values = pd.to_numeric(table[times], errors="coerce")
    if not values.between(0, float("inf"), inclusive="neither").all():
        raise ValueError(f"{path}: {times} must be numbers above 0; {again(benchmark)}")
    if table.duplicated(["arm", "seed"]).any() or (table[["dataset", "model"]].nunique() > 1).any():
        raise ValueError(f"{path} holds a round twice, or several data sets or models; "
                         f"{again(benchmark)}")
    return table


def model_costs(dataset: str) -> pd.DataFrame:
    """Read arm (model), parameters (millions), score_seconds, memory_mb, if measured.

    The seconds are of one CPU thread for all of test. Raises: ValueError for missing columns.
    """
    return saved_times("models", COSTS, dataset)
