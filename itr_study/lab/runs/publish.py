"""Publish runs of this machine: `itr-study runs --publish`.

Packs are written first, the manifest next, the rows last: who is killed in between leaves files
that no row names, and the next call writes the same again.
"""

import itertools
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from itr_study.data import DATASETS
from itr_study.evaluation.measures import MEASURES
from itr_study.files.atomic import folder_lock, read_json
from itr_study.files.paths import evidence_folder, try_writing
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.identity import Run, remember
from itr_study.lab.runs.published import Published, keeps_rows
from itr_study.lab.runs.rows import is_complete, make_row
from itr_study.lab.runs.store import RunResult, RunStore, clear_temporary
from itr_study.lab.runs.table import cell
from itr_study.metrics.truth import DIRECTIONS

Finished = list[tuple[Run, RunResult]]


def publish(run_ids: Iterable[str], ranks: bool = False) -> list[str]:
    """Add rows and curves of finished runs of this machine to what is published; the ids of those
    that were not there yet.

    Args:    ranks: also their arrays, which figures and verdicts over images need.
    Raises:  ValueError, before anything is written, for a run that is not finished here, is of a
             smaller part of generated data, or is published with other numbers; OSError where the
             evidence cannot be written.
    """
    by_dataset: dict[str, Finished] = {}
    for run_id in dict.fromkeys(run_ids):
        run, result = _finished(run_id)
        by_dataset.setdefault(run.config.dataset, []).append((run, result))
    return [run_id for dataset, runs in by_dataset.items()
            for run_id in _publish(dataset, runs, ranks)]


def publishable(dataset: str) -> list[str]:
    """Ids of the finished runs of a data set on this machine that may be published, sorted."""
    ids = []
    for path in sorted(RunStore().folder.glob("*/manifest.json")):
        config = read_json(path.with_name("config.json"))
        if config["dataset"] == dataset and keeps_rows(RunConfig.model_validate(config)):
            ids.append(path.parent.name)
    return ids


def _finished(run_id: str) -> tuple[Run, RunResult]:
    result = RunStore().result(run_id)
    if result is None:
        raise ValueError(f"run {run_id} is not finished on this machine; finished ones are listed "
                         "by: itr-study runs")
    config, facts = RunConfig.model_validate(result.config), result.facts
    if not keeps_rows(config):
        raise ValueError(f"run {run_id} is of a part of {config.dataset} ({config.data_options}), "
                         "which anybody trains in minutes; only runs of its own size are published")
    return Run(config, run_id, facts["data"], facts["encoded"], facts["versions"]), result


def _publish(dataset: str, runs: Finished, ranks: bool) -> list[str]:
    """Of one data set, one publisher after the other."""
    folder = evidence_folder() / dataset
    _check_writable(folder)
    with folder_lock(folder):
        published = Published(dataset)
        new = [(run, result) for run, result in runs if _is_new(published, run, result, ranks)]
        if not new:
            return []
        for part in (folder, folder / "packs"):
            clear_temporary(part)  # of a publisher that was killed
        if not published.table.path.exists():
            published.table.write(["run"], {})  # else a manifest without rows, they count as lost
        published.packs.add({run.id: result.history.table() for run, result in new},
                            {run.id: (result.folder / "ranks.npz").read_bytes()
                             for run, result in new if ranks and result.status == "done"})
        for run, _ in new:
            if not DATASETS[dataset].generated:
                remember(run)  # for machines without that data
        _add_rows(published, [row for row in itertools.starmap(make_row, new)
                              if _published_row(published, row) is None])
    return [run.id for run, _ in new]


def _is_new(published: Published, run: Run, result: RunResult, ranks: bool) -> bool:
    """Whether anything of a run is to be written. Raises: ValueError where its row says another
    R@1 than this result: of two machines one is published."""
    row = _published_row(published, make_row(run, result))
    if row is None:
        return True
    for name in (f"{direction}_r1" for direction in DIRECTIONS):
        stated, found = row.get(f"test_{name}"), result.tables.get("test", {}).get(name)
        if None not in (stated, found) and not math.isclose(stated, found, abs_tol=1e-6):
            raise ValueError(f"run {run.id} is published with test {name} {stated:.2f}, here it is "
                             f"{found:.2f}: another machine rounded otherwise; leave it out")
    return ranks and result.status == "done" and published.arrays(run.id) is None


def _published_row(published: Published, row: dict[str, Any]) -> dict[str, Any] | None:
    """What is published of a row, if that has all its measures."""
    return published.complete(row["run"], MEASURES if is_complete(row, MEASURES) else ())


def _add_rows(published: Published, rows: list[dict[str, Any]]) -> None:
    """Rows, sorted by id; cells of others stay as they are, and columns are only ever added."""
    names, lines = published.table.lines()
    for row in rows:
        names += [name for name in row if name not in names]
        lines[row["run"]] = {name: cell(value) for name, value in row.items()}
    published.table.write(names, lines)


def _check_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try_writing(folder)
    except OSError as error:
        raise OSError(f"{folder} cannot be written: {error.strerror or error}. Nothing is published"
                      "; the runs stay in the store. Publish from a checkout that you may write to,"
                      " or set ITR_STUDY_EVIDENCE to a folder of your own") from error
