"""A CSV file with one line per run: read with checks, written whole, cells kept as they are. Loads
no torch, so that the command answers at once."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any

from itr_study.files.atomic import write_atomic

# Columns that are text, whatever their letters look like (an id may consist of digits).
TEXT = ("run", "status", "reason", "dataset", "images", "tokens", "sentences", "model", "config",
        "device", "commit", "software", "versions", "seen", "data", "encoded", "instructions",
        "arithmetic")
# Columns of numbers.
NUMBER = re.compile(r"(train|dev|test|seconds)_|(seed|epochs|best_epoch|minutes)$")
MAY_BE_EMPTY = ("reason", "commit", "seen")  # an empty cell is ""; in other columns it is None

_read: dict[str, tuple] = {}  # path -> what identifies the file as it was read, and its content


class Table:
    """Rows by run id in a CSV file, which need not be there.

    Args:    path: of the file.
    """

    def __init__(self, path: Path):
        self.path = path
        self.restore = f"restore it: git checkout -- {path}"

    def read(self) -> dict[str, dict[str, Any]]:
        """All rows by run id, numbers as numbers, empty cells as None; read anew when the file
        has changed."""
        names, columns, _ = self._read()
        return {row[names.index("run")]: dict(zip(names, row, strict=True))
                for row in zip(*columns, strict=True)}

    def row(self, run_id: str) -> dict[str, Any] | None:
        """One row, as `read` has it; None where there is none."""
        names, columns, places = self._read()
        place = places.get(run_id)
        return None if place is None else {
            name: column[place] for name, column in zip(names, columns, strict=True)}

    def columns(self) -> dict[str, list[Any]]:
        """The values by column, in the order of the file."""
        names, columns, _ = self._read()
        return dict(zip(names, map(list, columns), strict=True))

    def _read(self) -> tuple[list[str], list[list[Any]], dict[str, int]]:
        """Names of the columns, their values, and the place of each run."""
        if not self.path.exists():
            return ["run"], [[]], {}
        stat = self.path.stat()
        key, version = str(self.path.resolve()), (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        if _read.get(key, (None,))[0] != version:
            names, lines = self._cells()
            cells = list(zip(*lines, strict=True)) if lines else [()] * len(names)
            runs = cells[names.index("run")]
            columns = [self._values(name, column, runs)
                       for name, column in zip(names, cells, strict=True)]
            places = {run: place for place, run in enumerate(runs)}
            _read[key] = version, (names, columns, places)
        return _read[key][1]

    def lines(self) -> tuple[list[str], dict[str, dict[str, str]]]:
        """Names of the columns, and lines by run id, cells as they are written.

        Raises:  ValueError for a file that is no whole table of runs, with the way to get it back.
        """
        if not self.path.exists():
            return [], {}
        names, cells = self._cells()
        lines = [dict(zip(names, line, strict=True)) for line in cells]
        return names, {line["run"]: line for line in lines}

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

    def write(self, names: list[str], lines: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the file by these lines, sorted by run id; what a line lacks is left empty."""
        text = io.StringIO()
        writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines[run_id] for run_id in sorted(lines))
        write_atomic(self.path, text.getvalue().encode())

    def _values(self, name: str, cells: Sequence[str], runs: Sequence[str]) -> list[Any]:
        """The values of a column. Raises: ValueError for a measure that is no number."""
        known = typed(name, cells)
        if NUMBER.match(name):
            for text, value in known.items():
                if value is not None and not (type(value) in (int, float) and isfinite(value)):
                    raise ValueError(f"{self.path}: {name} of run {runs[cells.index(text)]} must "
                                     f"be a finite number, found {text!r}; {self.restore}")
        return [known[text] for text in cells]


def cell(value: Any) -> str:
    """A value as it is written: text as it is, None as nothing, the rest as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def typed(name: str, cells: Iterable[str]) -> dict[str, Any]:
    """The values of a column by how they are written."""
    texts = list(dict.fromkeys(cells))
    if name in TEXT:
        return {text: text if text or name in MAY_BE_EMPTY else None for text in texts}
    whole = ",".join(text or "null" for text in texts)
    if whole.count(",") == len(texts) - 1:  # no cell has a comma of its own: read all at once
        with suppress(ValueError):
            return dict(zip(texts, json.loads(f"[{whole}]"), strict=True))
    return {text: _typed(text) for text in texts}


def _typed(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except json.JSONDecodeError:
        return text
