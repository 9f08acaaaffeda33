"""The house: a room imports rooms on the floors below; heavy packages load where they are used."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from itr_study.lab.batch.declared import find_notebooks

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "itr_study"
# From the ground up: a room, a folder of the package, of the laboratory (`lab.`) or a file in the
# root, imports rooms on the floors below it, and neither its neighbours nor what is above.
FLOORS = (
    {"arithmetic", "checks", "digits", "progress", "files"},
    {"data"},
    {"encoders", "losses", "metrics"},
    {"features", "relevance", "models", "rerank"},
    {"evaluation", "plots"},
    {"training", "explorers"},
    {"adapters", "lab.processes"},
    {"lab.runs", "lab.label_quality", "lab.ledger"},
    {"lab.studies"},
    {"lab.batch"},
    {"lab.course"},
    {"lab.cli"},
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
LOOSE = 8  # files in the root of the package, at most
HEAVY = ("transformers", "sklearn", "torchvision", "sentence_transformers", "papermill", "timm",
         "matplotlib", "seaborn")
SOURCES = sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> tuple[str, ...]:
    """The parts of a module's name below the package: ("runs", "store"), ("runs",), ()."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def room_of(name: tuple[str, ...]) -> str:
    """The room of a module: "losses", "lab.runs"."""
    return ".".join(name[:2 if name[:1] == ("lab",) else 1])


MODULES = {name_of(path): path for path in SOURCES}


def imported(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """Modules of the package that a file imports, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            package, *parts = (node.module or "").split(".")
            if package == "itr_study":
                for alias in node.names:
                    inner = (*parts, alias.name)
                    yield inner if inner in MODULES else tuple(parts)
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            yield from (tuple(n[1:]) for n in names if n[0] == "itr_study")


@cache
def tree(path: Path) -> ast.AST:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_a_room_imports_rooms_on_the_floors_below():
    """So the library, whose rooms are all below `runs`, imports nothing of the laboratory."""
    wrong = []
    for name, path in MODULES.items():
        room = room_of(name)
        if room in ("", "__main__", "lab"):
            continue
        assert room in FLOOR, f"give {room} its place in FLOORS"
        wrong += [f"{'.'.join(name)} imports {'.'.join(other)}, which is not on a floor below"
                  for other in imported(tree(path))
                  if other and room_of(other) != room and not FLOOR[room_of(other)] < FLOOR[room]]
    assert not wrong


def test_no_module_stands_in_a_circle():
    """Whether imported at once or inside a function; a package and its own parts excepted."""
    graph = {name: {other for other in imported(tree(path))
                    if other != name and other != name[:len(other)]}
             for name, path in MODULES.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, naming the circle


def test_few_files_stand_in_the_root():
    assert len(list(PACKAGE.glob("*.py"))) <= LOOSE, "a new file belongs in a room"


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


def test_no_forbidden_code():
    """In the package, the benchmarks and the notebooks."""
    import nbformat

    codes = [(path, tree(path)) for path in SOURCES + sorted((ROOT / "benchmarks").glob("*.py"))]
    for path in find_notebooks():
        codes += [(path, ast.parse(cell.source)) for cell in nbformat.read(path, as_version=4).cells
                  if cell.cell_type == "code" and not cell.source.lstrip().startswith("%")]
    assert len(codes) > 500
    assert not [f"{path.relative_to(ROOT)}: {reason}"
                for path, code in codes for reason in forbidden(code)]


def loaded_by(statement: str) -> set[str]:
    """Top-level modules that are loaded after a statement in a fresh interpreter."""
    code = f"{statement}; import sys; print(*{{m.split('.')[0] for m in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_a_part_that_draws_nothing_loads_no_heavy_package():
    """Everything but pictures, their words, Study and the command in one interpreter: every worker
    pays."""
    parts = [".".join(("itr_study", *name)) for name in MODULES
             if name[:1] and name[0] not in ("plots", "explorers", "__main__")
             and name[:2] not in {("lab", "cli"), ("lab", "studies")}]
    loaded = loaded_by("import " + ", ".join(parts))
    assert not loaded & set(HEAVY)


def test_the_command_line_loads_neither_torch_nor_numpy():
    """So that `itr-study --help` answers at once."""
    for statement in ("import itr_study.lab.cli.app", "import itr_study.__main__"):
        loaded = loaded_by(statement)
        assert not loaded & {*HEAVY, "torch", "numpy", "pandas", "pydantic", "nbformat"}


def test_the_process_of_a_notebook_loads_no_torch():
    """Its kernel does; the process beside it would take two seconds and 300 MB for nothing."""
    loaded = loaded_by("import itr_study.lab.batch.execute, itr_study.lab.studies.needs")
    assert not loaded & {"torch", "pandas"}
