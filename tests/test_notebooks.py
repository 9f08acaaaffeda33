"""Notebooks: their anatomy, and that each runs from end to end and draws what it promises."""

import ast
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Literal, get_args, get_origin

import nbformat
import papermill
import pytest
from pydantic import JsonValue
from pydantic.fields import FieldInfo

from itr_study.lab.batch.declared import find_notebooks, read_notebook
from itr_study.lab.batch.execute import run_notebook
from itr_study.lab.studies.plans import STUDIES
from itr_study.plots.figures import figure_records, inside
from tests.small_notebooks import write_notebook

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = find_notebooks()
ALL = NOTEBOOKS + sorted((ROOT / "notebooks" / "solutions").glob("*.ipynb"))
COMMON = {"profile", "dataset", "data", "data_options", "figures", "device"}
ON_A_DEVICE = {"itr.fit", "epoch_frames", "batch_log", "BackgroundRun"}  # what trains by itself
SHOWN_LINES, IMPORTED_NAMES = 6, 8  # of the cells a student reads: half are no longer; at most
# Names of functions that no notebook trains runs of: those whose rows are shown where there are
# some, those that are some runs of others, and those that keep nothing.
UNPLANNED = {"judged_arms", "second_arms", "scale_arms", "tuned_arms", "drawn_arms",
             "refusing_arms", "clean_arms"}
# planned with its paper, trained by notebook 12
BY_CLAIMS = {"margin_check_arms"}
SECONDS = 240  # wall clock of one notebook at profile smoke, on a busy machine


def anatomy(path: Path) -> list[str]:
    """What is wrong with a notebook, in words; [] for a good one."""
    content, declared = nbformat.read(path, as_version=4), read_notebook(path)
    code = [c for c in content.cells if c.cell_type == "code"]
    first = content.cells[0]
    names = declared.parameters.model_fields.keys()
    wrong = [f"no {name!r} parameter" for name in sorted(COMMON - names)]
    if papermill.inspect_notebook(path).keys() != names:
        wrong.append("papermill reads no | and no second = or # in a line of parameters")
    if first.cell_type != "markdown" or not re.match(r"# \d\d .*\n[\s\S]*[Gg]oal", first.source):
        wrong.append("it should begin with a markdown cell: '# NN Title', then its goal")
    if content.metadata.get("kernelspec", {}).get("name") != "python3":
        wrong.append("the kernelspec should be python3")
    if "figures" not in content.metadata.get("itr_study", {}):
        wrong.append("metadata itr_study.figures should list the figures it promises")
    wrong += [f"{name} should begin with {path.stem}__" for name in declared.figures
              if not name.startswith(f"{path.stem}__")]
    for name in content.metadata.get("itr_study", {}).get("scenes_only", []):
        if name not in declared.figures or not saved_with(code, name, 'only="generated"'):
            wrong.append(f"{name} shows pictures: save it with only=\"generated\"")
    for name in content.metadata.get("itr_study", {}).get("real_only", []):
        if (name in declared.figures or not name.startswith(f"{path.stem}__")
                or not saved_with(code, name, 'only="real"')):
            wrong.append(f"{name} is of real data: save it with only=\"real\"")
    for number, cell in enumerate(code):
        if cell.outputs or cell.execution_count is not None:
            wrong.append(f"code cell {number} has outputs: clear them before committing")
        wrong += [f"code cell {number}: {fault}" for fault in faults(cell.source)]
    return wrong


def saved_with(code: list, name: str, argument: str) -> bool:
    """Whether every cell that saves a figure does it with this argument, and there is one."""
    short = f'"{name.split("__")[1]}"'
    saving = [c.source for c in code if "study.save" in c.source and short in c.source]
    return bool(saving) and all(argument in source for source in saving)


