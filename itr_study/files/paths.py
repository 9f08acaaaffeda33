"""Where things lie: the project and the home of runs and caches, from any working folder."""

import os
import sys
import tempfile
from pathlib import Path

HOME_REMEDY = ("Runs and caches go there: set ITR_STUDY_HOME to a folder you may write to "
               "(itr-study doctor says which is in effect)")
FIGURES_REMEDY = ("Name a folder for figures that you may write to: --figures FOLDER, or `figures` "
                  "in the parameters cell of a notebook")


def project_root() -> Path:
    """The folder that holds pyproject.toml; the working folder where the package is installed
    away from its source."""
    root = Path(__file__).resolve().parent.parent.parent
    return root if (root / "pyproject.toml").is_file() else Path.cwd()


def shipped_folder(name: str) -> Path:
    """A folder of the project, `notebooks` or `evidence`; where the package is installed away from
    its source and the working folder has none, the copy that came with it."""
    folder = project_root() / name
    copy = Path(sys.prefix) / "share" / "itr_study" / name
    return copy if copy.is_dir() and not folder.is_dir() else folder


def home() -> Path:
    """Folder of runs and caches: $ITR_STUDY_HOME, else `.itr_study/` beside pyproject.toml.

    Read at every call, so that a test or a worker can point it elsewhere. Not created here.
    """
    chosen = os.environ.get("ITR_STUDY_HOME")
    return Path(chosen).expanduser().resolve() if chosen else project_root() / ".itr_study"


def check_home() -> None:
    """Raise OSError where nothing can be written in the home, saying why and what to do; a home
    that is not there is made."""
    check_writable(home(), HOME_REMEDY)


def check_writable(folder: Path, remedy: str) -> None:
    """Make a folder if it is not there.

    Raises:  OSError with the remedy where nothing can be written in it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try_writing(folder)
    except OSError as error:
        raise OSError(f"{folder} cannot be written: {error.strerror or error}. {remedy}"
                      ) from error


def try_writing(folder: Path) -> None:
    """Raise OSError where no file can be made in a folder; nothing is left there. Permissions do
    not tell: some file systems refuse whom they permit."""
    tempfile.TemporaryFile(dir=folder).close()


def figures_folder(figures: Path | str | None = None) -> Path:
    """The folder given; else `figures/` of the project, which holds the published ones."""
    return Path(figures) if figures is not None else project_root() / "figures"


def output_folder(generated: bool, figures: Path | str | None = None) -> Path:
    """The folder that a notebook saves figures in: the one given; else `figures/` for those of
    generated data, which git does not see there, and `my/figures/` for all others.

    Published figures are written only where that folder is given, as `itr-study reproduce
    --publish` does.
    """
    if figures is None and not generated:
        return my_folder() / "figures"
    return figures_folder(figures)


def kept_folders(generated: bool, figures: Path | str | None = None) -> list[Path]:
    """The folders that saved figures are looked up in: where this notebook saves, then those that
    are published; a folder that is given stands alone."""
    return list(dict.fromkeys([output_folder(generated, figures), figures_folder(figures)]))


def evidence_folder() -> Path:
    """Folder of what is published of runs and benchmarks, a folder a data set: $ITR_STUDY_EVIDENCE,
    else `evidence/` (`shipped_folder`). Read at every call; not created here."""
    chosen = os.environ.get("ITR_STUDY_EVIDENCE")
    folder = Path(chosen).expanduser().resolve() if chosen else shipped_folder("evidence")
    if folder.is_file():  # else all rows would be taken for missing, and trained
        raise NotADirectoryError(f"the folder of evidence is a file, {folder}: set "
                                 "ITR_STUDY_EVIDENCE to a folder, or unset it")
    return folder


def my_folder() -> Path:
    """Folder of the reader's own, which git does not see: working copies of the notebooks, and
    figures of real data."""
    return project_root() / "my"
