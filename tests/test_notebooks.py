"""Notebooks: their anatomy, and that each runs from end to end and draws what it promises."""

import ast
import json
import re
import subprocess
from pathlib import Path

import nbformat
import pytest

from itr_study.batch import run_notebook
from itr_study.notebooks import find_notebooks, read_notebook
from tests.small_notebooks import PARAMETERS, write_notebook

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = find_notebooks()
ALL = NOTEBOOKS + sorted((ROOT / "notebooks" / "solutions").glob("*.ipynb"))
COMMON = {"profile", "dataset", "data", "figures"}
SECONDS = 240  # wall clock of one notebook at profile smoke, on a busy machine


def anatomy(path: Path) -> list[str]:
    """What is wrong with a notebook, in words; [] for a good one."""
    content, declared = nbformat.read(path, as_version=4), read_notebook(path)
    code = [c for c in content.cells if c.cell_type == "code"]
    first = content.cells[0]
    wrong = [f"no {name!r} parameter" for name in sorted(COMMON - set(declared.parameters))]
    wrong += [f"a # in the default of {p.name}: papermill cannot read the line"
              for p in declared.parameters.values() if "#" in repr(p.default)]
    if first.cell_type != "markdown" or not re.match(r"# \d\d .*\n[\s\S]*[Gg]oal", first.source):
        wrong.append("it should begin with a markdown cell: '# NN Title', then its goal")
    if content.metadata.get("kernelspec", {}).get("name") != "python3":
        wrong.append("the kernelspec should be python3")
    if "figures" not in content.metadata.get("itr_study", {}):
        wrong.append("metadata itr_study.figures should list the figures it promises")
    wrong += [f"{name} should begin with {path.stem}__" for name in declared.figures
              if not name.startswith(f"{path.stem}__")]
    for name in content.metadata.get("itr_study", {}).get("scenes_only", []):
        saving = [c.source for c in code if f'"{name}"' in c.source]
        if name not in declared.figures or not saving or any(
                'if dataset == "scenes":' not in source for source in saving):
            wrong.append(f"{name} shows pictures: save it only if dataset == \"scenes\"")
    for name in content.metadata.get("itr_study", {}).get("real_only", []):
        saving = [c.source for c in code if f'"{name}"' in c.source]
        if name in declared.figures or not name.startswith(f"{path.stem}__") or not saving or any(
                'if dataset != "scenes":' not in source for source in saving):
            wrong.append(f"{name} is of real data: save it only if dataset != \"scenes\"")
    for number, cell in enumerate(code):
        if cell.outputs or cell.execution_count is not None:
            wrong.append(f"code cell {number} has outputs: clear them before committing")
        wrong += [f"code cell {number}: {fault}" for fault in faults(cell.source)]
    return wrong


def faults(source: str) -> list[str]:
    """What does not belong in a cell: it belongs in the library."""
    lines = [line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))]
    found = []
    for node in ast.walk(ast.parse("\n".join(lines))):
        match node:
            case ast.ClassDef(name=name):
                found.append(f"class {name}")
            case ast.For(target=target) if "epoch" in ast.unparse(target):
                found.append("a loop over epochs")
            case ast.Call(func=ast.Attribute(attr="step" | "backward")):
                found.append("a training step")
            case ast.Call(func=ast.Name("interact" | "interactive")):
                found.append("a bare widget, which can hang a batch: use itr_study.widgets.explore")
    return found


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.stem)
def test_anatomy(path):
    assert anatomy(path) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_it_says_how_long_it_takes(path):
    """What the first batch on a machine estimates from."""
    assert 0.1 <= read_notebook(path).minutes <= 15


def status() -> str:
    """Uncommitted changes where a notebook might write."""
    done = subprocess.run(["git", "status", "--porcelain", "--", "figures", "notebooks"], cwd=ROOT,
                          capture_output=True, text=True)
    return done.stdout


@pytest.mark.notebooks
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_it_runs_and_draws_what_it_promises(path, tmp_path):
    before = status()
    given = {"profile": "smoke", "dataset": "scenes", "figures": str(tmp_path / "figures")}
    result = run_notebook(path, given, tmp_path / path.name, timeout=SECONDS, threads=1)
    log = (tmp_path / path.name).with_suffix(".log").read_text()
    assert result.status == "done", f"{result.message}\n{log[-3000:]}"
    drawn = {p.name for p in (tmp_path / "figures" / "scenes").rglob("*")}
    for name in read_notebook(path).figures:
        assert {f"{name}.png", f"{name}.csv"} <= drawn, sorted(drawn)
    assert status() == before