def lesson(path: Path) -> list[str]:
    """What keeps a notebook from being read as a lesson, in words; [] for a good one."""
    code = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    hidden = [c for c in code if "hide-input" in c.metadata.get("tags", [])]
    shown = [c for c in code if c not in hidden and "parameters" not in c.metadata.get("tags", [])]
    wrong = [f"hide-input and jupyter.source_hidden go together: {c.source[:40]!r}" for c in code
             if (c in hidden) != bool(c.metadata.get("jupyter", {}).get("source_hidden"))]
    length = median(len(c.source.splitlines()) for c in shown)
    if length > SHOWN_LINES:
        wrong.append(f"half of the shown cells have {length} lines or more, not {SHOWN_LINES}: "
                     "the idea alone, plumbing into cells tagged hide-input or into the library")
    names = {alias.asname or alias.name for c in shown for node in ast.walk(tree_of(c.source))
             if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names}
    if len(names) > IMPORTED_NAMES:
        wrong.append(f"shown cells import {len(names)} names, not {IMPORTED_NAMES}: "
                     f"{', '.join(sorted(names))}")
    return wrong


def tree_of(source: str) -> ast.AST:
    """The code of a cell without IPython's own lines."""
    return ast.parse("\n".join(line for line in source.splitlines()
                               if not line.lstrip().startswith(("%", "!"))))


def faults(source: str) -> list[str]:
    """What does not belong in a cell: it belongs in the library."""
    found = []
    for node in ast.walk(tree_of(source)):
        match node:
            case ast.Assign(value=ast.Lambda()):
                found.append("a lambda bound to a name: write def")
            case ast.ClassDef(name=name):
                found.append(f"class {name}")
            case ast.For(target=target) if "epoch" in ast.unparse(target):
                found.append("a loop over epochs")
            case ast.For() | ast.While() if any(
                    isinstance(inner, ast.Attribute) and inner.attr in ("step", "backward")
                    for inner in ast.walk(node)):
                found.append("a loop of training steps")
            case ast.Call(func=called, keywords=given) if (
                    ast.unparse(called) in ON_A_DEVICE and "device" not in {k.arg for k in given}):
                found.append(f"{ast.unparse(called)} without the device of the parameters cell")
            case ast.Attribute(value=ast.Subscript(value=losses), attr="forward") if (
                    ast.unparse(losses) == "itr.LOSSES"):
                found.append("the forward that all losses share: show _loss")
            case ast.Call(func=ast.Name("interact" | "interactive")):
                found.append("a bare widget, which can hang a batch: "
                             "use itr_study.explorers.explore")
    return found


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.stem)
def test_anatomy(path):
    assert anatomy(path) == []


