"""What is published of runs, in `evidence/<dataset>/`: read by every machine, trained by one.

runs.csv         a row per run
data.json        what identifies the data of these runs (see `identity`)
manifest.json    {pack: {"sha256", "format", "project", "runs": [id, ...]}}
packs/<digits>.parquet   a row per run: run; columns, the names of its learning curve; curve.<name>,
                 a number per epoch; ranks, its ranks.npz as bytes, or null. Never changed: another
                 pack is written beside it
ranks/<run>.npz  ranks, of runs that were published before there were packs

Only `publish` writes here. A run that ended and is not published is in the store of its machine.
"""

import hashlib
import math
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from functools import partial
from io import BytesIO
from itertools import chain, starmap
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet

from itr_study.checks import check_choice
from itr_study.data import DATASETS
from itr_study.evaluation.measures import MEASURES
from itr_study.files.atomic import folder_lock, read_json, write_atomic, write_json
from itr_study.files.paths import check_writable, evidence_folder
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.identity import Run, remember
from itr_study.lab.runs.rows import is_complete, make_row
from itr_study.lab.runs.store import RunResult, RunStore, clear_temporary
from itr_study.lab.runs.table import Table, cell, restore, unchanged
from itr_study.losses.base import OWN
from itr_study.metrics.truth import DIRECTIONS

PROJECT, FORMAT = "itr_study", 1
LARGEST = 6_000_000  # bytes of a pack


