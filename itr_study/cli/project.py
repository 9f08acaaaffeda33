"""What a Makefile's targets do where there is no make: the tests and benchmarks of the project."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from itr_study.checks import check_choice
from itr_study.files.paths import project_root

FAST, SLOW = "not slow and not evidence", "slow and not evidence"  # by the markers of pytest
TIERS = {"fast": (FAST,), "all": (FAST, SLOW), "evidence": ("evidence",)}


def run_tests(paths: Sequence[str], tier: str = "fast") -> int:
    """Check the style and run a tier of the tests, or those of the paths in it.

    Returns: the first exit code that is not 0.
    Raises:  ValueError for an unknown tier.
    """
    check_choice("tier", tier, TIERS)
    root = _source("tests")
    code = subprocess.call([sys.executable, "-m", "ruff", "check", "."], cwd=root)
    for marks in TIERS[tier]:
        code = code or subprocess.call(
            [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-m", marks,
             *(paths or ["tests"])], cwd=root, env=os.environ | {"OMP_NUM_THREADS": "1"})
    return code


def run_benchmarks(names: Sequence[str]) -> int:
    """Each benchmark, or those named; `soak` only by name. The first exit code that is not 0.

    Raises:  ValueError for an unknown name.
    """
    folder = _source("benchmarks") / "benchmarks"
    scripts = {path.stem: path for path in sorted(folder.glob("[a-z]*.py"))}
    for name in names:
        if name not in scripts:
            raise ValueError(f"no benchmark {name!r}; there are {', '.join(scripts)}")
    for name in names or [name for name in scripts if name != "soak"]:
        print(f"== {name}", flush=True)
        if code := subprocess.call([sys.executable, str(scripts[name])], cwd=project_root()):
            return code
    return 0


def _source(folder: str) -> Path:
    """The project's root. Raises: ValueError where it has no such folder."""
    if not (project_root() / folder).is_dir():
        raise ValueError(f"{project_root()} has no folder {folder}: start it in a copy of the "
                         "repository")
    return project_root()
