"""Packs: learning curves of published runs, and ranks where a figure needs them, sealed together.

manifest.json           {pack: {"sha256", "format", "project", "runs": [id, ...]}}
packs/<digits>.parquet  one row per run: run; columns, the names of its curve; curve.<name>, a
                        list with a number per epoch; ranks, its ranks.npz as bytes, or null

A pack is never changed: another is written beside it. The manifest says which pack holds a run.
"""

import hashlib
from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet

from itr_study.files.atomic import read_json, write_atomic, write_json
from itr_study.lab.runs.table import restore, unchanged

PROJECT, FORMAT = "itr_study", 1
LARGEST = 6_000_000  # bytes of a pack


class Packs:
    """The packs of a data set, in `evidence/<dataset>`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.manifest = folder, folder / "manifest.json"

    def entries(self) -> dict[str, dict[str, Any]]:
        """Read what the manifest says of packs, {} without one; ValueError for a damaged one."""
        return deepcopy(self._entries()[0])

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
        _check_version(path, entry)
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
        entries, written = self.entries(), []
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
        """The entries, and the pack of each run."""
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


def _check_version(path: Path, entry: Mapping[str, Any]) -> None:
    if entry.get("project") != PROJECT:
        raise ValueError(f"{path} is of project {entry.get('project')!r}, not of {PROJECT}; "
                         f"{restore(path.parent.parent)}, or set ITR_STUDY_EVIDENCE to a folder of "
                         f"{PROJECT}")
    if entry.get("format") != FORMAT:
        raise ValueError(f"{path} has format {entry.get('format')!r}, and this version of "
                         f"{PROJECT} reads format {FORMAT}: update it (git pull), or check out "
                         "code and evidence of one commit")


def _packed(runs: list[str], curves: Mapping[str, pd.DataFrame],
            ranks: Mapping[str, bytes]) -> list[tuple[list[str], bytes]]:
    """(run ids, bytes) of packs that are small enough: halves of one that is not."""
    names = list(dict.fromkeys(name for run in runs for name in curves[run]))
    columns: dict[str, Any] = {"run": runs, "columns": [list(curves[run]) for run in runs]}
    for name in names:
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
