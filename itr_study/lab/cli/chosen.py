"""Which run is meant: a file, a base config by name, or the id of a run.

Names are checked without torch, so that a typo is answered at once.
"""

import ast
import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import itr_study
from itr_study.checks import check_arguments, check_choice, not_among
from itr_study.data import DATASETS
from itr_study.files.atomic import read_json
from itr_study.files.paths import evidence_folder, home
from itr_study.lab.batch.declared import readings
from itr_study.lab.runs.fields import ConfigFields
from itr_study.lab.runs.table import Table
from itr_study.lab.studies.bases import base_tables, base_values

RUN_ID = re.compile(r"[0-9a-f]{4,16}")  # whole, or its first digits


class Chosen(NamedTuple):
    """The fields of a config, and the id of the run where one was named and nothing changed."""

    values: dict[str, Any]
    run: str = ""


def check_dataset(name: str, changes: Sequence[str] = ()) -> None:
    """Raise ValueError for a data set that there is not, or an option that it does not take."""
    check_choice("dataset", name, DATASETS)
    check_arguments(f"dataset {name!r}", DATASETS[name].load, data_options(changes), skip=1)


def data_options(changes: Sequence[str]) -> dict[str, Any]:
    """The options that `--set data_options.<name>=<value>` gives a data set."""
    return {key.removeprefix("data_options."): value
            for key, value in given_changes(changes).items()}


def given_changes(changes: Sequence[str]) -> dict[str, Any]:
    """The `key=value` texts of --set; ValueError for any other text, or a key given twice."""
    given: dict[str, Any] = {}
    for text in changes:
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set takes key=value, got {text!r}")
        if key in given:
            raise ValueError(f"--set gives {key} twice; give it once")
        given[key] = readings(value)[0]
    return given


def choose(config: str, dataset: str | None, changes: Sequence[str] = ()) -> Chosen:
    """What a command's CONFIG, --dataset and --set mean.

    Args:    config: a .toml or .json file, a base config of the data set, or the id of a run, whole
             or its first digits; dataset: None = what the file or the run says, else scenes;
             changes: `key=value` texts.
    Raises:  ValueError naming what there is, or two data sets that contradict each other.
    """
    chosen, given = _named(config, dataset), given_changes(changes)
    if chosen.run and not given:
        return chosen
    fields = ConfigFields.model_validate(chosen.values).with_(**given)
    check_names(fields)
    return Chosen(fields.model_dump(mode="json"))


def _named(config: str, dataset: str | None) -> Chosen:
    """What CONFIG and --dataset mean; see `choose`."""
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


def check_names(fields: ConfigFields) -> None:
    """Raise ValueError for a model, a loss or labels that there are not."""
    check_choice("model", fields.model, class_names("models"))
    for term in fields.terms:
        check_choice("loss", term.loss, class_names("losses"))
        check_choice("labels", term.labels, class_names("relevance"))


def class_names(room: str) -> list[str]:
    """The names that the classes of a room have, `name, ... = "topk", ...`, read in the source:
    to ask the classes themselves would load torch."""
    names = []
    for path in sorted(Path(itr_study.__file__).with_name(room).glob("*.py")):
        for statement in (inner for node in ast.parse(path.read_text(encoding="utf-8")).body
                          if isinstance(node, ast.ClassDef) for inner in node.body):
            match statement:
                case ast.Assign(
                        targets=[ast.Name("name") | ast.Tuple([ast.Name("name"), *_])],
                        value=ast.Constant(name) | ast.Tuple([ast.Constant(name), *_])):
                    names.append(name)
    return names


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
    """The config of a finished run of this machine, or of a published row, by its id or the first
    digits of it.

    Raises:  ValueError where there is none, or more than one.
    """
    here = {path.parent.name: path for path in (home() / "runs").glob("*/config.json")}
    runs = {run_id: lambda path=path: read_json(path) for run_id, path in here.items()
            if run_id.startswith(digits)}
    for table in sorted(evidence_folder().glob("*/runs.csv")):
        runs |= {run_id: lambda row=row: json.loads(row["config"])
                 for run_id, row in Table(table).read().items()
                 if run_id.startswith(digits) and run_id not in runs}
    if len(runs) != 1:
        some = f"the digits of {len(runs)} runs: {', '.join(sorted(runs)[:5])}" if runs else (
            "the id of no finished run; ids are listed by: itr-study runs")
        raise ValueError(f"{digits!r} is {some}")
    (run_id, read), = runs.items()
    return Chosen(read(), run_id)
