"""Times as benchmarks have left them: of a training step of each loss (`benchmarks/steps.py
--save`), of each re-ranker (`benchmarks/rerank.py --save`); what the models of notebook 09 cost
(`benchmarks/models.py --save`), those whose words look at regions on all cores, too
(`benchmarks/cross_attention.py --full --save`), and a step at the papers' sizes
(`benchmarks/presets.py --save`).

Rounds of a benchmark stand for seeds: in each all arms took turns, so that two of them are compared
at the same speed of the machine.
"""

from pathlib import Path

import pandas as pd

from itr_study.files.paths import evidence_folder
from itr_study.lab.ledger.verdict import RERANKING, STEPS

COSTS = ("arm", "parameters", "score_seconds", "memory_mb")
SCORING = ("model", "images", "texts", "regions", "threads", "wall_seconds", "cpu_seconds",
           "peak_mb", "memory_mb", "device", "instructions", "software", "commit")


def steps_file() -> Path:
    """Where the times of steps lie: among the evidence of no one data set."""
    return evidence_folder() / "common" / "steps.csv"


def reranking_file() -> Path:
    """Where the times of re-rankers lie, beside those of steps."""
    return steps_file().with_name("rerank.csv")


def presets_file() -> Path:
    """Where the costs of the presets lie, a step at each paper's size, beside those times."""
    return steps_file().with_name("presets.csv")


def scoring_file() -> Path:
    """Where what all scores of a test split take lies: a row per model, columns SCORING."""
    return steps_file().with_name("scoring.csv")


def step_rows() -> pd.DataFrame:
    """One row per loss and round: arm, seed (the round), step_milliseconds, dataset, model; empty
    where nobody has measured.

    Raises:  ValueError where the table is not one of that benchmark: a column that is missing, a
             time that is none, rounds that come twice, several data sets or models.
    """
    return _rounds(steps_file(), STEPS)


def reranking_rows() -> pd.DataFrame:
    """One row per re-ranker and round: arm ("fast", "reciprocal", "multi"), seed (the round),
    rerank_cpu_seconds, dataset, model; empty where nobody has measured. Raises: as `step_rows`."""
    return _rounds(reranking_file(), RERANKING)


def costs_file(dataset: str) -> Path:
    """Where the costs of the stronger models lie: among the evidence of the data set."""
    return evidence_folder() / dataset / "models.csv"


def model_costs(dataset: str) -> pd.DataFrame:
    """One row per model of notebook 09: arm (the model), parameters (millions), score_seconds (CPU
    seconds of one thread for all of test), memory_mb; empty where nobody has measured.

    Raises:  ValueError where the table is not one of that benchmark.
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
