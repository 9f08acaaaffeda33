"""Read times that benchmarks saved (`--save`): of steps, re-rankers and models.

Rounds of a benchmark count as seeds: all arms took turns in each, so that two of them are compared
at the same speed of the machine.
"""

from pathlib import Path

import pandas as pd

from itr_study.files.paths import evidence_folder
from itr_study.lab.ledger.verdict import GROWTH, RERANKING, STEPS

TIMES = {"steps": STEPS, "rerank": RERANKING, "growth": GROWTH}  # benchmark -> its column
COSTS = ("arm", "parameters", "score_seconds", "memory_mb")


def times_file(benchmark: str, dataset: str = "common") -> Path:
    """Locate what benchmarks/<benchmark>.py saved, of a data set or of none."""
    return evidence_folder() / dataset / f"{benchmark}.csv"


def timed_rows(benchmark: str) -> pd.DataFrame:
    """Read arm, seed (round), the time (`TIMES`), dataset, model of a benchmark, if measured.

    Raises: ValueError: a column is missing, a time is none, rounds come twice, or there are several
        data sets or models.
    """
    path, times = times_file(benchmark), TIMES[benchmark]
    columns = ("arm", "seed", times, "dataset", "model")
    table = pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=list(columns))
    again = f"measure again: python benchmarks/{path.stem}.py --save"
    if missing := set(columns) - set(table.columns):
        raise ValueError(f"{path} lacks the columns {', '.join(sorted(missing))}; {again}")
    values = pd.to_numeric(table[times], errors="coerce")
    if not values.between(0, float("inf"), inclusive="neither").all():
        raise ValueError(f"{path}: {times} must be numbers above 0; {again}")
    if table.duplicated(["arm", "seed"]).any() or (table[["dataset", "model"]].nunique() > 1).any():
        raise ValueError(f"{path} holds a round twice, or several data sets or models; {again}")
    return table


def model_costs(dataset: str) -> pd.DataFrame:
    """Read arm (model), parameters (millions), score_seconds, memory_mb, if measured.

    The seconds are of one CPU thread for all of test. Raises: ValueError for missing columns.
    """
    path = times_file("models", dataset)
    table = pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=list(COSTS))
    if missing := set(COSTS) - set(table.columns):
        raise ValueError(f"{path} lacks the columns {', '.join(sorted(missing))}; measure again: "
                         f"python benchmarks/models.py --dataset {dataset} --save")
    return table
