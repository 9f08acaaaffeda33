"""Committed rows: looked up by the id of a run, added when it ends (`shelves` says where)."""

from pathlib import Path
from typing import Any

from itr_study.data import DATASETS
from itr_study.data.base import SPLITS
from itr_study.runs.config import RunConfig
from itr_study.runs.identity import Run, remember
from itr_study.runs.rows import Rows, make_row
from itr_study.runs.shelves import shelf, shelves
from itr_study.runs.store import RunResult


def keeps_rows(config: RunConfig) -> bool:
    """Whether runs of a config leave rows: those of real data, and those of generated data at its
    own size, however its captions are written. What profiles of a few minutes make of a smaller
    part is trained where it is drawn."""
    return not (DATASETS[config.dataset].generated and config.data_options.keys() & set(SPLITS))


def committed(run: Run, figures: Path | str | None = None,
              edition: int = 1) -> dict[str, Any] | None:
    """The complete committed row of a run, if there is one of this edition or a later one."""
    if not keeps_rows(run.config):
        return None
    tables = (Rows(folder / run.config.dataset) for folder in shelves(figures))
    return next(filter(None, (table.complete(run.id, edition) for table in tables)), None)


def add_row(run: Run, result: RunResult, figures: Path | str | None = None) -> dict[str, Any]:
    """Make the row of a result and add it to the committed ones, where runs like it are kept."""
    row = make_row(run, result)
    if keeps_rows(run.config):
        folder = shelf(figures) / run.config.dataset
        Rows(folder).add(row, result)
        if not DATASETS[run.config.dataset].generated:
            remember(run, folder)  # for machines without that data
    return row
