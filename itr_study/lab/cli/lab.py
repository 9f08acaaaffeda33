"""JupyterLab on working copies: what a reader tries out changes nothing that git keeps."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import chain, count
from pathlib import Path

from itr_study.checks import check_choice
from itr_study.files.atomic import read_json, sha256_file, write_json
from itr_study.files.paths import MY_REMEDY, check_writable, home, my_folder, project_root
from itr_study.lab.batch.declared import find_notebooks
from itr_study.lab.batch.execute import make_kernelspec

ORIGINS = ".origins.json"  # in my/
SETTINGS = {
    # nothing covers a view, and no site is asked about news and newer versions
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    # a notebook opened again shows its controls, without an error that their state is unknown
    "@jupyter-widgets/jupyterlab-manager:plugin": {"saveState": True},
}


def working_copies(fresh: Sequence[str] = ()) -> list[Path]:
    """Copy every notebook and every solution that `my/` does not hold yet; what it holds stays.

    Those named in `fresh` are copied again, and the former kept as `03_topk.before.ipynb` …

    Returns: the copies of the notebooks, in reading order.
    """
    check_writable(my_folder(), MY_REMEDY)
    renewed = find_notebooks(fresh) if fresh else []
    copied = origins()
    for source, copy in sources_and_copies():
        again = source.name in {path.name for path in renewed} and copy.exists()
        if again and (source in renewed or source.read_bytes() != copy.read_bytes()):
            names = (copy.with_name(f"{copy.stem}.before{n}.ipynb") for n in chain([""], count(2)))
            copy.rename(next(name for name in names if not name.exists()))
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
            copied[name_of(copy)] = sha256_file(source)
    write_json(my_folder() / ORIGINS, copied)
    return [my_folder() / path.name for path in find_notebooks()]


def sources_and_copies() -> list[tuple[Path, Path]]:
    """Every notebook and every solution there is, with the place of its copy."""
    pairs = [(path.parent / part / path.name, my_folder() / part / path.name)
             for part in ("", "solutions") for path in find_notebooks()]
    return [(source, copy) for source, copy in pairs if source.is_file()]


def origins() -> dict[str, str]:
    """What was copied: name of a copy -> sha256 of its source when it was copied."""
    path = my_folder() / ORIGINS
    return read_json(path) if path.is_file() else {}


def name_of(copy: Path) -> str:
    """A copy as people write it: solutions/03_topk.ipynb."""
    return copy.relative_to(my_folder()).as_posix()


def advice() -> str:
    """Which copies are older than their source, and how to renew them; empty where none is."""
    copied = origins()
    copies = [copy for source, copy in sources_and_copies() if copy.exists()
              and sha256_file(source) not in (copied.get(name_of(copy)), sha256_file(copy))]
    if not copies:
        return ""
    again = " ".join(f"--fresh {stem}" for stem in dict.fromkeys(copy.stem for copy in copies))
    return (f"Changed in notebooks/ since you have your copy: {', '.join(map(name_of, copies))}\n"
            f"To copy again (yours is kept): itr-study lab {again}")


def lab_arguments(first: Path, options: Sequence[str]) -> list[str]:
    """Show all files of the project, or of another folder of copies; the user's options win."""
    root = project_root() if first.is_relative_to(project_root()) else first.parent
    given = {option.partition("=")[0] for option in options}
    ours = []
    if given.isdisjoint(("--ServerApp.root_dir", "--notebook-dir")):
        ours.append(f"--ServerApp.root_dir={root}")
    if "--LabApp.default_url" not in given:
        ours.append(f"--LabApp.default_url=/lab/tree/{first.relative_to(root).as_posix()}")
    return [*ours, *options]


def lab_environment() -> dict[str, str]:
    """Make this very interpreter the kernel `python3`; our settings yield to the user's own."""
    folder = home() / "jupyter"
    make_kernelspec(folder)
    write_json(folder / "config" / "labconfig" / "default_setting_overrides.json", SETTINGS)

    def before(name: str, path: Path) -> str:
        return os.pathsep.join(filter(None, [str(path), os.environ.get(name)]))

    # Open tabs are remembered for each project: those of another would not be found here.
    workspaces = os.environ.get("JUPYTERLAB_WORKSPACES_DIR", str(folder / "workspaces"))
    return {"JUPYTER_PATH": before("JUPYTER_PATH", folder),
            "JUPYTER_CONFIG_PATH": before("JUPYTER_CONFIG_PATH", folder / "config"),
            "JUPYTERLAB_WORKSPACES_DIR": workspaces}


def open_lab(options: Sequence[str] = (), fresh: Sequence[str] = ()) -> None:
    """Open JupyterLab at the copy of notebook 00, in this very process, with which it ends."""
    first, *_ = working_copies(fresh)
    print("\n".join(filter(None, [f"Working copies, yours to change: {my_folder()}", advice()])),
          flush=True)
    os.environ.update(lab_environment())
    from jupyterlab.labapp import LabApp  # reads the variables while it is imported

    LabApp.launch_instance(lab_arguments(first, options))


# What a Makefile's targets do where there is no make: the tests and benchmarks of the project.

FAST, SLOW = "not slow and not evidence", "slow and not evidence"  # by the markers of pytest
TIERS = {"fast": (FAST,), "all": (FAST, SLOW), "evidence": ("evidence",)}


def run_tests(paths: Sequence[str], tier: str = "fast") -> int:
    """Check the style and run a tier of the tests, or those of the paths in it; the exit code."""
    check_choice("tier", tier, TIERS)
    root = _source("tests")
    code = subprocess.call([sys.executable, "-m", "ruff", "check", "."], cwd=root)
    for marks in TIERS[tier]:
        code = code or subprocess.call(
            [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-m", marks,
             *(paths or ["tests"])], cwd=root, env=os.environ | {"OMP_NUM_THREADS": "1"})
    return code


def run_benchmarks(names: Sequence[str]) -> int:
    """Run each benchmark, or those named; `soak` only by name. The first exit code but 0."""
    folder = _source("benchmarks") / "benchmarks"
    scripts = {path.stem: path for path in sorted(folder.glob("[a-z]*.py"))}
    if unknown := [name for name in names if name not in scripts]:
        raise ValueError(f"no benchmark {unknown[0]!r}; there are {', '.join(scripts)}")
    for name in names or [name for name in scripts if name != "soak"]:
        print(f"== {name}", flush=True)
        if code := subprocess.call([sys.executable, str(scripts[name])], cwd=project_root()):
            return code
    return 0


def make_site(dataset: str, folder: Path) -> int:
    """Make the site, with executed notebooks of a data set; the exit code."""
    root = _source("tools")
    absent = [name for name in ("sphinx", "myst_nb", "furo", "sphinx-mathjax-offline",
                                "sphinx_revealjs") if find_spec(name) is None]
    if absent:
        raise ValueError(f"the site needs {', '.join(absent)}: "
                         "pip install -r tools/site/requirements.lock")
    check_writable(folder, "Name another folder for the site: itr-study site --folder FOLDER")
    return subprocess.call([sys.executable, "-m", "tools.site", "--dataset", dataset,
                            "--folder", str(folder.resolve())], cwd=root)


def _source(folder: str) -> Path:
    """The project's root. Raises: ValueError where it has no such folder."""
    if not (project_root() / folder).is_dir():
        raise ValueError(f"{project_root()} has no folder {folder}: start it in a copy of the "
                         "repository")
    return project_root()
