"""What a notebook says about itself, read without running it.

Its parameters cell (tagged `parameters`) holds one literal a line:

    k: int = 5  # negatives in the mean, 1 and up

and its metadata may hold, under the key `itr_study`:

    figures   names it promises on every data set, such as "03_topk__k_sweep"
    scenes_only  those of them that show pictures: never saved of photographs
    real_only    names it promises on real data only, where all its parts are there
    after     notebooks of the same batch that must end first, or "all"
    minutes   what it takes in profile `quick` of scenes on two cores, beside another one
"""

import ast
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from pydantic import Field, ValidationError, create_model

from itr_study.checks import nearest
from itr_study.files.paths import shipped_folder
from itr_study.training.settings import StrictModel, problems

TYPES = {"str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict,
         "Optional": Optional}


@dataclass(frozen=True)
class Notebook:
    """A notebook file and what it declares."""

    path: Path
    parameters: type[StrictModel]
    figures: tuple[str, ...] = ()
    after: tuple[str, ...] | str = ()
    minutes: float | None = None

    @property
    def name(self) -> str:
        """The name of its file: 03_topk."""
        return self.path.stem

    def check(self, given: Mapping[str, Any]) -> None:
        """Refuse unknown names and wrong types, all of them in one ValueError."""
        try:
            self.parameters.model_validate(dict(given))
        except ValidationError as error:
            raise ValueError(f"{self.name}: {problems(error)}") from error

    def read(self, name: str, text: str) -> Any:
        """Read what a user typed for a parameter: a Python or JSON literal, or the text itself.

        Raises:  ValueError for an unknown parameter, or if no reading fits its type.
        """
        for literal in readings(text)[:-1]:
            with suppress(ValueError):
                self.check({name: literal})
                return literal
        self.check({name: text})
        return text


def readings(text: str) -> list[Any]:
    """What a typed text may mean, likeliest first: a Python or JSON literal, else the text."""
    for read in (ast.literal_eval, json.loads):
        with suppress(ValueError, SyntaxError):
            return [read(text), text]
    return [text]


def split_values(flag: str, texts: Sequence[str]) -> dict[str, str]:
    """Split the `name=value` texts of an option.

    Raises:  ValueError for a text without "=", or a name given twice.
    """
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"{flag} takes name=value, got {text!r}")
        if name in values:
            raise ValueError(f"{flag} gives {name} twice; give it once")
        values[name] = value
    return values


def find_notebooks(names: Sequence[str] = ()) -> list[Path]:
    """Find notebooks by name (`03_topk`, `03`) or path; all in reading order without names.

    Raises:  ValueError for an unknown name, listing the names there are; where there is none.
    """
    paths = sorted(shipped_folder("notebooks").glob("[0-9]*.ipynb"))
    if not paths and not all(name.endswith(".ipynb") for name in names or [""]):
        raise ValueError(f"no notebooks in {shipped_folder('notebooks')}: start this in a copy of "
                         "the repository, or install itr-study from a wheel")
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


def read_notebook(path: Path | str) -> Notebook:
    """Read what a notebook declares.

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
    return Notebook(path, _parameters("".join(tagged[0]["source"]), path),
                    tuple(own.get("figures", ())),
                    after if isinstance(after, str) else tuple(after), own.get("minutes"))


def _parameters(source: str, path: Path) -> type[StrictModel]:
    """A record of what the lines of a parameters cell declare; an import may be among them."""
    fields = {}
    for node in ast.parse(source).body:
        line = source.splitlines()[node.lineno - 1]
        expected = f"{path}: {line!r} should read `name: type = literal  # meaning`"
        match node:
            case ast.ImportFrom(module="typing"):
                continue
            case ast.AnnAssign(target=ast.Name(name)) if node.value and " # " in line:
                about = line[node.end_col_offset:].strip(" #")
            case _:
                raise ValueError(f"{expected}, on one line")
        try:
            fields[name] = _type(node.annotation), Field(ast.literal_eval(node.value),
                                                         description=about)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{expected}: {error}") from error
    model = create_model(path.stem, __base__=StrictModel, **fields)
    model.noun = "parameter"
    try:
        model.model_validate({name: field.default for name, field in model.model_fields.items()})
    except ValidationError as error:
        raise ValueError(f"{path}: {problems(error)}") from error
    return model


def _type(kind: ast.expr) -> Any:
    """The type that an annotation means, made of TYPES."""
    match kind:
        case ast.Constant(value=None):
            return None
        case ast.BinOp(left, ast.BitOr(), right):
            return _type(left) | _type(right)
        case ast.Name(name) if name in TYPES:
            return TYPES[name]
        case ast.Subscript(value=ast.Name(name), slice=ast.Tuple(elts)) if name in TYPES:
            return TYPES[name][tuple(map(_type, elts))]
        case ast.Subscript(value=ast.Name(name), slice=inner) if name in TYPES:
            return TYPES[name][_type(inner)]
    raise ValueError(f"the type {ast.unparse(kind)!r} of a parameter should be made of "
                     f"{', '.join(TYPES)}")
