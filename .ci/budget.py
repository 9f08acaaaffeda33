"""Print how much a reader has to take in, and fail above the limits.

A room is a folder of the package, or a file next to them. An arrow leads from a room to one that
it imports. A room is one floor above the highest room that it imports.
"""

import ast
import os
import sys
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "itr_study"
LIMITS = {"lines": 37_200, "files": 240, "rooms": 21, "floors": 8, "arrows": 95}
LIMITS |= {name: int(os.environ.get(f"{name.upper()}_LIMIT", most))
           for name, most in LIMITS.items()}
paths = [path for path in PACKAGE.rglob("*.py") if path.read_bytes().strip()]


def room_of(parts: tuple[str, ...]) -> str:
    """Name the room of a module from the parts of its name below the package."""
    return parts[0] if parts and (PACKAGE / parts[0]).is_dir() or (
        parts and (PACKAGE / f"{parts[0]}.py").is_file()) else "__init__"


def imported(path: Path) -> set[str]:
    """Return the rooms that a file imports."""
    names = [name for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
             for name in ([f"{node.module}.{alias.name}" for alias in node.names]
                          if isinstance(node, ast.ImportFrom) else
                          [alias.name for alias in node.names] if isinstance(node, ast.Import)
                          else [])]
    return {room_of(tuple(name.split(".")[1:])) for name in names
            if name.split(".")[0] == "itr_study"}


arrows: dict[str, set[str]] = {}
for path in paths:
    room = room_of(path.relative_to(PACKAGE).with_suffix("").parts)
    arrows.setdefault(room, set()).update(imported(path) - {room})


@cache
def floor(room: str) -> int:
    """Return the floor of a room, 1 for one that imports no other."""
    return 1 + max(map(floor, arrows[room]), default=0)


counts = {"lines": sum(path.read_text(encoding="utf-8").count("\n") for path in paths),
          "files": len(paths), "rooms": len(arrows), "floors": max(map(floor, arrows)),
          "arrows": sum(map(len, arrows.values()))}
print("itr_study/:", ", ".join(f"{counts[name]:,} {name} (at most {most:,})"
                               for name, most in LIMITS.items()))
if above := [name for name, most in LIMITS.items() if counts[name] > most]:
    sys.exit(f"The package has more {' and '.join(above)} than the budget in .ci/budget.py allows: "
             "merge or delete before you add, or raise the limit on purpose.")
