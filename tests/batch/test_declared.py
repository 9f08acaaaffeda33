"""What a notebook's parameters cell says."""

import re
from pathlib import Path

import pytest

from itr_study.lab.batch import declared
from itr_study.lab.batch.declared import find_notebooks, read_notebook, readings
from tests.small_notebooks import PARAMETERS, write_notebook


@pytest.mark.parametrize(("source", "told"), [
    ("k = 5  # no type", "name: type = literal"),
    ("k: int = 5", "name: type = literal"),
    ("k: int = 2 + 3  # sum", "name: type = literal"),
    ("k: list[int] = [\n    1]  # two lines", "on one line"),
    ("k: int = 'five'  # word", "k must be a valid integer, got 'five'"),
    ("k: Path = None  # path", "the type 'Path' of a parameter"),
    ("import os", "name: type = literal"),
])
def test_a_parameters_cell_that_cannot_be_read_is_refused(tmp_path, source, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        read_notebook(write_notebook(tmp_path / "nb.ipynb", parameters=source))


def test_parameters_are_read_with_type_default_and_help(tmp_path):
    found = read_notebook(write_notebook(tmp_path / "nb.ipynb", parameters=PARAMETERS)).parameters
    assert [(name, field.annotation, field.default)
            for name, field in found.model_fields.items()] == [
        ("profile", str, "quick"), ("k", int, 5), ("rate", float | None, None),
        ("names", list[str], ["a"])]
    assert found.model_fields["k"].description == "negatives in the mean, 1 and up"


@pytest.mark.parametrize(("kind", "good", "bad"), [
    ("int", [0, -1], [True, 1.0, "1", None]),
    ("float", [1, 0.5], [True, "1", float("nan"), float("inf")]),
    ("bool", [True], [0, "true"]),
    ("dict[str, bool | int]", [{"a": True, "b": 2}, {}], [{"a": 0.5}, {1: True}]),
    ("str | None", ["", None], [0]), ("Optional[dict]", [{"a": True}, None], ["a"]),
    ("list[int]", [[], [1, 2]], [[1, "2"], (1, 2)]),
    ("dict[str, float]", [{}, {"a": 1}], [{1: 1.0}, {"a": "b"}, []]),
])
def test_types(tmp_path, kind, good, bad):
    default = next(repr(v) for v in good)
    path = write_notebook(tmp_path / "nb.ipynb", parameters=f"x: {kind} = {default}  # meaning")
    notebook = read_notebook(path)
    for value in good:
        notebook.check({"x": value})
    for value in bad:
        with pytest.raises(ValueError, match="^nb: x.* must be a"):
            notebook.check({"x": value})


def test_what_a_user_types_becomes_the_declared_type(tmp_path):
    notebook = read_notebook(write_notebook(tmp_path / "nb.ipynb"))
    assert notebook.read("k", "7") == 7 and notebook.read("profile", "7") == "7"
    assert readings("true")[0] is True and readings('{"a": true}')[0] == {"a": True}
    assert notebook.read("rate", "null") is None and notebook.read("names", "['b']") == ["b"]
    with pytest.raises(ValueError, match="k must be a valid integer, got 'many'"):
        notebook.read("k", "many")


def test_files_that_are_no_notebooks_are_named(tmp_path):
    (tmp_path / "a.ipynb").write_text("{")
    for path, told in ((tmp_path / "a.ipynb", "not a notebook"), (tmp_path / "b.ipynb", "no note")):
        with pytest.raises(ValueError, match=told):
            read_notebook(path)
    with pytest.raises(ValueError, match="no notebook 'nowhere'; there are"):
        find_notebooks(["nowhere"])


def test_an_installation_without_notebooks_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(declared, "shipped_folder", lambda name: tmp_path / name)
    for names in ((), ["00_start_here"]):
        with pytest.raises(ValueError, match="no notebooks in .*: start this in a copy"):
            find_notebooks(names)
    assert find_notebooks(["mine.ipynb"]) == [Path("mine.ipynb").resolve()]
