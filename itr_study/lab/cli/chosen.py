"""What is named on the command line: data sets, options, base configs, runs by their id.

Loads no torch, so that a typo is answered at once.
"""

import ast
import json
import os
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from errno import EACCES, EEXIST, ENAMETOOLONG, ENOENT, ENOTDIR, EPERM, EROFS
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import ValidationError

import itr_study
from itr_study.checks import check_choice, not_among
from itr_study.data import DATASETS, brings_features, check_options, features_beside, load_dataset
from itr_study.data.base import SPLITS
from itr_study.data.vocabulary import check_query
from itr_study.files.atomic import read_json
from itr_study.files.paths import HOME_REMEDY, check_writable, evidence_folder, home
from itr_study.lab.batch.declared import readings, split_values
from itr_study.lab.runs.fields import ConfigFields
from itr_study.lab.runs.table import Table
from itr_study.lab.studies.bases import NOWHERE, base_tables, base_values, tuned_on, tuned_rates
from itr_study.training.settings import problems

PAPER = "paper:"  # before the name of a preset
RUN_ID = re.compile(r"[0-9a-f]{4,16}")  # whole, or its first digits
# The system's errors for a folder that cannot be written.
NOT_WRITABLE = (EACCES, EEXIST, ENAMETOOLONG, ENOTDIR, EPERM, EROFS)
DEVICES = ("auto", "cpu", "cuda")  # named in messages; two more of torch may be asked for too


def plain(error: Exception) -> str:
    """An error's message without what only programmers need; says what to do about the home."""
    if isinstance(error, ValidationError):
        return problems(error)
    if (isinstance(error, OSError) and error.filename
            and (error.errno in NOT_WRITABLE or not home().exists())
            and Path(os.fsdecode(error.filename)).is_relative_to(home())):
        return f"{error}\n{HOME_REMEDY}"
    absent = isinstance(error, OSError) and error.strerror == os.strerror(ENOENT) and error.filename
    return f"there is no {os.fsdecode(absent)}: check the path" if absent else str(error)


class Chosen(NamedTuple):
    """The fields of a config, and the id of the run where one was named and nothing changed.

    base: the base config that was named, "" for none; changes: those of it.
    """

    values: dict[str, Any]
    run: str = ""
    base: str = ""
    changes: Mapping[str, Any] = MappingProxyType({})

    def untrained(self, run: str, root: str | None) -> str:
        """Say that a run is not finished here, and the command that trains it."""
        return (f"run {run} is not finished on this machine; train it: itr-study train "
                f"{self.base or self.run or 'CONFIG'} --dataset {self.values['dataset']}"
                f"{f' --data {root}' * bool(root)}{' and the same --set' * bool(self.changes)}")


def check_device(name: str) -> None:
    """Refuse a device that is none; whether this machine has it is for torch to say."""
    if name.partition(":")[0] not in (*DEVICES, "mps", "xpu"):
        raise ValueError(not_among("device", name, DEVICES))


def check_question(text: str | None, image: str | None, save: Path | None, split: str | None,
                   pictures: Path | None) -> None:
    """Refuse options of `search` that are wrong, or do not go together."""
    if text is not None and image is not None:
        raise ValueError("search takes --text WORDS or --image ID-OR-FILE, not both; without "
                         "either it prompts for queries")
    if text is not None:
        check_query(text)
    if text is None and image is None and sys.stdin is None:
        raise ValueError("standard input is closed, so nothing can be asked at a prompt; give "
                         "--text WORDS or --image ID-OR-FILE")
    if save is not None:
        if save.suffix.lower() != ".png":
            raise ValueError(f"--save takes a .png file, got {save}")
        check_writable(save.absolute().parent, "--save takes a file in a folder that you may write")
    if split is not None:
        check_choice("split to search", split, (*SPLITS, "all"))
    if pictures is not None and split is not None:
        raise ValueError("--pictures has no splits; leave --split out")
    if pictures is not None and not os.path.isdir(pictures):
        raise ValueError(f"--pictures: there is no folder {pictures}")


def data_options(changes: Sequence[str]) -> dict[str, Any]:
    """Read the options that `--set data_options.<name>=<value>` gives a data set."""
    given = given_changes(changes)
    if wrong := [name for name in given if not name.startswith("data_options.")]:
        raise ValueError("--set takes options of the data here, such as data_options.skip_bad=true,"
                         f" got {wrong[0]} (for reproduce, parameters are -p {wrong[0]}=...)")
    return {key.removeprefix("data_options."): value for key, value in given.items()}


def given_changes(changes: Sequence[str]) -> dict[str, Any]:
    """Read the `name=value` texts of --set."""
    return {name: readings(text)[0] for name, text in split_values("--set", changes).items()}


def choose(config: str, dataset: str | None, changes: Sequence[str] = ()) -> Chosen:
    """Find what CONFIG (a file, a base config, the id of a run or its first digits) and --set mean.

    Without --dataset it is what the file or the run says, else scenes.
    """
    chosen, given = _named(config, dataset), given_changes(changes)
    if "dataset" in given:
        raise ValueError("--set dataset: use --dataset")
    if chosen.run and not given:
        return chosen
    fields = ConfigFields.model_validate(chosen.values).with_(**given)
    check_choice("model", fields.model, class_names("models"))
    for term in fields.terms:
        check_choice("loss", term.loss, class_names("losses"))
        check_choice("labels", term.labels, class_names("relevance"))
    return Chosen(fields.model_dump(mode="json"), base=chosen.base, changes=given)