class Packs:
    """The packs of a data set, in `evidence/<dataset>`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.manifest = folder, folder / "manifest.json"

    def pack_of(self, run_id: str) -> Path | None:
        """The pack that holds a run."""
        pack = self._entries()[1].get(run_id)
        return pack and self.folder / "packs" / pack

    def read(self, run_id: str) -> tuple[pd.DataFrame, bytes | None] | None:
        """Read (curve, ranks) of a run, None if no pack has it; ValueError for a damaged one."""
        path = self.pack_of(run_id)
        if path is None:
            return None
        entry = self._entries()[0][path.name]
        if entry.get("project") != PROJECT:
            raise ValueError(f"{path} is of project {entry.get('project')!r}, not of {PROJECT}; "
                             f"{restore(self.folder)}, or set ITR_STUDY_EVIDENCE to a folder of "
                             f"{PROJECT}")
        if entry.get("format") != FORMAT:
            raise ValueError(f"{path} has format {entry.get('format')!r}, and this version of "
                             f"{PROJECT} reads format {FORMAT}: update it (git pull), or check out "
                             "code and evidence of one commit")
        if not path.is_file():
            raise ValueError(f"{path} is missing; {restore(path)}")
        digest = entry.get("sha256", "")
        places, table = unchanged(path, partial(self._read_pack, path, digest), digest)
        place = places[run_id]
        curve = {name: table[f"curve.{name}"][place].values.to_numpy(zero_copy_only=False)
                 for name in table["columns"][place].as_py()}
        return pd.DataFrame(curve), table["ranks"][place].as_py()

    def add(self, curves: Mapping[str, pd.DataFrame], ranks: Mapping[str, bytes]) -> list[Path]:
        """Write packs of these runs, which are read before older ones; return the new ones."""
        entries, written = deepcopy(self._entries()[0]), []
        for entry in entries.values():
            entry["runs"] = [run for run in entry["runs"] if run not in curves]
        for runs, data in _packed(sorted(curves), curves, ranks):
            digest = hashlib.sha256(data).hexdigest()
            name = f"{digest[:12]}.parquet"
            write_atomic(self.folder / "packs" / name, data)
            entries[name] = {"sha256": digest, "format": FORMAT, "project": PROJECT, "runs": runs}
            written.append(self.folder / "packs" / name)
        write_json(self.manifest, entries)
        return written

    def _entries(self) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
        """The entries of the manifest, and the pack of each run; ValueError for a damaged one."""
        return unchanged(self.manifest, self._read_manifest) if self.manifest.exists() else ({}, {})

    def _read_manifest(self) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
        try:
            entries = read_json(self.manifest)
            runs = [(run, pack) for pack, entry in entries.items() for run in entry["runs"]]
            packs = dict(runs)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{self.manifest} is no manifest of packs; "
                             f"{restore(self.manifest)}") from error
        if len(packs) < len(runs):
            raise ValueError(f"{self.manifest} names a run in two packs; {restore(self.manifest)}")
        return entries, packs

    def _read_pack(self, path: Path, digest: str) -> tuple[dict[str, int], pa.Table]:
        """The place of every run in a pack, and its table."""
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            raise ValueError(f"{path} is damaged: its checksum is not that of "
                             f"{self.manifest.name}; {restore(path)}")
        table = parquet.read_table(BytesIO(data))
        return {run: place for place, run in enumerate(table["run"].to_pylist())}, table


def _packed(runs: list[str], curves: Mapping[str, pd.DataFrame],
            ranks: Mapping[str, bytes]) -> list[tuple[list[str], bytes]]:
    """(run ids, bytes) of packs that are small enough: halves of one that is not."""
    columns: dict[str, Any] = {"run": runs, "columns": [list(curves[run]) for run in runs]}
    for name in dict.fromkeys(chain(*columns["columns"])):
        lists = [curves[run][name].tolist() if name in curves[run] else None for run in runs]
        whole = all(type(value) is int for one in lists for value in one or ())
        columns[f"curve.{name}"] = pa.array(lists, pa.list_(pa.int64() if whole else pa.float64()))
    columns["ranks"] = pa.array([ranks.get(run) for run in runs], pa.binary())
    buffer = BytesIO()
    parquet.write_table(pa.table(columns), buffer, compression="zstd", compression_level=19)
    data = buffer.getvalue()
    if len(data) <= LARGEST or len(runs) == 1:
        return [(runs, data)]
    half = len(runs) // 2
    return _packed(runs[:half], curves, ranks) + _packed(runs[half:], curves, ranks)


Finished = tuple[Run, RunResult]
NOWHERE = ("it is neither published nor in the store of this machine; train it with `train_arms` "
           "or `itr-study train`")
UNPUBLISHED = ("Nothing is published; the runs stay in the store. Publish from a checkout that you "
               "may write to, or set ITR_STUDY_EVIDENCE to a folder of your own")
LEAST_TEST = 100  # test images of generated data: R@K of fewer says little


def keeps_rows(config: RunConfig) -> bool:
    """Whether runs may be published: of parts here, and of real data or LEAST_TEST images."""
    if any(map(OWN.fullmatch, (config.model, *(term.loss for term in config.terms)))):
        return False
    return (not DATASETS[config.dataset].generated
            or config.data_options.get("test", LEAST_TEST) >= LEAST_TEST)


class NotKept(ValueError):
    """A run has no such arrays; nothing is damaged."""


class Published:
    """The published runs of a data set; ValueError where its table or manifest alone is lost."""

    def __init__(self, dataset: str) -> None:
        self.folder = evidence_folder() / dataset
        self.packs = Packs(self.folder)
        self.table = Table(self.folder / "runs.csv")
        if self.packs.manifest.exists() and not self.table.path.exists():
            raise ValueError(f"{self.table.path} is missing; {self.table.restore}")
        if (not self.packs.manifest.exists() and any(self.folder.glob("packs/*.parquet"))
                and self.table.read()):
            raise ValueError(f"{self.packs.manifest} is missing; {restore(self.packs.manifest)}")

    def complete(self, run_id: str, needs: Collection[str] = ()) -> dict[str, Any] | None:
        """A run's row, if that is complete; needs: as in `rows.is_complete`."""
        row = self.table.row(run_id)
        return row if row and is_complete(row, needs) else None

    def curve(self, run_id: str) -> pd.DataFrame:
        """A line per epoch of a published run. Raises: ValueError where it has none."""
        found = self.packs.read(run_id)
        if found is None:
            raise ValueError(f"no curve of run {run_id}: {self.packs.manifest} does not name it; "
                             f"{restore(self.packs.manifest)}")
        return found[0]

    def arrays(self, run_id: str) -> dict[str, np.ndarray] | None:
        """The arrays of a published run, whose R@1 must be its row's; None if they were not kept.

        Raises:  ValueError for a file that is damaged, or of another run, with what to do.
        """
        path = self.folder / "ranks" / f"{run_id}.npz"
        source = path if path.is_file() else None
        if source is None and (found := self.packs.read(run_id)) and found[1] is not None:
            source, path = BytesIO(found[1]), self.packs.pack_of(run_id)
        if source is None:
            return None
        try:
            with np.load(source, allow_pickle=False) as archive:
                arrays = dict(archive)
            best = {direction: arrays[f"test_{direction}"] for direction in DIRECTIONS}
        except (BadZipFile, zlib.error, EOFError, KeyError, ValueError, TypeError) as error:
            # numpy's own words are left out: some advise to unpickle the file
            raise ValueError(f"{path} holds no ranks of run {run_id} (test_i2t, test_t2i), it is "
                             f"damaged; {restore(path)}") from error
        row = self.table.row(run_id) or {}
        for direction, of_queries in best.items():
            stated, counted = row.get(f"test_{direction}_r1"), 100 * float((of_queries <= 1).mean())
            if stated is not None and not math.isclose(stated, counted, abs_tol=1e-6):
                raise ValueError(f"{path} is not of run {run_id}: its {direction} R@1 is "
                                 f"{counted:.2f}, the row says {stated:.2f}; {restore(path)}")
        return arrays


