"""Read times that benchmarks saved (`--save`): of steps, re-rankers and models.

Rounds of a benchmark count as seeds: all arms took turns in each, so that two of them are compared
at the same speed of the machine.
"""

from pathlib import Path

import pandas as pd

from itr_study.files.paths import evidence_folder
from itr_study.lab.ledger.verdict import GROWTH, RERANKING, STEPS

COSTS = ("arm", "parameters", "score_seconds", "memory_mb")
SCORING = ("model", "images", "texts", "regions", "threads", "wall_seconds", "cpu_seconds",
           "peak_mb", "memory_mb", "device", "instructions", "software", "commit")


def steps_file() -> Path:
    """Locate the times of steps (benchmarks/steps.py), of no one data set."""
    return evidence_folder() / "common" / "steps.csv"


def reranking_file() -> Path:
    """Locate the times of re-rankers (benchmarks/rerank.py)."""
    return steps_file().with_name("rerank.csv")


def presets_file() -> Path:
    """Locate the costs of a step at each paper's size (benchmarks/presets.py)."""
    return steps_file().with_name("presets.csv")


def scoring_file() -> Path:
    """Locate the costs of all scores of test (benchmarks/cross_attention.py --full)."""
    return steps_file().with_name("scoring.csv")


def step_rows() -> pd.DataFrame:
    """Read arm (loss), seed (round), step_milliseconds, dataset, model, if measured.

    Raises: ValueError: a column is missing, a time is none, rounds come twice, or there are several
        data sets or models.
    """
    return _rounds(steps_file(), STEPS)


def reranking_rows(metric: str = RERANKING) -> pd.DataFrame:
    """Read such rows of re-rankers, with rerank_cpu_seconds or GROWTH. Raises: as `step_rows`."""
    path = reranking_file()
    return _rounds(path.with_name("growth.csv") if metric == GROWTH else path, metric)


def costs_file(dataset: str) -> Path:
    """Locate the costs of stronger models on a data set (benchmarks/models.py)."""
    return evidence_folder() / dataset / "models.csv"


def model_costs(dataset: str) -> pd.DataFrame:
    """Read arm (model), parameters (millions), score_seconds, memory_mb, if measured.

    The seconds are of one CPU thread for all of test. Raises: ValueError for missing columns.
    """
    path = costs_file(dataset)
    table = pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=list(COSTS))
    if missing := set(COSTS) - set(table.columns):
        raise ValueError(f"{path} lacks the columns {', '.join(sorted(missing))}; measure again: "
                         f"python benchmarks/models.py --dataset {dataset} --save")
    return table


def _rounds(path: Path, times: str) -> pd.DataFrame:
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