def good_notebook(folder: Path, **metadata) -> Path:
    """The smallest notebook that has the anatomy."""
    common = "\n".join(f'{n}: str | None = None  # {n}' for n in sorted(COMMON))
    path = write_notebook(folder / "42_small.ipynb", "1 + 1", parameters=common, figures=[])
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_markdown_cell("# 42 Small\n\n**Goal.** To be small."))
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, path)
    return path


def test_the_checks_accept_a_good_notebook_and_see_each_fault(tmp_path):
    path = good_notebook(tmp_path)
    assert anatomy(path) == []
    broken = json.loads(path.read_text())
    broken["cells"][0]["source"] = "Hello"
    broken["metadata"]["kernelspec"]["name"] = "mine"
    broken["metadata"]["itr_study"]["figures"] = ["41_other__curve"]
    broken["metadata"]["itr_study"]["scenes_only"] = ["42_small__grid"]
    broken["metadata"]["itr_study"]["real_only"] = ["42_small__people"]
    parameters = "".join(broken["cells"][1]["source"])
    broken["cells"][1]["source"] = parameters.replace("profile", "speed")
    broken["cells"][2] |= {"execution_count": 3,
                           "source": "class A: pass\nfor epoch in range(3):\n"
                                     "    optimizer.step()\ninteract(f)"}
    path.write_text(json.dumps(broken))
    wrong = "\n".join(anatomy(path))
    for fault in ("'profile'", "# NN Title", "python3", "42_small__", "clear them", "class A",
                  "42_small__grid shows pictures", "42_small__people is of real data",
                  "loop over epochs", "training step",
                  "bare widget"):
        assert fault in wrong, fault


@pytest.mark.parametrize(("source", "told"), [
    ("k = 5  # no type", "name: type = literal"),
    ("k: int = 5", "name: type = literal"),
    ("k: int = 2 + 3  # sum", "name: type = literal"),
    ("k: list[int] = [\n    1]  # two lines", "on one line"),
    ("k: int = 'five'  # word", "the default of k is not int"),
    ("k: Path = None  # path", "the type 'Path' of a parameter"),
    ("import os", "name: type = literal"),
])
def test_a_parameters_cell_that_cannot_be_read_is_refused(tmp_path, source, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        read_notebook(write_notebook(tmp_path / "nb.ipynb", parameters=source))


def test_parameters_are_read_with_type_default_and_help(tmp_path):
    found = read_notebook(write_notebook(tmp_path / "nb.ipynb", parameters=PARAMETERS)).parameters
    assert [(p.name, p.kind, p.default) for p in found.values()] == [
        ("profile", "str", "quick"), ("k", "int", 5), ("rate", "float | None", None),
        ("names", "list[str]", ["a"])]
    assert found["k"].help == "negatives in the mean, 1 and up"


@pytest.mark.parametrize(("kind", "good", "bad"), [
    ("int", [0, -1], [True, 1.0, "1", None]),
    ("float", [1, 0.5], [True, "1", float("nan"), float("inf")]),
    ("bool", [True], [0, "true"]),
    ("str | None", ["", None], [0]),
    ("list[int]", [[], [1, 2]], [[1, "2"], (1, 2)]),
    ("dict[str, float]", [{}, {"a": 1}], [{1: 1.0}, {"a": "b"}, []]),
])
def test_types(tmp_path, kind, good, bad):
    default = next(repr(v) for v in good)
    path = write_notebook(tmp_path / "nb.ipynb", parameters=f"x: {kind} = {default}  # meaning")
    parameter = read_notebook(path).parameters["x"]
    assert [parameter.accepts(v) for v in good] == [True] * len(good)
    assert [parameter.accepts(v) for v in bad] == [False] * len(bad)


def test_what_a_user_types_becomes_the_declared_type(tmp_path):
    names = read_notebook(write_notebook(tmp_path / "nb.ipynb")).parameters
    assert names["k"].read("7") == 7 and names["profile"].read("7") == "7"
    assert names["rate"].read("null") is None and names["names"].read("['b']") == ["b"]
    with pytest.raises(ValueError, match="k must be int, got 'many'"):
        names["k"].read("many")


def test_files_that_are_no_notebooks_are_named(tmp_path):
    (tmp_path / "a.ipynb").write_text("{")
    for path, told in ((tmp_path / "a.ipynb", "not a notebook"), (tmp_path / "b.ipynb", "no note")):
        with pytest.raises(ValueError, match=told):
            read_notebook(path)
    with pytest.raises(ValueError, match="no notebook 'nowhere'; there are"):
        find_notebooks(["nowhere"])
