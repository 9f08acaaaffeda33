"""A CSV file with one line per run: read with checks, written whole, cells kept as they are.

Loads no torch, so that the command answers at once.
"""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any

from itr_study.files.atomic import write_atomic

# Columns that are text, whatever their letters look like (an id may consist of digits).
TEXT = ("run", "status", "reason", "dataset", "images", "tokens", "sentences", "model", "config",
        "device", "commit", "software", "versions", "seen", "data", "encoded", "instructions",
        "arithmetic")
NUMBER = re.compile(r"(train|dev|test|seconds)_|(seed|epochs|best_epoch|minutes)$")
MAY_BE_EMPTY = ("reason", "commit", "seen")  # an empty cell is ""; in other columns it is None

_read: dict[Path, tuple] = {}  # path -> what identifies the file as it was read, and its content


def restore(path: Path) -> str:
    """Say how to get a published file back."""
    return f"restore it: git checkout -- {path}"


def unchanged(path: Path, read: Callable[[], Any], digest: str = "") -> Any:
    """Return what was read of a file; read it when it, or the digest it should have, is new."""
    path, stat = path.resolve(), path.stat()
    version = (digest, stat.st_ino, stat.st_mtime_ns, stat.st_size)
    if _read.get(path, (None,))[0] != version:
        _read[path] = version, read()
    return _read[path][1]


class Table:
    """Rows by run id in a CSV file, which need not be there."""

    def __init__(self, path: Path) -> None:
        self.path, self.restore = path, restore(path)

    def read(self) -> dict[str, dict[str, Any]]:
        """Read all rows by run id, numbers as numbers, empty cells as None."""
        columns, places = self._content()
        return dict(zip(places, (dict(zip(columns, row, strict=True))
                                 for row in zip(*columns.values(), strict=True)), strict=True))

    def row(self, run_id: str) -> dict[str, Any] | None:
        """Read one row, as `read` does; None where there is none."""
        columns, places = self._content()
        return {name: column[places[run_id]] for name, column in columns.items()
                } if run_id in places else None

    def columns(self) -> dict[str, list[Any]]:
        """Read the values by column, in the order of the file."""
        return {name: list(column) for name, column in self._content()[0].items()}

    def lines(self) -> tuple[list[str], dict[str, dict[str, str]]]:
        """Read columns' names and lines by run id, as written; ValueError for a damaged file."""
        if not self.path.exists():
            return [], {}
        names, cells = self._cells()
        lines = [dict(zip(names, line, strict=True)) for line in cells]
        return names, {line["run"]: line for line in lines}

    def write(self, names: list[str], lines: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the file by these lines, sorted by run id; what a line lacks is left empty."""
        text = io.StringIO()
        writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines[run_id] for run_id in sorted(lines))
        write_atomic(self.path, text.getvalue().encode())

    def _content(self) -> tuple[dict[str, list[Any]], dict[str, int]]:
        """Values by column, and the place of each run."""
        return unchanged(self.path, self._checked) if self.path.exists() else ({"run": []}, {})

    def _checked(self) -> tuple[dict[str, list[Any]], dict[str, int]]:
        names, lines = self._cells()
        cells = dict(zip(names, zip(*lines, strict=True) if lines else [()] * len(names),
                         strict=True))
        return ({name: self._values(name, column, cells["run"]) for name, column in cells.items()},
                {run: place for place, run in enumerate(cells["run"])})

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """Names of the columns, and the cells of every line. Raises: as `lines`."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path} is not UTF-8 ({error}); {self.restore}") from error
        names, *lines = [line for line in csv.reader(io.StringIO(text, newline="")) if line] or [[]]
        if "run" not in names or any(len(line) != len(names) for line in lines):
            raise ValueError(f"{self.path} is not a whole table of runs (no column 'run', or rows "
                             f"of differing length); {self.restore}")
        runs = [line[names.index("run")] for line in lines]
        for what, values in (("columns", names), ("runs", runs)):
            if twice := [value for value, count in Counter(values).items() if count > 1]:
                raise ValueError(f"{self.path} has {what} twice: {', '.join(twice[:3])}; which "
                                 f"one holds cannot be known: {self.restore}")
        return names, lines

    def _values(self, name: str, cells: Sequence[str], runs: Sequence[str]) -> list[Any]:
        """The values of a column. Raises: ValueError for a measure that is no number."""
        known = typed(name, cells)
        for text, value in known.items() if NUMBER.match(name) else ():
            if value is not None and not (type(value) in (int, float) and isfinite(value)):
                raise ValueError(f"{self.path}: {name} of run {runs[cells.index(text)]} must "
                                 f"be a finite number, found {text!r}; {self.restore}")
        return [known[text] for text in cells]


def cell(value: Any) -> str:
    """Write a value: text as it is, None as nothing, the rest as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def typed(name: str, cells: Iterable[str]) -> dict[str, Any]:
    """Read the cells of a column: their values by how they are written."""
    texts = list(dict.fromkeys(cells))
    if name in TEXT:
        return {text: text if text or name in MAY_BE_EMPTY else None for text in texts}
    whole = ",".join(text or "null" for text in texts)
    if whole.count(",") == len(texts) - 1:  # no cell has a comma of its own: read all at once
        with suppress(ValueError):
            return dict(zip(texts, json.loads(f"[{whole}]"), strict=True))
    values = {}
    for text in texts:
        try:
            values[text] = json.loads(text) if text else None
        except json.JSONDecodeError:
            values[text] = text
    return values
