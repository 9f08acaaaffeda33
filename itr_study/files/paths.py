"""Where things lie: the project and the home of runs and caches, from any working folder."""

import os
import tempfile
from pathlib import Path

HOME_REMEDY = ("Runs and caches go there: set ITR_STUDY_HOME to a folder you may write to "
               "(itr-study doctor says which is in effect)")


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


def check_home() -> None:
    """Raise OSError where nothing can be written in the home, saying why and what to do; a home
    that is not there is made."""
    try:
        home().mkdir(parents=True, exist_ok=True)
        try_writing(home())
    except OSError as error:
        raise OSError(f"{home()} cannot be written: {error.strerror or error}. {HOME_REMEDY}"
                      ) from error


def try_writing(folder: Path) -> None:
    """Raise OSError where no file can be made in a folder; nothing is left there. Permissions do
    not tell: some file systems refuse whom they permit."""
    tempfile.TemporaryFile(dir=folder).close()


def figures_folder(figures: Path | str | None = None) -> Path:
    """The folder of figures; by default `figures/` of the project."""
    return Path(figures) if figures is not None else project_root() / "figures"


def evidence_folder() -> Path:
    """Folder of what is published of runs and benchmarks, a folder a data set: $ITR_STUDY_EVIDENCE,
    else `evidence/` of the project. Read at every call; not created here."""
    chosen = os.environ.get("ITR_STUDY_EVIDENCE")
    return Path(chosen).expanduser().resolve() if chosen else project_root() / "evidence"


def my_folder() -> Path:
    """Folder of the reader's own: working copies of the notebooks and the figures they draw."""
    return project_root() / "my"
