"""Where figures go: PNG, the tidy CSV it was drawn from, and provenance; better ones are kept."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.figure import Figure

from itr_study import __version__
from itr_study.files.atomic import write_atomic, write_json
from itr_study.files.paths import FIGURES_REMEDY, check_writable, figures_folder
from itr_study.plots.published import read_record, table_difference, tolerance_of
from itr_study.plots.style import png_bytes

PROFILES = ("smoke", "quick", "full")  # from least to fullest
COMMON = "common"  # in the place of a data set: figures that no data set, profile or run changes
NAME = re.compile(r"(\d\d_[a-z0-9_]+?)__([a-z0-9_]+)")
MACHINE_KEYS = {"time", "timestamp", "date", "host", "hostname", "user", "cwd", "path"}
MACHINE_PATH = re.compile(r"^(/|~|[A-Za-z]:[\\/])")


def save_figure(figure: Figure | None, table: pd.DataFrame, name: str, dataset: str, summary: str,
                provenance: Mapping[str, Any], folder: Path | str | None = None,
                published: bool = False) -> Path:
    """Write a figure with its table and provenance, each atomically; returns the PNG's path, of
    a table alone (figure None: what a paper prints) the CSV's.

    A figure made with more seeds or a fuller profile is never replaced: the new one then goes to
    `figures-local/` beside the folder, and a line says so. Same data, same bytes.

    Args:    table: the tidy data the figure shows.
             name: "<notebook>__<figure>", such as "03_topk__k_sweep".
             dataset: its name, or COMMON for what is the same on all of them: filed once.
             summary: one sentence with what the reader sees; the alt text of the gallery.
             provenance: profile and seeds (a list), and run_ids, data, versions, parameters;
             of COMMON no profile and no seed.
             folder: of all figures; None takes `figures/` of the project.
             published: git keeps this figure: where its table is the one that is there, but for
             rounding (`published.table_difference`), table and picture stay as they are. To have
             the picture drawn anew all the same, delete it.
    Raises:  ValueError for a bad name, empty table, unfinished sentence, unknown profile, or
             provenance that holds a time or a path of this machine, or one on disk that is damaged;
             OSError with the remedy where the folder cannot be written.
    """
    record = full_record(name, dataset, summary, provenance)
    record |= {} if figure is not None else {"picture": False}
    if table.empty:
        raise ValueError(f"{name}: the table is empty; pass the tidy rows the figure shows")
    folder = figures_folder(folder)
    target = folder / dataset
    better = what_is_better(target / f"{name}.json", record)
    if better:
        target = folder.parent / "figures-local" / dataset
        print(f"{name}: kept the figure in {folder.name}/{dataset} ({better}); "
              f"this one is in {target.parent.name}/{dataset}")
    check_writable(target, FIGURES_REMEDY)
    text = table.to_csv(index=False, lineterminator="\n", float_format="%.10g")
    path, csv, origin = (target / f"{name}.{ending}" for ending in ("png", "csv", "json"))
    same = (published and csv.is_file() and origin.is_file()
            and not table_difference(text, csv.read_text(encoding="utf-8"),
                                              tolerance_of(record)))
    if same:
        record["versions"] = read_record(origin).get("versions", record["versions"])
    else:
        write_atomic(csv, text.encode())
    if figure is None:
        path.unlink(missing_ok=True)
    elif not (same and path.is_file()):
        write_atomic(path, png_bytes(figure))
    write_json(origin, record)
    return csv if figure is None else path


def full_record(name: str, dataset: str, summary: str,
                provenance: Mapping[str, Any]) -> dict[str, Any]:
    """The checked provenance as it is written: equal inputs give equal text on any machine."""
    parts = NAME.fullmatch(name)
    if not parts:
        raise ValueError(f"name must look like 03_topk__k_sweep, got {name!r}")
    if not re.fullmatch(r"[a-z0-9_]+", dataset):
        raise ValueError(f"dataset must be a name such as scenes, got {dataset!r}")
    summary = " ".join(summary.split())
    if not summary.endswith((".", "!")):
        raise ValueError(f"summary must be a full sentence ending with a period, got {summary!r}")
    if dataset == COMMON:
        if "profile" in provenance or provenance.get("seeds"):
            raise ValueError(f"{name}: what has a profile or seeds belongs to its data set")
    elif provenance.get("profile") not in PROFILES:
        raise ValueError(f"provenance needs profile, one of {', '.join(PROFILES)}; got "
                         f"{provenance.get('profile')!r}")
    if not isinstance(provenance.get("seeds"), list | tuple):
        raise ValueError("provenance needs seeds, a list such as [0, 1, 2] ([] where nothing is "
                         f"random); got {provenance.get('seeds')!r}")
    refuse_machine(provenance, "provenance")
    versions = {"itr_study": __version__, "matplotlib": matplotlib.__version__}
    return {**provenance, "figure": parts[2], "notebook": parts[1], "dataset": dataset,
            "summary": summary, "seeds": list(provenance["seeds"]),
            "seeds_count": len(set(provenance["seeds"])),
            "versions": versions | dict(provenance.get("versions", {}))}


def refuse_machine(value: Any, where: str) -> None:
    """Raise ValueError for times and absolute paths, which differ between equal runs."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if str(key).lower() in MACHINE_KEYS:
                raise ValueError(f"{where} may not hold {key!r}: it differs between equal runs")
            refuse_machine(inner, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for inner in value:
            refuse_machine(inner, where)
    elif isinstance(value, Path) or isinstance(value, str) and MACHINE_PATH.match(value):
        raise ValueError(f"{where} holds a path of this machine, {str(value)!r}; name the data "
                         "set or the fingerprint instead")


def what_is_better(existing: Path, record: Mapping[str, Any]) -> str:
    """Why the figure that is there must stay, in words; empty when it may be replaced."""
    if "profile" not in record or not existing.is_file():
        return ""
    kept, reasons = read_record(existing), []
    if kept.get("profile") in PROFILES[PROFILES.index(record["profile"]) + 1:]:
        reasons.append(f"profile {kept['profile']}, this one {record['profile']}")
    if kept["seeds_count"] > record["seeds_count"]:
        reasons.append(f"{kept['seeds_count']} seeds, this one {record['seeds_count']}")
    return "; ".join(reasons)
