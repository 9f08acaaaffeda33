"""Rows that outlive machines: one line per run in `figures/<dataset>/runs.csv`, real data only.

Beside it `curves/<run>.csv` (one line per epoch) and `ranks/<run>.npz` (the rank of every query;
since edition 2 the scores of judged pairs and the first results of some queries). Rows of the first
edition that no notebook asks for any more lie in `edition1.csv`, without curves and ranks.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from itr_study.evaluation.evaluate import columns
from itr_study.files.atomic import canonical_json, folder_lock, write_atomic
from itr_study.runs.config import RunConfig
from itr_study.runs.identity import Run
from itr_study.runs.store import ENDED, RunResult
from itr_study.runs.table import Table, cell

SPLITS = ("train", "dev", "test")  # of train, the first images (`run.train_images`)


def make_row(run: Run, result: RunResult) -> dict[str, Any]:
    """One row: id, what was run, train_, dev_ and test_ metrics (percent or ranks), cost, parts."""
    facts = result.facts
    row = first_columns(run, result.status, result.reason)
    row |= {f"{split}_{name}": value for split, table in result.tables.items()
            for name, value in table.items()}
    row |= {"epochs": len(result.history.rows), "best_epoch": result.history.best_epoch,
            "minutes": facts["minutes"]}
    if result.edition > 1:  # rows of the first have no such columns
        row |= {"edition": result.edition} | facts["costs"]
    row |= hyperparameters(run.config)
    return row | {
        "config": canonical_json(run.config.model_dump(mode="json")), "device": facts["device"],
        "commit": facts["commit"], "software": canonical_json(facts["software"]),
        "versions": canonical_json(run.versions), "seen": " ".join(facts["seen"]),
        "data": run.data, "encoded": run.encoded,
        # None for a run of a store from before these were noted
        "instructions": facts.get("instructions"),
        "arithmetic": canonical_json(facts["arithmetic"]) if "arithmetic" in facts else None}


def first_columns(run: Run, status: str, reason: str = "") -> dict[str, Any]:
    """The beginning of every row, also of a run that failed and has no metrics."""
    config = run.config
    return {"run": run.id, "status": status, "reason": reason, "dataset": config.dataset,
            "images": config.images, "tokens": config.tokens, "sentences": config.sentences,
            "model": config.model, "seed": config.seed}


def hyperparameters(config: RunConfig) -> dict[str, Any]:
    """Those that differ from their defaults, by dotted path: {"objective.0.arguments.k": 3}."""
    left_out = ("dataset", "data_options", "images", "tokens", "sentences", "model", "seed")
    return flat({k: v for k, v in config.differing().items() if k not in left_out})


def flat(values: Any, path: str = "") -> dict[str, Any]:
    """Nested values by dotted path, as in `RunConfig.with_`: {"objective.0.arguments.k": 3}."""
    items = values.items() if isinstance(values, dict) else enumerate(values)
    by_path: dict[str, Any] = {}
    for name, value in items:
        inner = f"{path}.{name}" if path else str(name)
        by_path |= flat(value, inner) if isinstance(value, dict | list) else {inner: value}
    return by_path


class Rows:
    """The committed rows of one data set.

    Args:    folder: `figures/<dataset>`.
    """

    def __init__(self, folder: Path | str):
        self.folder = Path(folder)
        self.table = Table(self.folder / "runs.csv")
        self.aside = Table(self.folder / "edition1.csv")

    def read(self) -> dict[str, dict[str, Any]]:
        """The rows that notebooks ask for by run id, numbers as numbers, empty cells as None."""
        return self.table.read()

    def all(self) -> dict[str, dict[str, Any]]:
        """These, and those that were set aside."""
        return self.aside.read() | self.read()

    def frame(self) -> pd.DataFrame:
        """The rows that notebooks ask for as a table."""
        return pd.DataFrame(self.read().values())

    def complete(self, run_id: str, edition: int = 1) -> dict[str, Any] | None:
        """A run's row, if it ended and was made in this edition or a later one with every metric
        of the one that it was made in; it may have been set aside."""
        row = self.all().get(run_id)
        if row is None or row["status"] not in ENDED:
            return None
        made_in = edition_of(row)
        wanted = [f"{split}_{name}" for split in SPLITS
                  for name in columns(row["dataset"], split, made_in, row["model"])]
        lacking = row["status"] == "done" and (
            made_in < edition or any(row.get(name) is None for name in wanted))
        return None if lacking else row

    def add(self, row: dict[str, Any], result: RunResult) -> None:
        """Add or replace a run's row, its curve and its ranks: locked, atomic, sorted by id; the
        cells of other rows stay as they are, and columns are only ever added."""
        with folder_lock(self.folder):
            curve = result.history.table().to_csv(index=False, lineterminator="\n")
            write_atomic(self._curve(result.id), curve.encode())
            if (result.folder / "ranks.npz").exists():
                write_atomic(self._ranks(result.id), (result.folder / "ranks.npz").read_bytes())
            names, lines = self.table.lines()
            names += [name for name in row if name not in names]
            lines[row["run"]] = {name: cell(value) for name, value in row.items()}
            self.table.write(names, lines)
            names, lines = self.aside.lines()
            if lines.pop(row["run"], None):  # last: a row may be in both, never in neither
                self.aside.write(names, lines)

    def set_aside(self, run_ids: Iterable[str]) -> None:
        """Move rows to `edition1.csv`, cells as they are, and delete their curves and ranks. A
        process that is killed in between leaves a row in both; the next call deletes the rest."""
        with folder_lock(self.folder):
            names, lines = self.table.lines()
            names_aside, lines_aside = self.aside.lines()
            lines_aside |= {run_id: lines.pop(run_id) for run_id in run_ids}
            if lines_aside:
                self.aside.write(list(dict.fromkeys(names_aside + names)), lines_aside)
                self.table.write(names, lines)
            for run_id in lines_aside.keys() - lines.keys():
                self._curve(run_id).unlink(missing_ok=True)
                self._ranks(run_id).unlink(missing_ok=True)

    def _curve(self, run_id: str) -> Path:
        return self.folder / "curves" / f"{run_id}.csv"

    def _ranks(self, run_id: str) -> Path:
        return self.folder / "ranks" / f"{run_id}.npz"


def edition_of(row: dict[str, Any]) -> int:
    """The edition that a row was made in; rows of the first do not state it."""
    edition = row.get("edition")
    return 1 if edition is None or pd.isna(edition) else int(edition)
