"""Committed rows of real data: looked up by the id of a run, added when it ends."""

from pathlib import Path
from typing import Any

from itr_study.data import DATASETS
from itr_study.files.paths import figures_folder
from itr_study.runs.identity import Run, remember
from itr_study.runs.rows import Rows, make_row
from itr_study.runs.store import RunResult


def committed(run: Run, figures: Path | str | None = None,
              edition: int = 1) -> dict[str, Any] | None:
    """The complete committed row of a run, if there is one of this edition or a later one."""
    if DATASETS[run.config.dataset].generated:
        return None
    return Rows(figures_folder(figures) / run.config.dataset).complete(run.id, edition)


def add_row(run: Run, result: RunResult, figures: Path | str | None = None) -> dict[str, Any]:
    """Make the row of a result and, unless its data is generated, add it to the committed ones."""
    row = make_row(run, result)
    if not DATASETS[run.config.dataset].generated:
        folder = figures_folder(figures) / run.config.dataset
        Rows(folder).add(row, result)
        remember(run, folder)
    return row
