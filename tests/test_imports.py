"""Data flows one way: nothing imports to its right; heavy packages load where they are used."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from itr_study.notebooks import find_notebooks

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "itr_study"
# Left to right. A new file at the top of the package gets its place here.
LAYERS = (
    {"checks", "progress", "paths", "atomic", "reported", "arithmetic"},
    {"data"}, {"encoders"}, {"relevance"}, {"models"}, {"losses"}, {"metrics"}, {"rerank"},
    {"objectives"},
    {"training", "checkpoints", "settings", "sampling", "state", "stopping", "evaluation",
     "suite"},
    {"configs", "store", "rows", "runs", "sweeps", "worker", "claims", "paired", "rules", "plans",
     "plans_listwise", "plans_bcls", "arms", "caption_spread",
     "profiles", "gallery", "identity", "executors", "planning",
     "reproduction", "search", "audit", "batch", "notebooks", "notebook_child", "processes",
     "doctor", "evidence", "lessons", "milestones", "pair_relevance", "judges",
     "label_quality", "remaining"},
    {"plots", "widgets"},
    {"commands"},
    {"cli"},
)
PLACE = {name: place for place, names in enumerate(LAYERS) for name in names}
HEAVY = ("transformers", "sklearn", "torchvision", "sentence_transformers", "papermill", "timm",
         "matplotlib", "seaborn")
SOURCES = sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    """The part of the package a file belongs to: its folder, or its own name."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported(tree: ast.AST) -> Iterator[str]:
    """Parts of the package that a file imports, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if node.module == "itr_study":
                yield from (alias.name for alias in node.names)
            elif (node.module or "").startswith("itr_study."):
                yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            yield from (n[1] for n in names if n[0] == "itr_study" and len(n) > 1)


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_nothing_imports_to_its_right(path):
    own = name_of(path)
    if own == "__init__":
        return
    assert own in PLACE, f"give {own} its place in LAYERS"
    for other in imported(ast.parse(path.read_text())):
        if other in ("__version__", own):
            continue
        assert PLACE[other] <= PLACE[own], f"{ids(path)} imports {other}, which is to its right"


def forbidden(tree: ast.AST) -> Iterator[str]:
    """What the code base does without, with the reason."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names) if any(
                    n.name.split(".")[0] in ("pickle", "cPickle", "dill", "shelve", "marshal",
                                             "joblib") for n in names):
                yield "nothing is ever unpickled"
            case ast.ImportFrom(module="pickle" | "dill" | "shelve" | "marshal" | "joblib"):
                yield "nothing is ever unpickled"
            case ast.ImportFrom(names=[ast.alias(name="*")]):
                yield "no star imports"
            case ast.Attribute(value=ast.Name(id="torch"), attr="load" | "save"):
                yield "tensors are safetensors, not torch.load or torch.save"
            case ast.keyword(arg="allow_pickle", value=value) if not (
                    isinstance(value, ast.Constant) and value.value is False):
                yield "nothing is ever unpickled (allow_pickle)"
            case ast.Call(func=ast.Name(id="getattr"), args=[_, name, *_]) if not isinstance(
                    name, ast.Constant):
                yield "no getattr by name: look it up in a registry"
            case ast.Call(func=ast.Name(id="eval" | "exec")):
                yield "no eval"
            case ast.Name(id="NotImplementedError"):
                yield "no stubs"
            case ast.ExceptHandler(type=None):
                yield "no bare except"
            case ast.ExceptHandler(body=[ast.Pass()]):
                yield "no swallowed exceptions"


@pytest.mark.parametrize("code", [
    "import pickle", "from joblib import load", "torch.load('x')", "np.load(p, allow_pickle=True)",
    "getattr(losses, name)", "raise NotImplementedError", "from x import *", "eval(text)",
    "try:\n    f()\nexcept:\n    g()", "try:\n    f()\nexcept OSError:\n    pass"])
def test_the_guard_sees_what_it_guards_against(code):
    assert list(forbidden(ast.parse(code)))


@pytest.mark.parametrize("code", ["np.load(p, mmap_mode='r', allow_pickle=False)",
                                  "getattr(x, 'name', None)", "safetensors.torch.load_file(p)"])
def test_the_guard_lets_good_code_pass(code):
    assert not list(forbidden(ast.parse(code)))


@pytest.mark.parametrize("path", SOURCES + sorted((ROOT / "benchmarks").glob("*.py")), ids=ids)
def test_no_forbidden_code(path):
    assert not list(forbidden(ast.parse(path.read_text())))


@pytest.mark.parametrize("path", find_notebooks(), ids=ids)
def test_no_forbidden_code_in_notebooks(path):
    import nbformat

    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code" and not cell.source.lstrip().startswith("%"):
            assert not list(forbidden(ast.parse(cell.source)))


def loaded_by(statement: str) -> set[str]:
    """Top-level modules that are loaded after a statement in a fresh interpreter."""
    code = f"{statement}; import sys; print(*{{m.split('.')[0] for m in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_a_library_part_loads_no_heavy_package():
    """Everything left of plots in one interpreter: import time is paid by every worker."""
    parts = [n for layer in LAYERS[:-3] for n in sorted(layer)
             if (PACKAGE / n).is_dir() or (PACKAGE / f"{n}.py").is_file()]
    loaded = loaded_by("import " + ", ".join(f"itr_study.{n}" for n in parts))
    assert not loaded & set(HEAVY)


def test_the_command_line_loads_neither_torch_nor_numpy():
    """So that `itr-study --help` answers at once."""
    loaded = loaded_by("import itr_study.cli")
    assert not loaded & {*HEAVY, "torch", "numpy", "pandas", "pydantic", "nbformat"}
