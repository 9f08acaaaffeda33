"""Where things lie: the project and the home of runs and caches, from any working folder."""

import os
from pathlib import Path


def project_root() -> Path:
    """The folder that holds pyproject.toml; the working folder where the package is installed
    away from its source."""
    root = Path(__file__).resolve().parent.parent.parent
    return root if (root / "pyproject.toml").is_file() else Path.cwd()


def home() -> Path:
    """Folder of runs and caches: $ITR_STUDY_HOME, else `.itr_study/` beside pyproject.toml.

    Read at every call, so that a test or a worker can point it elsewhere. Not created here.
    """
    chosen = os.environ.get("ITR_STUDY_HOME")
    return Path(chosen).expanduser().resolve() if chosen else project_root() / ".itr_study"


def figures_folder(figures: Path | str | None = None) -> Path:
    """The folder of committed figures and rows; by default `figures/` of the project."""
    return Path(figures) if figures is not None else project_root() / "figures"


def my_folder() -> Path:
    """Folder of the reader's own: working copies of the notebooks and the figures they draw."""
    return project_root() / "my"
