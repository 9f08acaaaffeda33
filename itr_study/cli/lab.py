"""JupyterLab on working copies: what a reader tries out changes nothing that git keeps."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from itr_study.batch.child import make_kernelspec
from itr_study.batch.declared import find_notebooks
from itr_study.files.atomic import read_json, sha256_file, write_json
from itr_study.files.paths import home, my_folder, project_root

ORIGINS = ".origins.json"  # in my/
SETTINGS = {
    # nothing covers a view, and no site is asked about news and newer versions
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    # a notebook opened again shows its controls, without an error that their state is unknown
    "@jupyter-widgets/jupyterlab-manager:plugin": {"saveState": True},
}


def working_copies(fresh: Sequence[str] = ()) -> list[Path]:
    """Copy every notebook and every solution that `my/` does not hold yet; what it holds stays.

    Args:    fresh: notebooks to copy anew, such as "03", with their solutions; what was there is
             kept beside as `03_topk.before.ipynb`, `03_topk.before2.ipynb` …
    Returns: the copies of the notebooks, in reading order.
    Raises:  ValueError for an unknown notebook.
    """
    renewed = find_notebooks(fresh) if fresh else []
    copied = origins()
    for source, copy in sources_and_copies():
        anew = source.name in {path.name for path in renewed}
        if anew and copy.exists() and (source in renewed or not same(source, copy)):
            copy.rename(free_name(copy))
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
            copied[name_of(copy)] = sha256_file(source)
    write_json(my_folder() / ORIGINS, copied)
    return [my_folder() / path.name for path in find_notebooks()]


def sources_and_copies() -> list[tuple[Path, Path]]:
    """Every notebook and every solution there is, with the place of its copy."""
    pairs = [(path, my_folder() / path.name) for path in find_notebooks()]
    pairs += [(path.parent / "solutions" / path.name, my_folder() / "solutions" / path.name)
              for path, _ in pairs]
    return [(source, copy) for source, copy in pairs if source.is_file()]


def origins() -> dict[str, str]:
    """What was copied: name of a copy -> sha256 of its source when it was copied."""
    path = my_folder() / ORIGINS
    return read_json(path) if path.is_file() else {}


def name_of(copy: Path) -> str:
    """A copy as people write it: solutions/03_topk.ipynb."""
    return copy.relative_to(my_folder()).as_posix()


def same(one: Path, other: Path) -> bool:
    """Whether two files hold the same bytes."""
    return one.read_bytes() == other.read_bytes()


def behind() -> list[Path]:
    """Copies whose source has changed since they were made; of one that was copied before this was
    noted, whether its source is the younger file."""
    copied = origins()
    return [copy for source, copy in sources_and_copies() if copy.exists()
            and not same(source, copy) and (
                copied[name_of(copy)] != sha256_file(source) if name_of(copy) in copied
                else source.stat().st_mtime > copy.stat().st_mtime)]


def advice() -> str:
    """Which copies are behind their source, and how to renew them; empty where none is."""
    if not (copies := behind()):
        return ""
    again = " ".join(f"--fresh {stem}" for stem in dict.fromkeys(copy.stem for copy in copies))
    return (f"Changed in notebooks/ since you have your copy: {', '.join(map(name_of, copies))}\n"
            f"To copy anew (yours is kept beside): itr-study lab {again}")


def free_name(path: Path) -> Path:
    """Where a former copy goes: the first name that is not taken."""
    number = 1
    while (name := path.with_name(f"{path.stem}.before{number if number > 1 else ''}.ipynb")
           ).exists():
        number += 1
    return name


def lab_arguments(first: Path, options: Sequence[str]) -> list[str]:
    """What JupyterLab is told: all files of the project, the first notebook open. An option of the
    user's takes the place of ours: JupyterLab refuses two values."""
    root, given = project_root(), {option.partition("=")[0] for option in options}
    ours = []
    if given.isdisjoint(("--ServerApp.root_dir", "--notebook-dir")):
        ours.append(f"--ServerApp.root_dir={root}")
    if "--LabApp.default_url" not in given:
        ours.append(f"--LabApp.default_url=/lab/tree/{first.relative_to(root).as_posix()}")
    return [*ours, *options]


def lab_environment() -> dict[str, str]:
    """Variables of the server: this very interpreter is the kernel `python3`, before any other of
    that name, and our settings come before those of the installation; the user's own still win."""
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
    """JupyterLab at the working copy of notebook 00, in this very process: whoever ends the command
    ends the server."""
    first, *_ = working_copies(fresh)
    print("\n".join(filter(None, [f"Working copies, yours to change: {my_folder()}", advice()])),
          flush=True)
    os.environ.update(lab_environment())
    from jupyterlab.labapp import LabApp  # reads the variables while it is imported

    LabApp.launch_instance(lab_arguments(first, options))
