"""Which run is meant: a file, a base config by name, or the id of a run.

Names are checked without torch, so that a typo is answered at once.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from itr_study.checks import check_choice, not_among
from itr_study.data import DATASETS
from itr_study.files.atomic import read_json
from itr_study.files.paths import home, project_root
from itr_study.studies.bases import base_tables, base_values

RUN_ID = re.compile(r"[0-9a-f]{4,16}")  # whole, or its first digits


class Chosen(NamedTuple):
    """The fields of a config as they are written, and the id of the run where one was named."""

    values: dict[str, Any]
    run: str = ""


def check_dataset(name: str) -> None:
    """Raise ValueError for a data set that there is not."""
    check_choice("dataset", name, DATASETS)


def choose(config: str, dataset: str | None) -> Chosen:
    """What a command's CONFIG and --dataset mean.

    Args:    config: a .toml or .json file, a base config of the data set, or the id of a run, whole
             or its first digits; dataset: None = what the file or the run says, else scenes.
    Raises:  ValueError naming what there is, or two data sets that contradict each other.
    """
    if dataset is not None:
        check_dataset(dataset)
    if Path(config).suffix in (".toml", ".json"):
        return Chosen(_agreeing(read_file(Path(config)), config, dataset))
    of = dataset or "scenes"
    names = base_tables(of)
    if config in names:
        return Chosen(base_values(of, config))
    if RUN_ID.fullmatch(config):
        run = find_run(config)
        return Chosen(_agreeing(run.values, f"run {run.run}", dataset), run.run)
    raise ValueError(f"{not_among(f'base config of {of}', config, names)}. See: itr-study configs. "
                     "A file ending in .toml or .json will do too, and the id of a run: itr-study "
                     "runs")


def _agreeing(values: dict[str, Any], what: str, dataset: str | None) -> dict[str, Any]:
    """The values with a data set; a --dataset that contradicts them is no silent loser."""
    values = {"dataset": dataset or "scenes"} | values
    check_choice(f"dataset in {what}", values["dataset"], DATASETS)
    if dataset not in (None, values["dataset"]):
        raise ValueError(f"{what} is for {values['dataset']}, --dataset says {dataset}; leave out "
                         "--dataset, or change the file")
    return values


def read_file(path: Path) -> dict[str, Any]:
    """The table in a config file. Raises: ValueError naming the file."""
    if not path.is_file():
        raise ValueError(f"no config file {path}")
    try:
        text = path.read_text(encoding="utf-8")
        values = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except ValueError as error:  # of either format, or not UTF-8
        raise ValueError(f"{path} cannot be read: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} must hold a table of names and values, such as model = "
                         f"\"two_branch\"; found {type(values).__name__}")
    return values


def find_run(digits: str) -> Chosen:
    """The config of a finished run of this machine, or of a committed row, by its id or the first
    digits of it.

    Raises:  ValueError where there is none, or more than one.
    """
    here = {path.parent.name: path for path in (home() / "runs").glob("*/config.json")}
    runs = {run_id: lambda path=path: read_json(path) for run_id, path in here.items()
            if run_id.startswith(digits)}
    from itr_study.runs.rows import Rows  # loads torch

    for table in sorted((project_root() / "figures").glob("*/runs.csv")):
        runs |= {run_id: lambda row=row: json.loads(row["config"])
                 for run_id, row in Rows(table.parent).all().items()
                 if run_id.startswith(digits) and run_id not in runs}
    if len(runs) != 1:
        some = f"the digits of {len(runs)} runs: {', '.join(sorted(runs)[:5])}" if runs else (
            "the id of no finished run; ids are listed by: itr-study runs")
        raise ValueError(f"{digits!r} is {some}")
    (run_id, read), = runs.items()
    return Chosen(read(), run_id)
