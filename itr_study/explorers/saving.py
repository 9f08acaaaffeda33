"""A table of an explorer as a file in the folder where the notebook works."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pandas as pd


def save_new(table: pd.DataFrame, name: str) -> Path:
    """Write a table as <name>-<n>.csv into the working folder, with the first n from 1 of which
    nothing is there: no file is ever replaced. Returns where it is, in full.

    Raises:  ValueError where nothing can be written there; what was begun is removed.
    """
    data = table.to_csv(index=False, lineterminator="\n").encode()
    try:
        folder = Path.cwd()
        path = next(path for n in count(1) if (path := created(folder / f"{name}-{n}.csv")))
        with undone(path):
            path.write_bytes(data)
    except OSError as error:
        raise ValueError("nothing could be saved in the folder where this notebook works "
                         f"({error.strerror or error}); go to another one in a cell, such as "
                         "import os; os.chdir('/tmp'), and save again") from error
    return path


@contextmanager
def undone(path: Path) -> Iterator[None]:
    """Inside, whatever goes wrong removes the file: half a table would be read as a whole one."""
    try:
        yield
    except BaseException:
        path.unlink()
        raise


def created(path: Path) -> Path | None:
    """The path of a new, empty file; None where something of that name is there already."""
    try:
        path.open("xb").close()
    except FileExistsError:
        return None
    return path
