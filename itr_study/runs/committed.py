"""Committed rows of real data: looked up by the id of a run, added when it ends (`shelves` says
where)."""

from pathlib import Path
from typing import Any

from itr_study.data import DATASETS
from itr_study.runs.identity import Run, remember
from itr_study.runs.rows import Rows, make_row
from itr_study.runs.shelves import shelf, shelves
from itr_study.runs.store import RunResult


def committed(run: Run, figures: Path | str | None = None,
              edition: int = 1) -> dict[str, Any] | None:
    """The complete committed row of a run, if there is one of this edition or a later one."""
    if DATASETS[run.config.dataset].generated:
        return None
    tables = (Rows(folder / run.config.dataset) for folder in shelves(figures))
    return next(filter(None, (table.complete(run.id, edition) for table in tables)), None)


def add_row(run: Run, result: RunResult, figures: Path | str | None = None) -> dict[str, Any]:
    """Make the row of a result and, unless its data is generated, add it to the committed ones."""
    row = make_row(run, result)
    if not DATASETS[run.config.dataset].generated:
        folder = shelf(figures) / run.config.dataset
        Rows(folder).add(row, result)
        remember(run, folder)
    return row