def rows(dataset: str) -> pd.DataFrame:
    """Read the published runs of a data set: what was run, its metrics, what it cost.

    Metrics are in percent, or ranks. `sweep` gives the rows of any runs, `itr-study runs` lists
    those of this machine.

    Raises:  ValueError where none are published, or their table is damaged.

    Example:
        >>> table = rows("scenes")
        >>> bool((table["status"] == "done").any())
        True
    """
    check_choice("dataset", dataset, DATASETS)
    published = Published(dataset)
    frame = pd.DataFrame(published.table.columns())
    if frame.empty:
        raise ValueError(f"no runs of {dataset} are published in {published.folder}; those of this "
                         f"machine are listed by: itr-study runs {dataset}")
    return frame


def curve(run_id: str) -> pd.DataFrame:
    """The learning curve of a run, a line per epoch: published, else from this machine's store.

    Raises:  ValueError where the run is in neither, or what is published is damaged.
    """
    if published := _evidence_of(run_id):
        return published.curve(run_id)
    if result := RunStore().result(run_id):
        return result.history.table()
    raise ValueError(f"no curve of run {run_id}: {NOWHERE}")


def arrays(run_id: str, *names: str) -> dict[str, np.ndarray]:
    """The arrays of a run by name: published, else from this machine's store.

    test_i2t and test_t2i hold the rank of the best match of every query (1 = first); see
    `RunResult.arrays`.

    Args:    names: those needed beside the ranks.
    Raises:  NotKept where the run is in neither or without them, else as `curve`.
    """
    published, wanted = _evidence_of(run_id), {"test_i2t", "test_t2i", *names}
    found = published.arrays(run_id) if published else None
    if found and found.keys() >= wanted:
        return found
    result = RunStore().result(run_id)
    if result and (found := result.arrays()).keys() >= wanted:
        return found
    why = NOWHERE if not (published or result) else (
        f"it is kept without them; train it again: itr-study train {run_id}")
    raise NotKept(f"no {', '.join(names) or 'ranks'} of run {run_id}: {why}")


def _evidence_of(run_id: str) -> Published | None:
    """The published runs that this one is among."""
    datasets = [path.parent.name for path in sorted(evidence_folder().glob("*/runs.csv"))]
    return next((one for one in map(Published, datasets) if one.table.row(run_id)), None)


# Publishing: `itr-study runs --publish`. Packs are written first, the manifest next, the rows last:
# who is killed in between leaves files that no row names, and the next call writes the same again.

def publish(run_ids: Iterable[str], ranks: bool = False) -> list[str]:
    """Add rows and curves of finished runs of this machine to what is published.

    Args:    ranks: also their arrays, which figures and verdicts over images need.
    Returns: the ids of those that were not there yet.
    Raises:  ValueError, before anything is written, for a run that is not finished here, is of a
             smaller part of generated data, or is published with other numbers; OSError where the
             evidence cannot be written.
    """
    by_dataset: dict[str, list[Finished]] = defaultdict(list)
    for found in map(_finished, dict.fromkeys(run_ids)):
        by_dataset[found[0].config.dataset].append(found)
    return [run_id for dataset, runs in by_dataset.items()
            for run_id in _publish(dataset, runs, ranks)]


def publishable(dataset: str) -> list[str]:
    """Ids of the finished runs of a data set on this machine that may be published, sorted."""
    configs = {path.parent.name: read_json(path.with_name("config.json"))
               for path in sorted(RunStore().folder.glob("*/manifest.json"))}
    return [run_id for run_id, config in configs.items() if config["dataset"] == dataset
            and keeps_rows(RunConfig.model_validate(config))]


def _finished(run_id: str) -> Finished:
    result = RunStore().result(run_id)
    if result is None:
        raise ValueError(f"run {run_id} is not finished on this machine; finished ones are listed "
                         "by: itr-study runs")
    config, facts = RunConfig.model_validate(result.config), result.facts
    if not keeps_rows(config):
        raise ValueError(f"run {run_id} is of a part of {config.dataset} ({config.data_options}), "
                         "which anybody trains in minutes, or of a loss or model of your own; only "
                         "runs of its own size and of losses and models here are published")
    return Run(config, run_id, facts["data"], facts["encoded"], facts["versions"]), result


def _publish(dataset: str, runs: list[Finished], ranks: bool) -> list[str]:
    """Of one data set, one publisher after the other."""
    folder = evidence_folder() / dataset
    check_writable(folder, UNPUBLISHED)
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
        names, lines = published.table.lines()  # others stay as they are, columns are only added
        for row in starmap(make_row, new):
            if _published_row(published, row) is None:
                names += [name for name in row if name not in names]
                lines[row["run"]] = {name: cell(value) for name, value in row.items()}
        published.table.write(names, lines)
    return [run.id for run, _ in new]


def _is_new(published: Published, run: Run, result: RunResult, ranks: bool) -> bool:
    """Whether anything of a run is to be written; ValueError where its row says another R@1."""
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
