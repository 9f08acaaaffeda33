"""Tables of one run, from the store or from its committed row."""

from collections.abc import Mapping
from typing import Any

from itr_study.evaluation.evaluate import columns
from itr_study.runs.rows import SPLITS, edition_of
from itr_study.runs.store import RunResult

UNITS = ("In percent; medr and meanr are ranks, rsum is a sum of six percentages, at most 600, "
         "hubness is a skewness.")


def result_report(result: RunResult) -> str:
    """Status, cost and metrics of a run of the store."""
    minutes = result.facts.get("minutes", 0.0)
    lines = [f"run {result.id}: {result.status}, {len(result.history.rows)} epochs, best "
             f"{result.history.best_epoch}, {minutes:.1f} min, edition {result.edition}, "
             f"{result.folder}"]
    lines += [result.reason] * bool(result.reason)
    return "\n".join(lines + metric_lines(result.config["dataset"], result.tables))


def row_report(row: Mapping[str, Any]) -> str:
    """The same of a committed row."""
    tables = {split: {name.removeprefix(f"{split}_"): value for name, value in row.items()
                      if name.startswith(f"{split}_") and value is not None} for split in SPLITS}
    lines = [f"run {row['run']}: {row['status']}, {row['epochs']} epochs, best "
             f"{row['best_epoch']}, {row['minutes']:.1f} min, edition {edition_of(row)}, on "
             f"{row['device']}",
             "This is its committed row; only its weights are not on this machine (to search with "
             "it, train it)."]
    lines += [row["reason"]] * bool(row["reason"])
    return "\n".join(lines + metric_lines(row["dataset"], {s: t for s, t in tables.items() if t}))


def metric_lines(dataset: str, tables: Mapping[str, Mapping[str, float]]) -> list[str]:
    """One line a metric, one column a split; none for a run without metrics."""
    measured = {name for table in tables.values() for name in table}
    if not measured:
        return []
    order = [name for name in columns(dataset, "test") if name in measured]
    names = order + sorted(measured - set(order))
    width = max(len(name) for name in names)
    lines = [" " * width + "".join(f"{split:>9}" for split in tables)]
    for name in names:
        cells = (f"{table[name]:9.2f}" if name in table else f"{'-':>9}"
                 for table in tables.values())
        lines.append(f"{name:<{width}}{''.join(cells)}")
    return [*lines, UNITS]
