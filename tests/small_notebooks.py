"""Notebooks that tests write: a parameters cell and a few code cells."""

from pathlib import Path

import nbformat

PARAMETERS = """\
profile: str = "quick"  # smoke, quick or full
k: int = 5  # negatives in the mean, 1 and up
rate: float | None = None  # step size, None = the profile's
names: list[str] = ["a"]  # losses"""


def write_notebook(path: Path, *cells: str, parameters: str = PARAMETERS, **own) -> Path:
    """A notebook of these cells; `own` becomes its metadata under `itr_study`."""
    tagged = nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})
    notebook = nbformat.v4.new_notebook(metadata={"itr_study": own})
    notebook.cells = [tagged, *map(nbformat.v4.new_code_cell, cells)]
    nbformat.write(notebook, path)
    return path
