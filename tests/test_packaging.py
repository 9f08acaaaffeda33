"""pyproject.toml, the lock, environment.yml and the Makefile name the same things."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import typer
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from itr_study.lab.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
CONDA_NAMES = {"pytorch": "torch", "matplotlib-base": "matplotlib"}
CONDA_TOOLS = {"python", "pip", "setuptools"}
PYTHONS = ("3.11.0", "3.12.0", "3.13.0", "3.14.0")  # promised: those that torch has wheels for
UNPINNED = {("aiohttp", "3.12")}  # wanted by papermill on that Python alone: pip chooses it


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def wanted() -> dict[str, Requirement]:
    """Requirements of the package with the extras that `make` installs."""
    extras = project()["optional-dependencies"]
    lines = [*project()["dependencies"], *(
        line for name in ("plots", "lab", "offline", "adapters", "dev") for line in extras[name])]
    return {canonicalize_name(r.name): r for r in map(Requirement, lines)}


def locked() -> dict[str, str]:
    lines = [line for line in (ROOT / "requirements.lock").read_text().splitlines()
             if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9a-z.]+", line) for line in lines), lines
    return dict(line.split("==") for line in lines)


def conda() -> tuple[dict[str, str], list[str]]:
    """(pinned conda packages under their package-index names, lines of the pip part)."""
    lines = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    pins = [re.fullmatch(r"([a-z0-9-]+)(?:[=>]+([\d.]+))?", line).groups()
            for line in lines if isinstance(line, str)]
    pip = next(line["pip"] for line in lines if isinstance(line, dict))
    return {CONDA_NAMES.get(n, n): v for n, v in pins if n not in CONDA_TOOLS}, pip


def test_the_lock_satisfies_the_project():
    for name, requirement in wanted().items():
        assert name in locked(), f"{name} is in pyproject.toml but not in requirements.lock"
        assert requirement.specifier.contains(locked()[name]), (name, locked()[name])


def test_the_site_is_pinned_apart():
    """So that `make venv` does not wait for it; no package is pinned twice."""
    lines = (ROOT / "tools" / "site" / "requirements.lock").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    for line in project()["optional-dependencies"]["site"]:
        requirement = Requirement(line)
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), line
    assert not set(pins) & set(locked())


def test_every_pin_installs_on_every_python_that_is_promised():
    """pip refuses a whole lock for one pin that asks for more, such as Python 3.11.5."""
    wrong = []
    for name, pin in locked().items():
        found = metadata.metadata(name)
        if Version(found["Version"]).public != pin:
            wrong.append(f"{name}: {found['Version']} is installed; for {pin} run: make venv")
        admitted = SpecifierSet(found.get("Requires-Python", ""))
        wrong += [f"{name} {found['Version']} cannot be installed on Python {python}: it needs "
                  f"{admitted}" for python in PYTHONS if python not in admitted]
    assert not wrong, "\n".join(wrong)


def needed_on(python: str) -> set[str]:
    """Names of all packages that the wanted ones bring on a version of Python."""
    here = {"python_full_version": python, "python_version": python.rpartition(".")[0]}
    needed, queue = set(), list(wanted().values())
    while queue:
        requirement = queue.pop()
        name = canonicalize_name(requirement.name)
        extras = {"", *requirement.extras}
        if (name, *extras) in needed:
            continue
        needed.add((name, *extras))
        for line in metadata.requires(name) or []:
            inner = Requirement(line)
            if re.match(r"nvidia-|cuda|triton", inner.name):
                continue  # a CUDA build of torch brings these itself, at versions of its own
            if (inner.name, here["python_version"]) in UNPINNED:
                continue
            if inner.marker is None or any(inner.marker.evaluate({**here, "extra": e})
                                           for e in extras):
                queue.append(inner)
    return {name for name, *_ in needed}


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_is_complete_and_has_nothing_it_does_not_need(python):
    """Everything that a locked package needs is locked; nothing else is (on the oldest Python)."""
    assert needed_on(python) <= set(locked())
    assert python != PYTHONS[0] or needed_on(python) == set(locked())


def test_the_lock_brings_no_cuda_packages_and_no_torchvision():
    assert locked()["torch"] == "2.13.0"
    assert not [n for n in locked() if re.match(r"nvidia|cuda|triton|torchvision|timm", n)]


def test_conda_names_the_same_packages_at_the_same_versions():
    pins, pip = conda()
    index_only = {canonicalize_name(line.split("==")[0]): line.split("==")[1]
                  for line in pip if line != "-e ."}
    assert "-e ." in pip
    assert set(pins) | set(index_only) == set(wanted()) and not set(pins) & set(index_only)
    for name, pin in pins.items():
        depth = len(pin.split("."))
        assert ".".join(locked()[name].split(".")[:depth]) == pin, (name, pin, locked()[name])
    assert index_only == {name: locked()[name] for name in index_only}
    # pip must have nothing left to bring when it comes to the packages of the index
    for name in index_only:
        inner = {canonicalize_name(Requirement(line).name) for line in metadata.requires(name) or []
                 if "extra ==" not in line}
        assert inner <= set(pins), f"{name} would make pip install {inner - set(pins)}"


def test_the_oldest_python_is_the_same_everywhere():
    oldest = project()["requires-python"].removeprefix(">=")
    assert f"{oldest}.0" == PYTHONS[0]
    assert f"Python {oldest} or newer" in (ROOT / "README.md").read_text()
    assert f"({oldest} or newer)" in (ROOT / "Makefile").read_text()
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]
    assert ruff["target-version"] == f"py{oldest.replace('.', '')}"


def make(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(["make", *arguments], cwd=ROOT, capture_output=True, text=True,
                          env={**os.environ, "MAKEFLAGS": "", **environment}, timeout=60)


needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@needs_make
@pytest.mark.parametrize("target", ["figures", "test", "test-all", "check-evidence", "lab",
                                    "site", "bench", "soak"])
def test_every_target_makes_the_environment_first(target, tmp_path):
    told = make("-n", target, f"VENV={tmp_path / 'env'}", f"PYTHON={sys.executable}").stdout
    install, use = told.find("install -r requirements.lock"), told.find(f"{tmp_path}/env/bin/", )
    assert 0 <= use and 0 <= install
    assert told.find("install --no-deps") < told.rfind(f"{tmp_path}/env/bin/")
    assert "index-url" not in told


def test_the_container_installs_what_make_installs_and_starts_the_command():
    """By its text: there is no Docker here."""
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", "").splitlines()
    steps = [line.partition(" ") for line in lines if not line.startswith("#")]
    (image,) = (rest for name, _, rest in steps if name == "FROM")
    assert f"{image.removeprefix('python:').removesuffix('-slim')}.0" in PYTHONS
    places = [next(place for place, (_, _, rest) in enumerate(steps) if part in rest) for part in (
        "requirements.lock .", "-r requirements.lock", ". .", "-e .")]
    assert places == sorted(places)
    made = (ROOT / "Makefile").read_text()
    for shared in ("install --no-deps --no-build-isolation -e .",
                   "grep '^torch==' requirements.lock"):
        assert shared in made and shared in "\n".join(lines), shared
    (folder,) = (rest for name, _, rest in steps if name == "WORKDIR")
    (user,) = (rest for name, _, rest in steps if name == "USER")
    (command,) = (json.loads(rest) for name, _, rest in steps if name == "CMD")
    typer.main.get_command(app).commands[command[1]].make_context(command[1], command[2:])
    assert command[0] in project()["scripts"]
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {".git", ".venv", ".itr_study"} <= set(ignored)
    opened = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert (ROOT / ".devcontainer" / opened["build"]["dockerfile"]).samefile(ROOT / "Dockerfile")
    assert opened["workspaceFolder"] == folder and f"target={folder}," in opened["workspaceMount"]
    assert opened["remoteUser"] == user and f"useradd --create-home {user}" in "\n".join(lines)


@needs_make
def test_variables_reach_the_commands(tmp_path):
    env = (f"VENV={tmp_path / 'env'}", f"PYTHON={sys.executable}")
    assert "--dataset scenes --profile quick" in make("-n", "figures", *env).stdout
    told = make("-n", "figures", *env, "DATASET=flickr8k", "DATA=../some data", "WORKERS=3",
                "ONLY=03_topk", "DEVICE=cuda:1", "PUBLISH=1", "FRESH=1").stdout.replace("\\\n", "")
    assert re.search(r'reproduce 03_topk --dataset flickr8k --profile full\s+--workers 3 '
                     r'--device cuda:1\s+--data "../some data" --publish --fresh --yes', told)
    told = make("-n", "test", *env, "TORCH_INDEX=https://example.org/cu").stdout
    assert "--index-url https://example.org/cu torch==2.13.0" in told


@needs_make
def test_a_python_that_will_not_do_is_refused_with_the_remedy(tmp_path):
    """A stand-in interpreter that is too old, or has no venv module."""
    for word, remedy in (("version_info", "needs Python 3.11"), ("ensurepip", "python3-venv")):
        python = tmp_path / "python"
        python.write_text(f'#!/bin/sh\ncase "$*" in *{word}*) exit 1;; esac\n')
        python.chmod(0o755)
        told = make("venv", f"VENV={tmp_path / 'env'}", f"PYTHON={python}")
        assert told.returncode != 0 and remedy in told.stdout, told
        assert not (tmp_path / "env").exists()


@needs_make
@pytest.mark.parametrize(("pip", "stages"), [("true", 5), ("false", 2)])
def test_each_stage_of_an_installation_is_said_when_it_begins(tmp_path, pip, stages):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    made = make("venv", f"VENV={tmp_path}", f"PIP={pip}", f"PYTHON={sys.executable}")
    said = re.findall(r"^  \d+ s: (\w+)", made.stdout, re.M)
    assert said == ["environment", "torch", "the", "itr_study", "installed"][:stages]
    assert (made.returncode == 0) == (tmp_path / ".installed").exists() == (pip == "true")


@pytest.mark.slow
def test_real_data_tests_may_not_be_skipped_where_data_are_required(tmp_path):
    """The hook behind .ci/run: a skip for want of data turns red, other skips do not."""
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_skips.py").write_text(
        "import pytest\ndef test_data(real_data): pass\n"
        "def test_other(): pytest.skip('no GPU')\n")
    plain = {k: v for k, v in os.environ.items()
             if not k.startswith(("ITR_", "PYTEST_")) or k == "ITR_STUDY_HOME"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]

    def run(**more: str) -> tuple[int, str]:
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path,
                              env={**plain, **more}, timeout=120)
        return done.returncode, done.stdout

    code, told = run()
    assert code == 0 and "2 skipped" in told
    code, told = run(ITR_REQUIRE_DATA="1")
    assert code == 1 and re.search(r"1 skipped, 1 error|1 failed, 1 skipped", told), told
    assert run(ITR_REQUIRE_DATA="1", ITR_DATA=str(tmp_path))[0] == 0


def test_ci_runs_all_tests_and_requires_the_data():
    script = (ROOT / ".ci" / "run").read_text()
    assert os.access(ROOT / ".ci" / "run", os.X_OK) and "set -euo pipefail" in script
    assert "make test-all\nmake check-evidence\n" in script and "ITR_REQUIRE_DATA=1" in script
    assert "tools/site/requirements.lock" in script and "ITR_REQUIRE_SITE=1" in script
    assert "-m tests.golden.simulate avx2" in script and '/python" -m mypy\n' in script


def test_ci_refuses_a_history_or_a_package_that_is_too_large(tmp_path):
    """And a package of too many lines or files; in a repository whose `make` does nothing."""
    (tmp_path / ".ci").mkdir()
    for name in ("run", "budget.py"):
        shutil.copy(ROOT / ".ci" / name, tmp_path / ".ci")
    (tmp_path / "Makefile").write_text("test-all check-evidence venv:\n\t@true\n")
    (tmp_path / "apt-get").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "apt-get").chmod(0o755)
    (tmp_path / "picture.png").write_bytes(os.urandom(2_500_000))
    (tmp_path / "itr_study").mkdir()
    (tmp_path / "itr_study" / "two.py").write_text("a = 1\nb = 2\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "None"], ["add", "."],
                    ["commit", "-qm", "One"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)

    def said(**limits: str) -> tuple[int, str]:
        here = {name: value for name, value in os.environ.items() if name != "CI_BASE"}
        done = subprocess.run(
            [tmp_path / ".ci" / "run"], cwd=tmp_path, capture_output=True, text=True, timeout=60,
            env={**here, "PATH": f"{tmp_path}:{os.environ['PATH']}", **limits})
        return done.returncode, done.stdout + done.stderr

    code, told = said(GROWTH_LIMIT_MB="2")
    assert code == 1 and "2.5 MB of them new (at most 2)" in told
    (tmp_path / "picture.png").unlink()  # what is gone from the tree stays in the history
    subprocess.run([*git, "commit", "-qam", "Two"], cwd=tmp_path, check=True)
    assert "A clone would" not in said(GROWTH_LIMIT_MB="2")[1] + said()[1]
    assert "2.5 MB of them new" in said(GROWTH_LIMIT_MB="2", CI_BASE="HEAD~2")[1]
    code, told = said(CLONE_LIMIT_MB="2")
    assert code == 1 and "A clone would hold 2.5 MB of history (at most 2)" in told
    assert "5 tracked files; 2.5 MB of history, 0.0 MB of them since" in told
    for limits in ({"LINES_LIMIT": "1"}, {"FILES_LIMIT": "0"}, {"IMPORTS_LIMIT": "-1"}):
        code, told = said(**limits)
        (name,) = (limit.removesuffix("_LIMIT").lower() for limit in limits)
        assert code == 1 and "itr_study/: 2 lines (at most" in told
        assert f"more {name} than the budget" in told


def test_citations_name_the_four_papers():
    bib = (ROOT / "references.bib").read_text()
    assert re.findall(r"^@\w+\{(\w+),", bib, re.M) == ["topk", "listwise", "bcls", "dvse"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert len(citation["references"]) == 4 and citation["license"] == project()["license"]
    assert Version(project()["version"]) == Version(citation["version"])
    assert "itr_study authors" in (ROOT / "LICENSE").read_text()


WITHOUT_EXTRAS = """
import sys
for name in sys.argv[1:]:
    sys.modules[name] = None
