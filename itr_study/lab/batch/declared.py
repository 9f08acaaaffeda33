"""What a notebook says about itself, read without running it.

Its parameters cell (tagged `parameters`) holds one literal a line:

    k: int = 5  # negatives in the mean, 1 and up

and its metadata may hold, under the key `itr_study`:

    figures   names it promises on every data set, such as "03_topk__k_sweep"
    scenes_only  those of them that show pictures: never saved of photographs
    real_only    names it promises on real data only, where all its parts are there
    datasets  the data sets it is for (absent: all)
    after     notebooks of the same batch that must end first, or "all"
    minutes   what it takes in profile `quick` of scenes on two cores, beside another one
"""

import ast
import io
import json
import math
import tokenize
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from itr_study.checks import nearest
from itr_study.files.paths import shipped_folder

SCALARS = {"str": str, "int": int, "float": (int, float), "bool": bool, "list": list, "dict": dict}


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell; `kind` is its annotation as written."""

    name: str
    kind: str
    default: Any
    help: str

    def accepts(self, value: Any) -> bool:
        """True if a value may be passed on: of the declared type, and finite."""
        return _fits(ast.parse(self.kind, mode="eval").body, value)

    def read(self, text: str) -> Any:
        """The value a user typed: a Python or JSON literal, or the text itself.

        Raises:  ValueError if no reading fits the declared type.
        """
        for candidate in readings(text):
            if self.accepts(candidate):
                return candidate
        raise ValueError(f"{self.name} must be {self.kind}, got {text!r}")


@dataclass(frozen=True)
class Notebook:
    """A notebook file and what it declares."""

    path: Path
    parameters: dict[str, Parameter]
    figures: tuple[str, ...] = ()
    datasets: tuple[str, ...] | None = None
    after: tuple[str, ...] | str = ()
    minutes: float | None = None
    cells: list[dict] = field(default_factory=list, repr=False)

    @property
    def name(self) -> str:
        return self.path.stem

    def suits(self, dataset: str) -> bool:
        """Whether it is for this data set."""
        return self.datasets is None or dataset in self.datasets

    def check(self, given: Mapping[str, Any]) -> None:
        """Refuse unknown names and wrong types, all of them in one ValueError."""
        problems = []
        for name, value in given.items():
            parameter = self.parameters.get(name)
            if parameter is None:
                valid = ", ".join(f"{p.name}: {p.kind}" for p in self.parameters.values())
                problems.append(f"{self.name} has no parameter {name!r}; it has {valid or 'none'}"
                                f"{nearest(name, self.parameters)}")
            elif not parameter.accepts(value):
                problems.append(f"{self.name}: {name} must be {parameter.kind}, got {value!r}")
        if problems:
            raise ValueError("\n".join(problems))


def read_notebook(path: Path | str) -> Notebook:
    """What the notebook at `path` declares.

    Raises:  ValueError naming the file, if it is no notebook or its parameters cell is not one
             literal with a comment a line.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"no notebook at {path}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        cells = content["cells"]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a notebook: {error}") from error
    tagged = [c for c in cells if "parameters" in c.get("metadata", {}).get("tags", ())]
    if len(tagged) != 1:
        raise ValueError(f"{path}: expected one cell tagged 'parameters', found {len(tagged)}")
    own = content.get("metadata", {}).get("itr_study", {})
    after = own.get("after", ())
    return Notebook(
        path=path,
        parameters=_parameters("".join(tagged[0]["source"]), path),
        figures=tuple(own.get("figures", ())),
        datasets=tuple(own["datasets"]) if "datasets" in own else None,
        after=after if isinstance(after, str) else tuple(after),
        minutes=own.get("minutes"),
        cells=cells,
    )


def find_notebooks(names: list[str] | tuple[str, ...] = ()) -> list[Path]:
    """Paths of notebooks by name (`03_topk`, `03`) or by path; all in reading order without names.

    Raises:  ValueError for an unknown name, listing the names there are.
    """
    folder = shipped_folder("notebooks")
    paths = sorted(folder.glob("[0-9]*.ipynb"))
    if not paths:
        raise ValueError(f"no notebooks in {folder}: start this in a copy of the repository, or "
                         "install itr-study from a wheel, which has them")
    return [_find(name, paths) for name in names] if names else paths


def _find(name: str, paths: list[Path]) -> Path:
    if name.endswith(".ipynb"):
        return Path(name).resolve()
    named = [p for p in paths if p.stem == name or p.stem.startswith(f"{name}_")]
    if len(named) != 1:
        names = [path.stem for path in paths]
        raise ValueError(f"no notebook {name!r}; there are {', '.join(names)}"
                         f"{nearest(name, names)}")
    return named[0]


def _parameters(source: str, path: Path) -> dict[str, Parameter]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {t.start[0]: t.string.lstrip("# ") for t in tokens if t.type == tokenize.COMMENT}
    parameters = {}
    for node in ast.parse(source).body:
        line = source.splitlines()[node.lineno - 1]
        expected = f"{path}: {line!r} should read `name: type = literal  # meaning`"
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
            raise ValueError(expected)
        if node.lineno != node.end_lineno or not comments.get(node.lineno):
            raise ValueError(f"{expected}, on one line")
        try:
            default = ast.literal_eval(node.value)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{expected}: {error}") from error
        name, kind = node.target.id, ast.unparse(node.annotation)
        parameters[name] = Parameter(name, kind, default, comments[node.lineno])
        if not parameters[name].accepts(default):
            raise ValueError(f"{path}: the default of {name} is not {kind}: {default!r}")
    return parameters


def _fits(kind: ast.expr, value: Any) -> bool:
    """Whether a value is of an annotation made of scalars, list, dict, None and `|`."""
    match kind:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _fits(left, value) or _fits(right, value)
        case ast.Constant(value=None):
            return value is None
        case ast.Subscript(value=ast.Name(id="list"), slice=item):
            return isinstance(value, list) and all(_fits(item, v) for v in value)
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[key, item])):
            pairs = value.items() if isinstance(value, dict) else [(None, None)]
            return all(_fits(key, k) and _fits(item, v) for k, v in pairs)
        case ast.Name(id=name) if name in SCALARS:
            if isinstance(value, bool) != (name == "bool"):
                return False  # True is an int to Python, not to a reader
            finite = not isinstance(value, float) or math.isfinite(value)
            return isinstance(value, SCALARS[name]) and finite
    raise ValueError(f"the type {ast.unparse(kind)!r} of a parameter should be made of "
                     f"{', '.join(SCALARS)}, None and |")


def readings(text: str) -> list[Any]:
    """What a typed text may mean, likeliest first: a Python or JSON literal, else the text."""
    for read in (ast.literal_eval, json.loads):
        with suppress(ValueError, SyntaxError):
            return [read(text), text]
    return [text]
