"""Where things lie: the project and the home of runs and caches, from any working folder."""

import os
import sys
import tempfile
from pathlib import Path

HOME_REMEDY = ("Runs and caches go there: set ITR_STUDY_HOME to a folder you may write to "
               "(itr-study doctor says which is in effect)")
MY_REMEDY = "Name a folder you may write to: itr-study lab --folder FOLDER, or set ITR_STUDY_MY"
FIGURES_REMEDY = ("Name a folder for figures that you may write to: --figures FOLDER, or `figures` "
                  "in the parameters cell of a notebook")


def project_root() -> Path:
    """Find the folder that holds pyproject.toml; away from the source, the working folder."""
    root = Path(__file__).resolve().parent.parent.parent
    return root if (root / "pyproject.toml").is_file() else Path.cwd()


def shipped_folder(name: str) -> Path:
    """Find `notebooks` or `evidence` of the project, else the copy that came with the package."""
    folder, copy = project_root() / name, shipped_copy(name)
    return copy if copy.is_dir() and not folder.is_dir() else folder


def shipped_copy(name: str) -> Path:
    """Return the copy of a folder of the project that an installed package came with.

    It lies above the package, which need not be under sys.prefix: after `pip install --user`.
    """
    shares = (above / "share" / "itr_study" for above in Path(__file__).resolve().parents)
    return next(filter(Path.is_dir, shares), Path(sys.prefix) / "share" / "itr_study") / name


def home() -> Path:
    """Find the folder of runs and caches: $ITR_STUDY_HOME, else `.itr_study/` of the project.

    Read at every call, so that a test or a worker can point it elsewhere. Not created here.
    """
    return _named_by("ITR_STUDY_HOME") or project_root() / ".itr_study"


def evidence_folder() -> Path:
    """Find the folder of what is published: $ITR_STUDY_EVIDENCE, else `evidence/`, by data set."""
    folder = _named_by("ITR_STUDY_EVIDENCE") or shipped_folder("evidence")
    if folder.is_file():  # else all rows would be taken for missing, and trained
        raise NotADirectoryError(f"the folder of evidence is a file, {folder}: set "
                                 "ITR_STUDY_EVIDENCE to a folder, or unset it")
    return folder


def _named_by(variable: str) -> Path | None:
    """The folder that a variable of the environment names."""
    chosen = os.environ.get(variable)
    return Path(chosen).expanduser().resolve() if chosen else None


def check_home() -> None:
    """Raise OSError, with the remedy, where the home cannot be written; make it if need be."""
    check_writable(home(), HOME_REMEDY)


def check_writable(folder: Path, remedy: str) -> None:
    """Raise OSError, with the remedy, where a folder cannot be written; make it if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try_writing(folder)
    except OSError as error:
        raise OSError(f"{folder} cannot be written: {error.strerror or error}. {remedy}") from error


def try_writing(folder: Path) -> None:
    """Raise OSError where no file can be made in a folder: permissions alone do not tell."""
    tempfile.TemporaryFile(dir=folder).close()


def figures_folder(figures: Path | str | None = None) -> Path:
    """Take the folder given; else `figures/` of the project, which holds the published ones."""
    return Path(figures) if figures is not None else project_root() / "figures"


def output_folder(generated: bool, figures: Path | str | None = None) -> Path:
    """Choose the folder that a notebook saves figures in.

    It is the one given; else `figures/` for those of generated data, which git does not see there,
    and `figures/` in `my_folder` for all others, and for all where ITR_STUDY_MY is set. Published
    figures are written only where that folder is given, as `itr-study reproduce --publish` does.
    """
    if figures is None and not (generated and my_folder() == project_root() / "my"):
        return my_folder() / "figures"
    return figures_folder(figures)


def kept_folders(generated: bool, figures: Path | str | None = None) -> list[Path]:
    """List where to look figures up: the folder given or this notebook's, then the published."""
    return list(dict.fromkeys([output_folder(generated, figures), figures_folder()]))


def my_folder() -> Path:
    """Find the reader's folder for copies and figures: $ITR_STUDY_MY, else `my/`, unseen by git."""
    return _named_by("ITR_STUDY_MY") or project_root() / "my"
