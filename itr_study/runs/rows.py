"""Rows that outlive machines: one line per run in `figures/<dataset>/runs.csv`, real data only.

Beside it `curves/<run>.csv` (one line per epoch) and `ranks/<run>.npz` (the rank of every query).
"""

import csv
import io
from typing import Any

import pandas as pd

from itr_study.evaluation.evaluate import columns
from itr_study.files.atomic import canonical_json, folder_lock, write_atomic
from itr_study.runs.config import RunConfig
from itr_study.runs.identity import Run
from itr_study.runs.store import ENDED, RunResult
from itr_study.runs.table import TableFile, cell

SPLITS = ("train", "dev", "test")  # of train, the first images (`run.TRAIN_IMAGES`)


def make_row(run: Run, result: RunResult) -> dict[str, Any]:
    """One row: id, what was run, train_, dev_ and test_ metrics (percent or ranks), cost, parts."""
    facts = result.facts
    row = first_columns(run, result.status, result.reason)
    row |= {f"{split}_{name}": value for split, table in result.tables.items()
            for name, value in table.items()}
    row |= {"epochs": len(result.history.rows), "best_epoch": result.history.best_epoch,
            "minutes": facts["minutes"]}
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


class Rows(TableFile):
    """The committed rows of one data set.

    Args:    folder: `figures/<dataset>`.
    """

    def frame(self) -> pd.DataFrame:
        """All rows as a table."""
        return pd.DataFrame(self.read().values())

    def complete(self, run_id: str) -> dict[str, Any] | None:
        """A run's row, if it ended and has every metric that an evaluation has now."""
        row = self.read().get(run_id)
        if row is None or row["status"] not in ENDED:
            return None
        wanted = [f"{split}_{name}" for split in SPLITS
                  for name in columns(row["dataset"], split)]
        lacking = row["status"] == "done" and any(row.get(name) is None for name in wanted)
        return None if lacking else row

    def add(self, row: dict[str, Any], result: RunResult) -> None:
        """Add or replace a run's row, its curve and its ranks: locked, atomic, sorted by id; the
        cells of other rows stay as they are, and columns are only ever added."""
        with folder_lock(self.folder):
            curve = result.history.table().to_csv(index=False, lineterminator="\n")
            write_atomic(self.folder / "curves" / f"{result.id}.csv", curve.encode())
            if (result.folder / "ranks.npz").exists():
                write_atomic(self.folder / "ranks" / f"{result.id}.npz",
                             (result.folder / "ranks.npz").read_bytes())
            names, lines = self.lines()
            names += [name for name in row if name not in names]
            by_id = {line["run"]: line for line in lines}
            by_id[row["run"]] = {name: cell(value) for name, value in row.items()}
            text = io.StringIO()
            writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(by_id[run_id] for run_id in sorted(by_id))
            write_atomic(self.path, text.getvalue().encode())
