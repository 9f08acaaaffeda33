"""A CSV file with one line per run: read with checks, written whole, cells kept as they are."""

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from itr_study.files.atomic import write_atomic

# Columns that are text, whatever their letters look like (an id may consist of digits).
TEXT = ("run", "status", "reason", "dataset", "images", "tokens", "sentences", "model", "config",
        "device", "commit", "software", "versions", "seen", "data", "encoded", "instructions",
        "arithmetic")
# Columns of numbers.
NUMBER = re.compile(r"(train|dev|test|seconds)_|(seed|epochs|best_epoch|minutes|edition)$")
MAY_BE_EMPTY = ("reason", "commit", "seen")  # an empty cell is ""; in other columns it is None

_read: dict[str, tuple] = {}  # path -> what identifies the file as it was read, and its rows


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
        if not self.path.exists():
            return {}
        stat = self.path.stat()
        key, version = str(self.path.resolve()), (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        if _read.get(key, (None,))[0] != version:
            lines = self.lines()[1]
            _read[key] = version, {run: self._values(line) for run, line in lines.items()}
        return {run_id: dict(row) for run_id, row in _read[key][1].items()}

    def lines(self) -> tuple[list[str], dict[str, dict[str, str]]]:
        """Names of the columns, and lines by run id, cells as they are written.

        Raises:  ValueError for a file that is no whole table of runs, with the way to get it back.
        """
        if not self.path.exists():
            return [], {}
        try:
            text = self.path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path} is not UTF-8 ({error}); {self.restore}") from error
        reader = csv.DictReader(io.StringIO(text, newline=""))
        names, lines = list(reader.fieldnames or ()), list(reader)
        if "run" not in names or any(None in line or None in line.values() for line in lines):
            raise ValueError(f"{self.path} is not a whole table of runs (no column 'run', or rows "
                             f"of differing length); {self.restore}")
        for what, values in (("columns", names), ("runs", [line["run"] for line in lines])):
            if twice := [value for value, count in Counter(values).items() if count > 1]:
                raise ValueError(f"{self.path} has {what} twice: {', '.join(twice[:3])}; which "
                                 f"one holds cannot be known: {self.restore}")
        return names, {line["run"]: line for line in lines}

    def write(self, names: list[str], lines: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the file by these lines, sorted by run id; what a line lacks is left empty."""
        text = io.StringIO()
        writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines[run_id] for run_id in sorted(lines))
        write_atomic(self.path, text.getvalue().encode())

    def _values(self, line: dict[str, str]) -> dict[str, Any]:
        """A line's values. Raises: ValueError for a measure that is no number."""
        values = {name: typed(name, text) for name, text in line.items()}
        for name in filter(NUMBER.match, values):
            value = values[name]
            if value is not None and not (type(value) in (int, float) and math.isfinite(value)):
                raise ValueError(f"{self.path}: {name} of run {line['run']} must be a finite "
                                 f"number, found {line[name]!r}; {self.restore}")
        return values


def cell(value: Any) -> str:
    """A value as it is written: text as it is, None as nothing, the rest as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def typed(name: str, text: str) -> Any:
    """The value that was written."""
    if text == "" and name not in MAY_BE_EMPTY:
        return None
    if name in TEXT:
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