@pytest.mark.parametrize("path", ALL, ids=lambda p: str(p.relative_to(ROOT / "notebooks")))
def test_what_it_imports_is_there(path):
    """A solution took a function from a module that had gone."""
    code = [c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    for node in (node for source in code for node in ast.walk(tree_of(source))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            exec(ast.unparse(node), {})


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_it_reads_as_a_lesson(path):
    assert lesson(path) == []


def taken_again(path: Path) -> list[str]:
    """Names of parameters and imports to which a later cell gives another value: then a cell that
    is executed once more, such as that of the study, fails or means something else."""
    code = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    known, again = set(read_notebook(path).parameters.model_fields), []
    for tree in (tree_of(c.source) for c in code if "parameters" not in c.metadata.get("tags", [])):
        inner = {id(n) for scope in ast.walk(tree) if isinstance(
            scope, ast.FunctionDef | ast.comprehension) for n in ast.walk(scope)}
        again += sorted({n.id for n in ast.walk(tree) if isinstance(n, ast.Name)
                         and isinstance(n.ctx, ast.Store) and id(n) not in inner} & known)
        known |= {alias.asname or alias.name for n in ast.walk(tree)
                  if isinstance(n, ast.Import | ast.ImportFrom) for alias in n.names}
    return again


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.stem)
def test_its_cells_can_be_executed_again(path):
    """`counted`, imported to count seeds, became a table: the square drew once and never again."""
    assert taken_again(path) == []


def cell_type(kind: Any) -> str:
    """How a parameters cell writes the type of a field, so that papermill can read it."""
    outer, inner = get_origin(kind), get_args(kind)
    if outer is Literal:
        return "str"
    if outer in (list, dict) and JsonValue not in inner:
        return f"{outer.__name__}[{', '.join(map(cell_type, inner))}]"
    return (outer or kind).__name__ if outer in (None, dict) else cell_type(inner[0])


def cell_line(name: str, field: FieldInfo) -> str:
    """The line of a parameters cell that declares a field."""
    kind, default = cell_type(field.annotation), json.dumps(field.default) if isinstance(
        field.default, str | int) else "None"
    kind = f"Optional[{kind}]" if default == "None" else kind
    return f"{name}: {kind} = {default}  # {field.description}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_its_cell_is_its_class_and_papermill_can_read_it(path):
    """Else a change in the cell, or a `-p` of a batch, would change nothing."""
    lines = {f"{name}: {found['inferred_type_name']} = {found['default']}  # {found['help']}"
             for name, found in papermill.inspect_notebook(path).items()}
    assert lines == {cell_line(*field) for field in STUDIES[path.stem][0].model_fields.items()}
    source = next(c.source for c in nbformat.read(path, as_version=4).cells
                  if "parameters" in c.metadata.get("tags", []))
    first = source.partition("# more knobs\n")[0].splitlines()
    assert len([line for line in first if ": " in line]) == 5  # those that a reader turns first


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_its_runs_are_planned_and_those_planned_are_its(path):
    """Those of makers that it names, or of all ARMS."""
    code = ast.parse("\n".join(c.source for c in nbformat.read(path, as_version=4).cells
                               if c.cell_type == "code"))
    used = {node.attr if isinstance(node, ast.Attribute) else node.id for node in ast.walk(code)
            if isinstance(node, ast.Attribute | ast.Name)}
    named = {name for name in used if name.endswith("_arms")} - UNPLANNED
    planned = {make.__name__ for make in STUDIES[path.stem][1]} - BY_CLAIMS
    assert named <= planned if "ARMS" in used else named == planned


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_it_says_how_long_it_takes(path):
    """What the first batch on a machine estimates from."""
    assert 0.1 <= read_notebook(path).minutes <= 15


LINK, CODE = re.compile(r"\]\(([^)#\s]+)"), re.compile(r"```.*?```|`.*?`", re.DOTALL)
PAGES = [ROOT / "README.md", *ALL]


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_its_links_lead_somewhere(path):
    text = path.read_text() if path.suffix == ".md" else "\n".join(
        cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown")
    links = [link for link in LINK.findall(CODE.sub("", text)) if "://" not in link]
    assert links and not [link for link in links if not (path.parent / link).exists()]


def test_notebook_00_and_the_readme_lead_to_every_notebook():
    for path, folder in ((ROOT / "README.md", "notebooks/"), (NOTEBOOKS[0], "")):
        text = path.read_text()
        for notebook in NOTEBOOKS:
            assert notebook == path or f"]({folder}{notebook.name})" in text, notebook


def status() -> str:
    """Uncommitted changes where a notebook might write."""
    done = subprocess.run(["git", "status", "--porcelain", "--", "figures", "notebooks"], cwd=ROOT,
                          capture_output=True, text=True)
    return done.stdout


@pytest.mark.notebooks
@pytest.mark.parametrize("path", [
    path if path.name[:2] in ("00", "03") else pytest.param(path, marks=pytest.mark.slow)
    for path in NOTEBOOKS], ids=lambda p: p.stem)
def test_it_runs_and_draws_what_it_promises(path, tmp_path):
    before = status()
    given = {"profile": "smoke", "dataset": "scenes", "figures": str(tmp_path / "figures")}
    result = run_notebook(path, given, tmp_path / path.name, timeout=SECONDS, threads=1)
    log = (tmp_path / path.name).with_suffix(".log").read_text()
    assert result.status == "done", f"{result.message}\n{log[-3000:]}"
    kept = {p.stem for p in (tmp_path / "figures").glob("*/*__*.json")}
    assert set(read_notebook(path).figures) <= kept, sorted(kept)
    figures = tmp_path / "figures"
    figure_records(inside(figures), figures)  # raises where one lacks its picture or its table
    assert status() == before


def lists_of(path: Path, change: Callable[[list], list]) -> dict[str, list]:
    """The lists of a notebook's parameters at profile smoke, changed where its class takes it."""
    parameters = STUDIES[path.stem][0]
    given: dict[str, list] = {}
    for name, values in vars(parameters.of(profile="smoke")).items():
        if isinstance(values, list) and change(values) != values:
            try:
                parameters.of(profile="smoke", **given, **{name: change(values)})
            except ValueError:  # it says so before anything is trained
                continue
            given[name] = change(values)
    return given


CHANGES = {"first": lambda values: values[:1], "last": lambda values: values[-1:],
           "reversed": lambda values: values[::-1]}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_its_runs_can_be_listed_whatever_a_list_holds(path, change):
    parameters, makers = STUDIES[path.stem]
    given = parameters.of(profile="smoke", **lists_of(path, CHANGES[change]))
    for make in makers:
        labels = [(run.label, run.config.seed) for run in make("scenes", given)]
        assert len(set(labels)) == len(labels)


@pytest.mark.slow
@pytest.mark.notebooks
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if lists_of(path, CHANGES["last"])],
                         ids=lambda p: p.stem)
