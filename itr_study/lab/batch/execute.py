"""One notebook in a process of its own, with its true status.

done; failed (a cell raised); kernel-died (killed, often for memory); timeout; interrupted (the
batch was stopped); busy (being executed by another batch). Only done counts as success.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from filelock import FileLock, Timeout

from itr_study.files.atomic import read_json, write_json
from itr_study.lab.batch.declared import Notebook, read_notebook
from itr_study.lab.processes import MARK, kill_marked, new_mark

POLL = 0.1  # seconds between looks at a running notebook
# A line of its log that says how far something is (see `progress`), and what that is.
COUNTED = re.compile(r"[\d:]{8} ((.+): \d+( of \d+)?.*, \d+ s.*)")
SAID_AGAIN = 300.0  # seconds after which the same step is said again
Say = Callable[[str], None]


@dataclass(frozen=True)
class NotebookResult:
    """How one notebook ended; `output` is the executed notebook, partial unless done."""

    notebook: str
    status: str
    minutes: float
    message: str = ""
    output: Path | None = None


def run_notebook(path: Path | str, parameters: Mapping[str, Any], output: Path | str,
                 timeout: float | None = None, threads: int | None = None,
                 stop: threading.Event | None = None,
                 say: Say = lambda step: None) -> NotebookResult:
    """Execute one notebook with parameters; nothing it started survives this call.

    Args:    output: written only when every cell ran; until then `<stem>.partial.ipynb`, a log
             and at the end `<stem>.status.json` lie beside it. timeout: seconds of wall clock;
             threads: of numerical libraries in the kernel; stop: set it to end early; say: gets
             what takes long in it: "encoding flickr8k with minilm: 3 of 9, 40 s, about 80 s left".
    Raises:  ValueError before any kernel starts, for an unknown parameter or a wrong type.
    """
    notebook, output = read_notebook(path), Path(output).resolve()
    notebook.check(parameters)
    output.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    try:
        with FileLock(f"{output}.lock", timeout=0):
            status, message = _execute(notebook, dict(parameters), output, timeout, threads,
                                       stop or threading.Event(), say)
            final = output if status == "done" else _partial(output)
            result = NotebookResult(notebook.name, status, (time.monotonic() - start) / 60,
                                    message, final if final.exists() else None)
            record = {**asdict(result), "output": str(final), "parameters": dict(parameters)}
            write_json(output.with_suffix(".status.json"), record)
    except Timeout:
        return NotebookResult(notebook.name, "busy", 0.0, "another batch is executing it: wait "
                              f"for that one, or see {output.with_suffix('.log')}")
    return result


def _partial(output: Path) -> Path:
    return output.with_suffix(".partial.ipynb")


def _execute(notebook: Notebook, parameters: dict, output: Path, timeout: float | None,
             threads: int | None, stop: threading.Event, say: Say) -> tuple[str, str]:
    """Run the child and wait for it; (status, message). The output is renamed into place."""
    partial, mark = _partial(output), new_mark()
    partial.unlink(missing_ok=True)
    environment = {**os.environ, MARK: mark}
    if threads is not None:
        environment["OMP_NUM_THREADS"] = str(threads)
    with tempfile.TemporaryDirectory(prefix="itr_study-") as scratch, \
            open(output.with_suffix(".log"), "wb") as log, \
            open(output.with_suffix(".log"), encoding="utf-8", errors="replace") as told:
        task = Path(scratch) / "task.json"
        write_json(task, {"notebook": str(notebook.path.resolve()), "output": str(partial),
                          "parameters": parameters, "parent": os.getpid()})
        command = [sys.executable, "-m", "itr_study.lab.batch.child", str(task)]
        child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                 stderr=subprocess.STDOUT, start_new_session=True)
        try:
            early = _wait(child, timeout, stop, Steps(told, say))
        finally:
            kill_marked(mark)
            child.wait()
        verdict = Path(scratch) / "verdict.json"
        if early and not verdict.exists():
            return early
        if not verdict.exists():
            return "kernel-died", f"its process ended with code {child.returncode}: see the log"
        values = read_json(verdict)
    if values["status"] == "done":
        _put_in_place(partial, output)
    return values["status"], values["message"]


class Steps:
    """What takes long in a running notebook, read from its log: a step is said when it is new, and
    again every five minutes."""

    def __init__(self, log: TextIO, say: Say):
        self.log, self.say = log, say
        self.part, self.step, self.said = "", "", 0.0  # of a line that is being written

    def look(self) -> None:
        """Say what is new in the log."""
        *lines, self.part = (self.part + self.log.read()).split("\n")
        for found in filter(None, map(COUNTED.fullmatch, lines)):
            if found[2] != self.step or time.monotonic() - self.said > SAID_AGAIN:
                self.step, self.said = found[2], time.monotonic()
                self.say(found[1])


def _wait(child: subprocess.Popen, timeout: float | None, stop: threading.Event,
          steps: Steps) -> tuple[str, str] | None:
    """None when the child ended by itself, else why it must be ended."""
    end = time.monotonic() + timeout if timeout is not None else float("inf")
    while child.poll() is None:
        steps.look()
        if stop.is_set():
            return "interrupted", "the batch was stopped"
        if time.monotonic() > end:
            return "timeout", f"longer than {timeout / 60:.3g} minutes: raise --timeout"
        stop.wait(POLL)
    return None


def _put_in_place(partial: Path, output: Path) -> None:
    """Rename a notebook whose every cell ran, flushed to disk first."""
    with open(partial, "r+b") as file:  # Windows flushes only what is writable
        os.fsync(file.fileno())
    os.replace(partial, output)
