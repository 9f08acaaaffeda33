"""What there is to name on the command line: base configs, and runs that ended. Loads no torch."""

from pathlib import Path
from typing import Any

from itr_study.checks import check_choice
from itr_study.files.atomic import read_json
from itr_study.files.paths import home, project_root
from itr_study.runs.table import TableFile
from itr_study.studies.bases import base_tables, datasets_with_bases


def configs_report(dataset: str | None) -> str:
    """The base configs of a data set, or of all, with what each is."""
    known = datasets_with_bases()
    if dataset is not None:
        check_choice("dataset with a base config", dataset, known)
    lines = []
    for name in known if dataset is None else [dataset]:
        tables = base_tables(name)
        width = max(map(len, tables))
        lines += [name, *(f"  {config:<{width}}  {table.get('about', '')}".rstrip()
                          for config, table in tables.items())]
    return "\n".join([*lines, "", f"Train one: itr-study train two_branch --dataset {known[-1]}"])


def runs_report(dataset: str | None) -> str:
    """The runs in the store of this machine, the newest last, and how many rows are committed."""
    statuses = sorted((home() / "runs").glob("*/status.json"), key=lambda p: p.stat().st_mtime)
    described = [(path.parent.name, *_describe(path.parent)) for path in statuses]
    shown = [(run, what) for run, of, what in described if dataset in (None, of)]
    lines = [f"{run}  {what}" for run, what in shown]
    lines = lines or [f"no runs in {home() / 'runs'}; make one: itr-study train two_branch"]
    for table in sorted((project_root() / "figures").glob("*/runs.csv")):
        if dataset in (None, table.parent.name):
            lines.append(f"{_counted(table.parent)}: {table}")
    return "\n".join(lines)


def _counted(folder: Path) -> str:
    """How many committed rows a data set has, or why they are refused."""
    try:
        return f"{len(TableFile(folder).read()):,} committed rows of {folder.name}"
    except ValueError as error:
        return f"committed rows of {folder.name} are refused: {error}"


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