def test_its_sections_do_with_what_its_class_takes(path, change, tmp_path):
    """Each list of its parameters with one item, or turned round: nothing dies in the middle."""
    given = lists_of(path, CHANGES[change]) | {
        "profile": "smoke", "dataset": "scenes", "figures": str(tmp_path / "figures")}
    result = run_notebook(path, given, tmp_path / path.name, timeout=2 * SECONDS, threads=1)
    log = (tmp_path / path.name).with_suffix(".log").read_text()
    assert result.status == "done", f"{result.message}\n{log[-3000:]}"


def good_notebook(folder: Path, **metadata) -> Path:
    """The smallest notebook that has the anatomy."""
    common = "\n".join(f'{n}: Optional[str] = None  # {n}' for n in sorted(COMMON))
    path = write_notebook(folder / "42_small.ipynb", "1 + 1", parameters=common, figures=[])
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_markdown_cell("# 42 Small\n\n**Goal.** To be small."))
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3",
                                       "language": "python"}
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
                           "source": "class A: pass\ndouble = lambda x: 2 * x\n"
                                     "for epoch in range(3):\n    pass\n"
                                     "while True:\n    optimizer.step()\ninteract(f)\n"
                                     "itr.fit(model, loss, data)\n"
                                     "show(itr.LOSSES[name].forward)"}
    path.write_text(json.dumps(broken))
    wrong = "\n".join(anatomy(path))
    for fault in ("'profile'", "# NN Title", "python3", "42_small__", "clear them", "class A",
                  "42_small__grid shows pictures", "42_small__people is of real data",
                  "loop over epochs", "loop of training steps",
                  "bare widget", "a lambda bound", "itr.fit without the device",
                  "that all losses share"):
        assert fault in wrong, fault


def test_a_lesson_hides_its_plumbing(tmp_path):
    path = good_notebook(tmp_path)
    assert lesson(path) == []
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[2].source = "\n".join(f"from a import b{n}" for n in range(9))
    nbformat.write(notebook, path)
    wrong = "\n".join(lesson(path))
    assert "have 9 lines or more" in wrong and "import 9 names" in wrong
    notebook.cells[2].metadata["tags"] = ["hide-input"]
    notebook.cells.append(nbformat.v4.new_code_cell("1 + 1"))
    nbformat.write(notebook, path)
    assert lesson(path) == ["hide-input and jupyter.source_hidden go together: "
                            "'from a import b0\\nfrom a import b1\\nfrom a'"]
