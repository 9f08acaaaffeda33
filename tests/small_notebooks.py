"""Notebooks that tests write: a parameters cell and a few code cells; what they leave behind."""

import os
from pathlib import Path

import nbformat
import psutil

PARAMETERS = """\
profile: str = "quick"  # smoke, quick or full
k: int = 5  # negatives in the mean, 1 and up
rate: float | None = None  # step size, None: the profile's
names: list[str] = ["a"]  # losses"""
LEAVE_GRANDCHILD = """\
import subprocess, sys
code = "import subprocess, time; subprocess.Popen(['sleep', '300'], start_new_session=True)"
subprocess.Popen([sys.executable, "-c", code + "; time.sleep(300)"], start_new_session=True)
import os, time
time.sleep(1)
os.environ["DONE"] = "1"
"""


def write_notebook(path: Path, *cells: str, parameters: str = PARAMETERS, **own) -> Path:
    """A notebook of these cells; `own` becomes its metadata under `itr_study`."""
    tagged = nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})
    notebook = nbformat.v4.new_notebook(metadata={"itr_study": own})
    notebook.cells = [tagged, *map(nbformat.v4.new_code_cell, cells)]
    nbformat.write(notebook, path)
    return path


def family(home: Path) -> list[psutil.Process]:
    """Living processes that inherited this store."""
    family = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("ITR_STUDY_HOME") == str(home):
                family.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return [p for p in family if p.pid != os.getpid()]
