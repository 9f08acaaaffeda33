"""How far something is: a bar where somebody looks, a line now and then where nobody does."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from shutil import get_terminal_size
from textwrap import fill
from typing import TypeVar

Item = TypeVar("Item")
Show = Callable[[float, str], None]  # (how many are done, a note): shows it
SECONDS_BETWEEN_LINES = 30.0
SOON = 3.0  # seconds: what takes less is not counted by `counting_if_slow`
LETTERS = 100  # of a line in a cell's output, in a window of 1,280
BAR = "{desc}: {percentage:3.0f} %|{bar}| {remaining} left{postfix}"


def in_lines(text: str) -> str:
    """The text in lines that a notebook shows whole: JupyterLab would break them within a word."""
    return "\n".join(fill(line, LETTERS, break_long_words=False, break_on_hyphens=False)
                     for line in text.splitlines())


def in_notebook() -> bool:
    """True inside a Jupyter kernel that somebody watches.

    A batch sets ITR_STUDY_HEADLESS=1: a bar redrawn in an executed notebook stays frozen at 0 %.
    """
    if os.environ.get("ITR_STUDY_HEADLESS") or "ipykernel" not in sys.modules:
        return False
    from IPython import get_ipython

    shell = get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


class OutputLine:
    """A line of a cell's output that is written over, as on a terminal.

    It is text: a widget that is saved with its notebook is missed when that is opened again.
    """

    def __init__(self) -> None:
        from IPython.display import Pretty, display

        self.text, self.handle = Pretty, display(Pretty(""), display_id=True)

    def write(self, line: str) -> None:
        """Replace the line."""
        self.handle.update(self.text(line.strip("\r\n ")))

    def flush(self) -> None:
        """Nothing waits."""


@contextmanager
def counting(label: str, total: int | None, unit: str = "", elapsed: float = 0.0) -> Iterator[Show]:
    """Give a function that shows how many of `total` are done, and a note.

    Args:    label: what is being done; unit: of what, such as "epochs"; elapsed: seconds that it
             has been going on already.
    Shows:   a bar with the time left in a live notebook or on a terminal, gone at the end; else
             one line on stderr every 30 s; nothing where there is nothing to do.
    """
    unit = f" {unit}" if unit else ""
    watched = sys.stderr.isatty() and not os.environ.get("ITR_STUDY_HEADLESS")
    # a thread has no cell of its own: its bar would stand below whichever is being run
    cell = in_notebook() and threading.current_thread() is threading.main_thread()
    if total == 0:
        yield lambda done, note="": None
    elif cell or watched:
        from tqdm import tqdm

        size = get_terminal_size()  # 80 x 24 where a terminal says 0 x 0: tqdm would draw nothing
        place = ({"file": OutputLine(), "ncols": 100, "ascii": False} if cell else
                 {"ncols": size.columns - 1, "nrows": size.lines})
        with tqdm(desc=label, total=total, leave=False, bar_format=BAR if total else None,
                  **place) as bar:
            bar.start_t, bar.last_print_t = bar.start_t - elapsed, bar.last_print_t - elapsed

            def show(done: float, note: str = "") -> None:
                count = f"{int(done)} of {total}{unit}" if total else ""
                bar.set_postfix_str(", ".join(filter(None, [count, note])), refresh=False)
                bar.update(done - bar.n)
            yield show
    else:
        yield _lines(label, total, unit, elapsed)


@contextmanager
def counting_if_slow(label: str, total: int, unit: str = "") -> Iterator[Show]:
    """As `counting`, but nothing is shown of what is done within seconds."""
    start, shown = time.monotonic(), []
    with ExitStack() as stack:
        def show(done: float, note: str = "") -> None:
            elapsed = time.monotonic() - start
            if not shown and done < total and elapsed > SOON:
                shown.append(stack.enter_context(counting(label, total, unit, elapsed)))
            if shown:
                shown[0](done, note)
        yield show


def _lines(label: str, total: int | None, unit: str, elapsed: float) -> Show:
    last = time.monotonic()
    start = last - elapsed

    def show(done: float, note: str = "") -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < SECONDS_BETWEEN_LINES:
            return
        last, gone = now, now - start
        of = f" of {total}" if total is not None else ""
        left = f", about {gone * (total - done) / done:.0f} s left" if total and done else ""
        print(f"{label}: {int(done)}{of}{unit}, {gone:.0f} s{left}{', ' * bool(note)}{note}",
              file=sys.stderr, flush=True)
    return show


def progress(iterable: Iterable[Item], label: str, total: int | None = None) -> Iterator[Item]:
    """Yield the items and show how far it is, as `counting` does.

    Args:    label: what is being done; total: number of items where `len()` is unknown.
    """
    if total is None and hasattr(iterable, "__len__"):
        total = len(iterable)
    with counting(label, total) as show:
        for done, item in enumerate(iterable, start=1):
            yield item
            show(done, "")
