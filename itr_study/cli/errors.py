"""Errors and warnings in the words of who uses the command. Loads nothing heavy."""

import os
import sys
import warnings
from errno import EACCES, EEXIST, ENAMETOOLONG, ENOTDIR, EPERM, EROFS
from pathlib import Path

import typer

from itr_study.files.paths import HOME_REMEDY, home

NOT_WRITABLE = (EACCES, EEXIST, ENAMETOOLONG, ENOTDIR, EPERM, EROFS)


class App(typer.Typer):
    """Prints an expected error as one message, and so a warning; a traceback is for errors of the
    program."""

    def __call__(self, *args, **options):
        if os.environ.get("ITR_STUDY_DEBUG"):
            return super().__call__(*args, **options)
        try:
            with warnings.catch_warnings():
                warnings.showwarning = warn
                return super().__call__(*args, **options)
        except (ValueError, OSError) as error:
            print(f"error: {plain(error)}", file=sys.stderr)
            sys.exit(2)


def warn(message: Warning | str, *_where: object) -> None:
    """Print a warning without the line of code that gave it."""
    print(f"warning: {message}", file=sys.stderr)


def plain(error: Exception) -> str:
    """An error's message without what only programmers need."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or not isinstance(error, pydantic.ValidationError):
        return str(error) + remedy(error)
    from itr_study.training.settings import problems  # where records that pydantic checks stand

    return problems(error)


def remedy(error: Exception) -> str:
    """What to do about a home that cannot be written; empty for other errors."""
    if not (isinstance(error, OSError) and error.filename):
        return ""
    if error.errno not in NOT_WRITABLE and home().exists():
        return ""
    if not Path(os.fsdecode(error.filename)).is_relative_to(home()):
        return ""
    return f"\n{HOME_REMEDY}"
