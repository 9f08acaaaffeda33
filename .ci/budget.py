"""Print how much a reader has to take in, and fail above the limits.

A part is a folder of the package, or a file next to them. Its level is one above the highest of the
parts that it imports.
"""

import ast
import os
import sys
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "itr_study"
LIMITS = {"lines": 41_161, "files": 236, "parts": 21, "levels": 8, "imports": 91}
LIMITS |= {name: int(os.environ.get(f"{name.upper()}_LIMIT", most))
           for name, most in LIMITS.items()}
paths = [path for path in PACKAGE.rglob("*.py") if path.read_bytes().strip()]


def part_of(names: tuple[str, ...]) -> str:
    """Find the part of a module from its name below the package."""
    return names[0] if names and ((PACKAGE / names[0]).is_dir()
                                  or (PACKAGE / f"{names[0]}.py").is_file()) else "__init__"


def imported(path: Path) -> set[str]:
    """Return the parts that a file imports."""
    names = [name for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
             for name in ([f"{node.module}.{alias.name}" for alias in node.names]
                          if isinstance(node, ast.ImportFrom) else
                          [alias.name for alias in node.names] if isinstance(node, ast.Import)
                          else [])]
    return {part_of(tuple(name.split(".")[1:])) for name in names
            if name.split(".")[0] == "itr_study"}


imports: dict[str, set[str]] = {}
for path in paths:
    part = part_of(path.relative_to(PACKAGE).with_suffix("").parts)
    imports.setdefault(part, set()).update(imported(path) - {part})


@cache
def level(part: str) -> int:
    """Return the level of a part, 1 for one that imports no other."""
    return 1 + max(map(level, imports[part]), default=0)


counts = {"lines": sum(path.read_text(encoding="utf-8").count("\n") for path in paths),
          "files": len(paths), "parts": len(imports), "levels": max(map(level, imports)),
          "imports": sum(map(len, imports.values()))}
print("itr_study/:", ", ".join(f"{counts[name]:,} {name} (at most {most:,})"
                               for name, most in LIMITS.items()))
if above := [name for name, most in LIMITS.items() if counts[name] > most]:
    sys.exit(f"The package has more {' and '.join(above)} than the budget in .ci/budget.py allows: "
             "merge or delete before you add, or raise the limit on purpose.")
