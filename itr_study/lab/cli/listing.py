"""What there is to name on the command line: base configs, and runs that ended. Loads no torch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from itr_study.files.atomic import read_json
from itr_study.files.paths import evidence_folder, home
from itr_study.lab.runs.table import Table
from itr_study.lab.studies.bases import base_tables, tuned_on


def configs_report(dataset: str = "scenes") -> str:
    """List the base configs of a data set, what each is, and where its rates were tuned."""
    tables = base_tables(dataset)
    width = max(map(len, tables))
    return "\n".join([dataset, *(
        f"  {name:<{width}}  {table['about']}; learning rates tuned on {tuned_on(dataset, name)}"
        for name, table in tables.items()),
        "", f"Train one: itr-study train two_branch --dataset {dataset}"])


def runs_report(names: Sequence[str]) -> str:
    """The runs in the store of this machine, the newest last, and how many rows are published.

    Args:    names: only those of these data sets, or whose ids begin so; empty = all.
    """
    statuses = sorted((home() / "runs").glob("*/status.json"), key=lambda p: p.stat().st_mtime)
    described = [(path.parent.name, *_describe(path.parent)) for path in statuses]
    shown = [(run, what) for run, of, what in described
             if not names or of in names or run.startswith(tuple(names))]
    lines = [f"{run}  {what}" for run, what in shown]
    lines = lines or [f"no runs in {home() / 'runs'}; make one: itr-study train two_branch"]
    for table in sorted(evidence_folder().glob("*/runs.csv")):
        if not names or table.parent.name in names:
            lines.append(_count(table))
    return "\n".join(lines)


def _count(table: Path) -> str:
    """A line that counts the rows of a table, or says why they are refused."""
    what = f"published rows of {table.parent.name}"
    try:
        return f"{len(Table(table).read()):,} {what}: {table}"
    except ValueError as error:
        return f"{what} are refused: {error}"


def _describe(folder: Path) -> tuple[str, str]:
    """(data set, one line) of a run; what is not written yet, or damaged, is said to be so."""
    try:
        state = read_json(folder / "status.json")["state"]
        if not (folder / "manifest.json").exists():
            return "", f"{state}, not finished here"
        config, result = read_json(folder / "config.json"), read_json(folder / "result.json")
        rsum = result["tables"].get("test", {}).get("rsum")
    except (OSError, ValueError, KeyError, TypeError) as error:
        return "", f"damaged: {error!r}"
    words = [state, config["dataset"], config["model"],
             "+".join(filter(None, [config["images"], config["tokens"], config["sentences"]])),
             " + ".join(map(_term, config["objective"])), f"seed {config['seed']}"]
    return config["dataset"], ", ".join([*words, *([f"test RSUM {rsum:.1f}"] if rsum else [])])


def _term(term: dict[str, Any]) -> str:
    """A term of an objective: topk(k=5)."""
    arguments = ", ".join(f"{name}={value}" for name, value in term["arguments"].items())
    return f"{term['loss']}({arguments})" if arguments else term["loss"]