import torch
import itr_study as itr
for name in itr.__all__:
    if name not in ("sweep", "Study", "rows", "curve", "arrays"):
        getattr(itr, name)
print(itr.LOSSES["topk"](k=1)(torch.eye(3)).item())
try:
    itr.rows
except ModuleNotFoundError as error:
    print(error)
"""


def test_the_library_needs_no_extra():
    """`pip install itr-study` alone: losses, models, metrics, training; the rest says what to
    install."""
    extras = project()["optional-dependencies"]
    names = {Requirement(line).name
             for extra in ("plots", "lab", "offline") for line in extras[extra]}
    modules = {"scikit-learn": "sklearn"}
    done = subprocess.run([sys.executable, "-c", WITHOUT_EXTRAS, "IPython",
                           *(modules.get(n, n.replace("-", "_")) for n in sorted(names))],
                          capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[0] == "0.0", done.stderr
    assert "itr_study.rows needs pyarrow: pip install 'itr-study[plots,lab]'" in done.stdout


@pytest.mark.slow
def test_the_wheel_has_notebooks_and_evidence(tmp_path):
    """So that `itr-study lab` and `reproduce` work from any folder."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True,
                             check=True).stdout.split("\0")
    for name in filter(None, tracked):
        if name.startswith("figures/common/") or not name.startswith(("figures/", "tests/")):
            (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, tmp_path / "source" / name)
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps",
                    "--no-build-isolation", "-w", tmp_path, tmp_path / "source"], check=True)
    wheel, = tmp_path.glob("*.whl")
    inside = {name.partition("/data/share/itr_study/")[2] or name
              for name in zipfile.ZipFile(wheel).namelist()}
    wanted = [name for name in tracked
              if name.startswith(("notebooks/", "itr_study/", "figures/common/"))
              or re.match(r"evidence/(\w+/(packs/)?[^/]+)$", name)]
    assert not sorted(set(wanted) - inside)
    # Installed elsewhere, with the packages of this environment: outside a checkout.
    python = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)

    def run(*arguments: str) -> str:
        return subprocess.run(
            [python, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True, env={
                name: value for name, value in os.environ.items() if name != "PYTHONPATH"}).stdout

    own = Path(run("-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    (own / "others.pth").write_text(sysconfig.get_path("purelib"))
    run("-m", "pip", "install", "-q", "--no-deps", "--no-index", str(wheel))
    assert str(own) in run("-c", "import itr_study; print(itr_study.__file__)")
    assert "15 notebooks" in run("-m", "itr_study", "student", "class")
    assert run("-c", "import itr_study; print(itr_study.check_answer('02.3', 99))").startswith(
        "02.3: not yet")
    copies = run("-c", "from itr_study.lab.cli import lab; print(lab.working_copies())")
    assert str(tmp_path / "my" / "00_start_here.ipynb") in copies
