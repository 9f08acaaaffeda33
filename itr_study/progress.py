"""One progress helper: a bar where somebody looks, a line now and then where nobody does."""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
SECONDS_BETWEEN_LINES = 30.0


def in_notebook() -> bool:
    """True inside a Jupyter kernel that somebody watches.

    A batch sets ITR_STUDY_HEADLESS=1: a bar redrawn in an executed notebook stays frozen at 0 %.
    """
    if os.environ.get("ITR_STUDY_HEADLESS") or "ipykernel" not in sys.modules:
        return False
    from IPython import get_ipython

    shell = get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def progress(iterable: Iterable[Item], label: str, total: int | None = None) -> Iterator[Item]:
    """Yield the items and show how far it is.

    Args:    label: what is being done; total: number of items where `len()` is unknown.
    Shows:   a bar in a live notebook or on a terminal, else one line on stderr every 30 s.
    """
    if total is None and hasattr(iterable, "__len__"):
        total = len(iterable)
    if in_notebook():
        from tqdm.notebook import tqdm

        yield from tqdm(iterable, desc=label, total=total)
    elif sys.stderr.isatty() and not os.environ.get("ITR_STUDY_HEADLESS"):
        from tqdm import tqdm

        yield from tqdm(iterable, desc=label, total=total, leave=False)
    else:
        yield from _with_lines(iterable, label, total)


def _with_lines(iterable: Iterable[Item], label: str, total: int | None) -> Iterator[Item]:
    start = last = time.monotonic()
    for done, item in enumerate(iterable, start=1):
        yield item
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN_LINES:
            of = f" of {total}" if total is not None else ""
            print(f"{label}: {done}{of}, {now - start:.0f} s", file=sys.stderr, flush=True)
            last = now