def _named(config: str, dataset: str | None) -> Chosen:
    """What CONFIG and --dataset mean; see `choose`."""
    if dataset is not None:
        check_options(dataset, {})
    if Path(config).suffix in (".toml", ".json"):
        return Chosen(_agreeing(read_file(Path(config)), config, dataset))
    of = dataset or "scenes"
    names = base_tables(of)
    if config in names:
        return Chosen(base_values(of, config), base=config)
    if config.startswith(PAPER):
        from itr_study.lab.studies.presets import preset  # loads torch

        return Chosen(preset(config.removeprefix(PAPER), of, "lite0:pooled:flip").model_dump(
            mode="json"), base=config)
    if RUN_ID.fullmatch(config):
        run = find_run(config)
        return Chosen(_agreeing(run.values, f"run {run.run}", dataset), run.run)
    raise ValueError(f"{not_among(f'base config of {of}', config, names)}\nSee: itr-study configs "
                     f"{of}. A file ending in .toml or .json will do, too, and the id of a run: "
                     "itr-study runs")


def class_names(package: str) -> list[str]:
    """Read `name = "topk"` of a subpackage's classes in its source: asking them loads torch."""
    names = []
    for path in sorted(Path(itr_study.__file__).with_name(package).glob("*.py")):
        for statement in (inner for node in ast.parse(path.read_text(encoding="utf-8")).body
                          if isinstance(node, ast.ClassDef) for inner in node.body):
            match statement:
                case ast.Assign(
                        targets=[ast.Name("name") | ast.Tuple([ast.Name("name"), *_])],
                        value=ast.Constant(name) | ast.Tuple([ast.Constant(name), *_])):
                    names.append(name)
    return names


def _agreeing(values: dict[str, Any], what: str, dataset: str | None) -> dict[str, Any]:
    """The values with a data set, which --dataset must not contradict."""
    values = {"dataset": dataset or "scenes"} | values
    check_choice(f"dataset in {what}", values["dataset"], DATASETS)
    if dataset not in (None, values["dataset"]):
        raise ValueError(f"{what} is for {values['dataset']}, --dataset says {dataset}; leave out "
                         "--dataset, or change the file")
    return values


def read_file(path: Path) -> dict[str, Any]:
    """Read the table in a config file. Raises: ValueError naming the file."""
    if not os.path.isfile(path):
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
    """Find the config of a finished run of this machine, or of a published row, by its digits."""
    here = (home() / "runs").glob(f"{digits}*/config.json")
    runs: dict[str, Path | str] = {path.parent.name: path for path in here}
    for table in sorted(evidence_folder().glob("*/runs.csv")):
        runs = {run_id: row["config"] for run_id, row in Table(table).read().items()
                if run_id.startswith(digits)} | runs
    if len(runs) != 1:
        some = f"the digits of {len(runs)} runs: {', '.join(sorted(runs)[:5])}" if runs else (
            "the id of a run that did not end: give the command that began it, which goes on"
            if any((home() / "runs").glob(f"{digits}*/status.json")) else
            "the id of no finished run; ids are listed by: itr-study runs")
        raise ValueError(f"{digits!r} is {some}")
    (run_id, config), = runs.items()
    return Chosen(read_json(config) if isinstance(config, Path) else json.loads(config), run_id)


def configs_report(dataset: str = "scenes", root: str | None = None) -> str:
    """List the base configs of a data set, what each is, and where its rates were tuned."""
    tables = base_tables(dataset)
    tuned = tuned_rates(dataset, lambda: load_dataset(
        dataset, root, **features_beside(dataset, root)), brings_features(dataset, root)) if (
        root or DATASETS[dataset].generated) else NOWHERE
    width, of = max(map(len, tables)), f"--dataset {dataset}{f' --data {root}' * bool(root)}"
    return "\n".join([dataset, *(
        f"  {name:<{width}}  {table['about']}; learning rates "
        f"{'tuned here' if name in tuned else f'tuned on {where}' if where else 'guessed'}"
        for name, table in tables.items() for where in [tuned_on(dataset, name)]),
        *["Here all read the features that lie with the data."] * brings_features(dataset, root),
        "", f"Train one: itr-study train two_branch {of}",
        *[f"Tune one on your data: itr-study tune two_branch {of}"]
        * (tuned_on(dataset, "two_branch") != dataset),
        f"A paper's own settings: itr-study train paper:topk {of}"])


def runs_report(names: Sequence[str]) -> str:
    """List runs of this machine, of these data sets or ids, the newest last; count published."""
    statuses = sorted((home() / "runs").glob("*/status.json"), key=lambda p: p.stat().st_mtime)
    described = [(path.parent.name, *_describe(path.parent)) for path in statuses]
    lines = [f"{run}  {what}" for run, of, what in described
             if not names or of in names or run.startswith(tuple(names))]
    lines = lines or [f"no runs in {home() / 'runs'}; make one: itr-study train two_branch"]
    for table in sorted(evidence_folder().glob("*/runs.csv")):
        what = f"published rows of {table.parent.name}"
        if names and table.parent.name not in names:
            continue
        try:
            lines.append(f"{len(Table(table).read()):,} {what}: {table}")
        except ValueError as error:
            lines.append(f"{what} are refused: {error}")
    return "\n".join(lines)


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
