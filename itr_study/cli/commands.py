"""What the commands of `cli` do; each returns text to print, or an exit code."""

import json
import sys
import tomllib
from collections import Counter
from pathlib import Path

from itr_study.batch.declared import readings
from itr_study.batch.request import data_root
from itr_study.data import load_dataset
from itr_study.data.base import Problem, RetrievalDataset
from itr_study.data.size_checks import too_small
from itr_study.evaluation.evaluate import columns
from itr_study.features.dataset import encode_dataset
from itr_study.files.paths import home
from itr_study.runs.config import RunConfig
from itr_study.runs.data import dataset_of
from itr_study.runs.identity import identify
from itr_study.runs.run import execute
from itr_study.runs.store import RunResult, RunStore
from itr_study.studies.bases import base
from itr_study.training.interrupts import OutOfMemory
from itr_study.training.loop import choose_device


def plain(error: Exception) -> str:
    """An error's message without what only programmers need."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    problems = [(".".join(map(str, e["loc"])), e["msg"].removeprefix("Value error, "))
                for e in error.errors()]
    return "\n".join(f"{field}: {message}" if field else message for field, message in problems)


def read_config(config: str, dataset: str, changes: list[str]) -> RunConfig:
    """A config from a file (.toml, .json) or a base config's name, with `key=value` changes.

    Raises:  ValueError naming the file, or the key and the names there are.
    """
    given = given_changes(changes)
    path = Path(config)
    if path.suffix not in (".toml", ".json"):
        return base(dataset, config, **given)
    if not path.is_file():
        raise ValueError(f"no config file {path}")
    try:
        text = path.read_text(encoding="utf-8")
        values = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (tomllib.TOMLDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    return RunConfig.model_validate({"dataset": dataset} | values).with_(**given)


def given_changes(changes: list[str]) -> dict[str, object]:
    """The `key=value` texts of --set; ValueError for any other text."""
    given = {}
    for text in changes:
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set takes key=value, got {text!r}")
        given[key] = readings(value)[0]
    return given


def read_data(name: str, data: Path | None, changes: list[str]) -> RetrievalDataset:
    """A data set, with the options that `--set data_options.<name>=<value>` gives it."""
    options = {key.removeprefix("data_options."): value
               for key, value in given_changes(changes).items()}
    return load_dataset(name, data_root(name, data), **options)


def data_report(name: str, data: Path | None, changes: list[str]) -> str:
    """What a data set holds, what was left out and why, what is worth knowing, and its terms."""
    dataset = read_data(name, data, changes)
    lines = [f"{dataset.name} ({dataset.fingerprint[:16]})"]
    for split in dataset.splits.values():
        texts = Counter(split.image_of_text.tolist()).values()
        lines.append(f"  {split.name:<6} {len(split.image_ids):>7,} images {len(split.texts):>8,} "
                     f"texts, {min(texts)} to {max(texts)} an image")
    lines += [f"  read: {count:,} {what}" for what, count in dataset.report.counts.items()]
    lines += by_kind("left out", dataset.report.excluded) + by_kind("note", dataset.report.notes)
    lines += [f"  warning: {sentence}" for sentence in too_small(dataset)]
    lines += [f"  features with the data: {', '.join(dataset.features)}"] * bool(dataset.features)
    lines += [f"  seen by: {', '.join(dataset.seen_by)}"] * bool(dataset.seen_by)
    return "\n".join([*lines, *([f"  terms: {dataset.terms}"] * bool(dataset.terms))])


def by_kind(heading: str, problems: list[Problem]) -> list[str]:
    """Lines that count problems by kind and show the first three of each."""
    lines = []
    for kind, count in Counter(p.kind for p in problems).items():
        some = [p for p in problems if p.kind == kind][:3]
        lines += [f"  {heading}: {count} x {kind}", *(f"    {p.where}: {p.detail}" for p in some)]
    return lines


def make_features(name: str, data: Path | None, changes: list[str], images: str | None,
                  tokens: str | None, sentences: str | None, device: str) -> str:
    """Encode a data set; what the caches hold is not computed again."""
    dataset = read_data(name, data, changes)
    given = {"images": images, "tokens": tokens, "sentences": sentences}
    encoded = encode_dataset(dataset, device=str(choose_device(device)),
                             **{k: v for k, v in given.items() if v is not None})
    lines = [f"{name}: key {encoded.key}, in {home() / 'features'}"]
    for split in encoded.splits.values():
        sizes = "x".join(map(str, split.regions.shape))
        lines.append(f"  {split.name:<6} regions {sizes} (images, views, regions, numbers)")
    return "\n".join(lines)


def train(config: str, dataset: str, data: Path | None, changes: list[str], device: str,
          save_seconds: float = 60.0) -> int:
    """Train or go on; 0 done, 1 diverged or out of memory, 130 stopped."""
    run_config = read_config(config, dataset, changes)
    root = data_root(run_config.dataset, data)
    run = identify(run_config, root)
    print(f"run {run.id}", flush=True)
    for sentence in too_small(dataset_of(run_config, root)):
        print(f"warning: {sentence}", file=sys.stderr)
    try:
        result = execute(run, root, device=device, save_seconds=save_seconds)
    except OutOfMemory as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as error:
        print(f"{error}\nThe same command goes on from here.", file=sys.stderr)
        return 130
    print(tables(result))
    return int(result.status != "done")


def finished(config: RunConfig, root: str | None) -> RunResult:
    """The result of a run in the store.

    Raises:  ValueError naming the run where it is not finished.
    """
    run_id = identify(config, root).id
    result = RunStore().result(run_id)
    if result is None:
        raise ValueError(f"run {run_id} is not finished on this machine; train it first: the same "
                         "command with `train`")
    return result


def evaluation(config: str, dataset: str, data: Path | None, changes: list[str]) -> str:
    """The tables of a finished run."""
    run_config = read_config(config, dataset, changes)
    return tables(finished(run_config, data_root(run_config.dataset, data)))


def tables(result: RunResult) -> str:
    """Status, cost and metrics of a run, one column a split."""
    minutes = result.facts.get("minutes", 0.0)
    lines = [f"run {result.id}: {result.status}, {len(result.history.rows)} epochs, best "
             f"{result.history.best_epoch}, {minutes:.1f} min, {result.folder}"]
    lines += [result.reason] * bool(result.reason)
    if result.tables:
        measured = {name for table in result.tables.values() for name in table}
        order = [name for name in columns(result.config["dataset"], "test") if name in measured]
        names = order + sorted(measured - set(order))
        width = max(len(name) for name in names)
        lines.append(" " * width + "".join(f"{split:>9}" for split in result.tables))
        for name in names:
            cells = (f"{table[name]:9.2f}" if name in table else f"{'-':>9}"
                     for table in result.tables.values())
            lines.append(f"{name:<{width}}{''.join(cells)}")
    return "\n".join(lines)


def search(config: str, dataset: str, data: Path | None, changes: list[str], text: str | None,
           image: str | None, top: int, split: str | None = None, pictures: Path | None = None,
           save: Path | None = None, show: bool = False) -> str:
    """The best `top` that a finished run finds for a text or an image; see `cli.search`."""
    from itr_study.cli.search import answer, searcher_of
    from itr_study.evaluation.search import check_query

    if (text is None) == (image is None):
        raise ValueError("search takes --text WORDS or --image ID-OR-FILE, one of them")
    if text is not None:
        check_query(text)
    run_config = read_config(config, dataset, changes)
    root = data_root(run_config.dataset, data)
    finished(run_config, root)
    return answer(searcher_of(run_config, root, split, pictures), text, image, top, save, show)


def audit_rows(dataset: str, data: Path | None, rows: int, seed: int) -> int:
    """Retrain rows; 0 only if none differs."""
    from itr_study.runs.audit import audit

    results = audit(dataset, data_root(dataset, data), rows, seed)
    return int(not all(r.good for r in results))
