"""The row of a run: what `runs.csv` holds of it, one line (see `published`)."""

from collections.abc import Collection
from typing import Any

from itr_study.data.base import SPLITS
from itr_study.evaluation.evaluate import columns
from itr_study.files.atomic import canonical_json
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.identity import Run
from itr_study.lab.runs.store import ENDED, RunResult

OWN_COLUMNS = {"dataset", "images", "tokens", "sentences", "model", "seed"}  # fields of a config


def make_row(run: Run, result: RunResult) -> dict[str, Any]:
    """Make a row: id, what was run, metrics of each split (percent or ranks), cost, versions."""
    facts = result.facts
    row = first_columns(run, result.status, result.reason)
    row |= {f"{split}_{name}": value for split, table in result.tables.items()
            for name, value in table.items()}
    row |= {"epochs": len(result.history.rows), "best_epoch": result.history.best_epoch,
            "minutes": facts["minutes"]}
    row |= facts.get("costs", {}) | hyperparameters(run.config)
    return row | {
        "config": canonical_json(run.config.model_dump(mode="json")), "device": facts["device"],
        "commit": facts["commit"], "software": canonical_json(facts["software"]),
        "versions": canonical_json(run.versions), "seen": " ".join(facts["seen"]),
        "data": run.data, "encoded": run.encoded,
        # None for a run of a store from before these were noted
        "instructions": facts.get("instructions"),
        "arithmetic": canonical_json(facts["arithmetic"]) if "arithmetic" in facts else None}


def is_complete(row: dict[str, Any], needs: Collection[str] = ()) -> bool:
    """Whether a run ended with every measure of its data set; one that diverged has none.

    Args:    needs: which of the measures that are `asked` (`evaluation.measures`) must be there.
    """
    if row["status"] != "done":
        return row["status"] in ENDED
    return all(row.get(f"{split}_{name}") is not None for split in SPLITS
               for name in columns(row["dataset"], split, row["model"], needs))


def first_columns(run: Run, status: str, reason: str = "") -> dict[str, Any]:
    """The beginning of every row, also of a run that failed and has no metrics."""
    return {"run": run.id, "status": status, "reason": reason,
            **run.config.model_dump(include=OWN_COLUMNS)}


def hyperparameters(config: RunConfig) -> dict[str, Any]:
    """Those that differ from their defaults, by dotted path: {"objective.0.arguments.k": 3}."""
    left_out = OWN_COLUMNS | {"data_options"}
    return flat({name: value for name, value in config.differing().items() if name not in left_out})


def flat(values: Any, path: str = "") -> dict[str, Any]:
    """Nested values by dotted path, as in `RunConfig.with_`."""
    by_path: dict[str, Any] = {}
    for name, value in values.items() if isinstance(values, dict) else enumerate(values):
        inner = f"{path}.{name}" if path else str(name)
        by_path |= flat(value, inner) if isinstance(value, dict | list) else {inner: value}
    return by_path
