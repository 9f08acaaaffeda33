"""Rows that are committed: found by the id of a run, added when it ended."""

from pathlib import Path
from typing import Any

from itr_study.data import DATASETS
from itr_study.files.paths import project_root
from itr_study.runs.config import RunConfig
from itr_study.runs.identity import Identity, remember
from itr_study.runs.rows import Rows, make_row
from itr_study.runs.store import RunResult


def figures_folder(figures: Path | str | None = None) -> Path:
    """The folder of committed figures and rows; by default `figures` of the project."""
    return Path(figures) if figures is not None else project_root() / "figures"


def committed(config: RunConfig, identity: Identity,
              figures: Path | str | None = None) -> dict[str, Any] | None:
    """The complete committed row of a run, if there is one."""
    if DATASETS[config.dataset].generated:
        return None
    return Rows(figures_folder(figures) / config.dataset).complete(identity.run)


def add_row(config: RunConfig, identity: Identity, result: RunResult,
            figures: Path | str | None = None) -> dict[str, Any]:
    """The row of a result, committed unless its data is generated."""
    values = make_row(config, identity, result)
    if not DATASETS[config.dataset].generated:
        folder = figures_folder(figures) / config.dataset
        Rows(folder).add(values, result)
        remember(config, identity, folder)
    return values
