"""Compare tables of figures with the published ones, by numbers."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

from itr_study.digits import counted
from itr_study.files.atomic import read_json

# How far equal numbers may lie apart: a share of the larger one, or of 1 where both are smaller.
TOLERANCE = 1e-9
NEAR = 0.01  # where no published run is behind a table, so that this machine computed it anew
# Columns, or words in a column METRICS, whose numbers are of the machine: left out of a comparison.
MACHINE = {"minutes", "memory_mb", "score_seconds", "rerank_seconds", "rerank_milliseconds",
           "seconds_fast", "seconds_multi", "seconds_reciprocal", "instructions", "software",
           "versions", "commit", "device"}
METRICS = ("metric", "column")
NEEDED = ("dataset", "notebook", "figure", "summary", "seeds_count")  # of every provenance
DRAWN_BY = "tools/drawings.py"  # pictures of ideas, which no notebook draws
LEDGER, PAGE = "12_claims", "claims.md"  # the notebook that writes that page, too


def read_record(path: Path) -> dict[str, Any]:
    """Read the provenance of a figure.

    Raises: ValueError: the file holds none.
    """
    record = read_json(path)
    if not isinstance(record, dict) or any(key not in record for key in NEEDED):
        raise ValueError(f"{path} is not the provenance of a figure; delete it to have it made "
                         "again")
    return record


def tolerance_of(record: Mapping[str, Any]) -> float:
    """Look up how far the numbers of a figure may differ from the published ones."""
    return TOLERANCE if record.get("run_ids") else NEAR


def table_difference(ours: str, published: str, tolerance: float = TOLERANCE) -> str:
    """Describe where two tables (CSV) differ beyond a tolerance; empty if they do not."""
    if ours == published:
        return ""
    a, b = (pd.read_csv(StringIO(text), dtype=str, keep_default_na=False)
            for text in (ours, published))
    a, b = (table.loc[:, (table != "").any()] for table in (a, b))  # an empty column says nothing
    if only := set(a.columns) ^ set(b.columns):
        return f"columns of one of them alone: {', '.join(sorted(only))}"
    if len(a) != len(b):
        return f"{counted(len(a), 'row')}, published {len(b)}"
    of_machine = pd.Series(False, b.index)
    for name in set(METRICS) & set(b.columns):
        of_machine |= b[name].isin(MACHINE)
    wrong = sorted((row, name) for name in b if name not in MACHINE
                   for row in b.index[_differ(a[name], b[name], of_machine, tolerance)])
    if not wrong:
        return ""
    row, name = wrong[0]
    more = f", and {counted(len(wrong) - 1, 'cell')} more" if len(wrong) > 1 else ""
    return f"row {row + 1}, {name}: {a[name][row]!r}, published {b[name][row]!r}{more}"


def _differ(a: pd.Series, b: pd.Series, of_machine: pd.Series, tolerance: float) -> pd.Series:
    """Find cells that differ, but for numbers within the tolerance (of ten digits)."""
    if (a == b).all():
        return a != b
    x, y = (pd.to_numeric(side, errors="coerce") for side in (a, b))
    scale = pd.concat([x.abs(), y.abs()], axis=1).max(axis=1).clip(lower=1)
    near = (x - y).abs() <= tolerance * (1 + 1e-6) * scale
    return (a != b) & ~near & ~(of_machine & x.notna() & y.notna())


@dataclass
class Comparison:
    """Drawn tables against the published ones, each by its data set and name."""

    equal: list[str] = field(default_factory=list)
    near: list[str] = field(default_factory=list)  # computed here, and equal but for the machine
    retrained: list[str] = field(default_factory=list)  # made of models that were trained here
    differing: dict[str, str] = field(default_factory=dict)  # name -> where, in words
    missing: list[str] = field(default_factory=list)  # published, not drawn
    additional: list[str] = field(default_factory=list)  # drawn, not published
    profiles: list[str] = field(default_factory=list)  # drawn in another profile: not compared
    unpublished: list[str] = field(default_factory=list)  # data sets of which nothing is published

    def text(self) -> str:
        """Describe each table that differs, then the counts."""
        lines = [f"{name} differs from the published one: {where}"
                 for name, where in self.differing.items()]
        lines += [f"{title}: {', '.join(names)}" for title, names in (
            ("Published and not drawn here", self.missing),
            ("Drawn here and not published", self.additional),
            (f"Computed on this machine, within {NEAR:.0%} of the published numbers", self.near),
            ("Made of models trained on this machine, as no weights are published",
             self.retrained)) if names]
        if self.profiles:
            lines.append(f"Not compared, as the published ones are of another profile: "
                         f"{counted(len(self.profiles), 'table')}")
        if self.unpublished:
            lines.append(f"No figure is published of {' and '.join(self.unpublished)} (where they "
                         "were deleted: git checkout -- figures)")
        equals = "equals the published one" if len(self.equal) == 1 else "equal the published ones"
        return "\n".join([*lines, f"{counted(len(self.equal), 'table')} {equals}"])


def compare(drawn: Path, published: Path, datasets: Collection[str],
            notebooks: Collection[str] | None = None, since: float = 0) -> Comparison:
    """Compare drawn figures with the published ones.

    Args:
        datasets: folders in both, such as "flickr8k" and "common".
        notebooks: whose figures; None: all.
        since: time from which drawings count (seconds of the epoch).
    Raises: ValueError: a provenance is damaged.
    """
    found = Comparison()
    for dataset in datasets:
        ours, theirs = (
            {path.stem: path.with_suffix(".csv") for path in (folder / dataset).glob("*__*.json")
             if path.with_suffix(".csv").is_file()} for folder in (drawn, published))
        if not theirs:
            found.unpublished.append(dataset)
            continue
        ours, theirs = ({name: path for name, path in tables.items() if notebooks is None or
                         name.partition("__")[0] in notebooks} for tables in (ours, theirs))
        ours = {name: path for name, path in ours.items() if path.stat().st_mtime >= since}
        for name in sorted(ours.keys() | theirs.keys()):
            _compare(f"{dataset}/{name}", ours.get(name), theirs.get(name), found)
        pages = [folder / dataset / PAGE for folder in (drawn, published)]
        if f"{LEDGER}__ledger" in ours.keys() & theirs.keys() and f"{dataset}/{LEDGER}__ledger" \
                not in found.profiles and all(page.is_file() for page in pages):
            if pages[0].read_text(encoding="utf-8") == pages[1].read_text(encoding="utf-8"):
                found.equal.append(f"{dataset}/{PAGE}")
            else:
                found.differing[f"{dataset}/{PAGE}"] = "another text"
    return found


def _compare(name: str, ours: Path | None, theirs: Path | None, found: Comparison) -> None:
    records = [read_record(path.with_suffix(".json")) for path in filter(None, (ours, theirs))]
    profiles = {record.get("profile") for record in records}
    if ours is None:
        if records[0].get("made_from") != DRAWN_BY:  # no notebook draws these
            found.missing.append(name)
    elif theirs is None:
        found.additional.append(name)
    elif len(profiles) > 1:
        found.profiles.append(name)
    else:
        texts = [path.read_text(encoding="utf-8") for path in (ours, theirs)]
        try:
            where = table_difference(*texts)
        except ValueError as error:  # conflict markers, say
            found.differing[name] = f"one of them is no table ({str(error).strip()})"
            return
        if not where:
            found.equal.append(name)
        elif not table_difference(*texts, max(map(tolerance_of, records))):
            found.near.append(name)
        elif records[0].get("from_models"):
            found.retrained.append(name)
        else:
            found.differing[name] = where
