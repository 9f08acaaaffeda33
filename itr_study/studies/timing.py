"""The time of a training step of each loss, as `benchmarks/steps.py --save` has left it.

Rounds of that benchmark stand for seeds: in each all losses took turns, so that two of them are
compared at the same speed of the machine.
"""

from pathlib import Path

import pandas as pd

from itr_study.files.paths import figures_folder

STEPS = "step_milliseconds"  # CPU time of one thread
COLUMNS = ("arm", "seed", STEPS, "dataset", "model")


def steps_file(figures: Path | str | None = None) -> Path:
    """Where the table lies: among the figures that no data set changes."""
    return figures_folder(figures) / "common" / "steps.csv"


def step_rows(figures: Path | str | None = None) -> pd.DataFrame:
    """One row per loss and round: arm, seed (the round), step_milliseconds, dataset, model; empty
    where nobody has measured.

    Raises:  ValueError where the table is not one of that benchmark: a column that is missing, a
             time that is none, rounds that come twice, several data sets or models.
    """
    path = steps_file(figures)
    table = pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=list(COLUMNS))
    again = "measure again: python benchmarks/steps.py --save"
    if missing := set(COLUMNS) - set(table.columns):
        raise ValueError(f"{path} lacks the columns {', '.join(sorted(missing))}; {again}")
    times = pd.to_numeric(table[STEPS], errors="coerce")
    if not times.between(0, float("inf"), inclusive="neither").all():
        raise ValueError(f"{path}: {STEPS} must be numbers above 0; {again}")
    if table.duplicated(["arm", "seed"]).any() or (table[["dataset", "model"]].nunique() > 1).any():
        raise ValueError(f"{path} holds a round twice, or several data sets or models; {again}")
    return table
