"""Notebooks in one headless batch: checked first, each in a process of its own, true statuses.

A notebook's status: done; failed (a cell raised); kernel-died (killed, often for memory);
timeout; interrupted (the batch was stopped); skipped (not for this data set, or being executed
by another batch). Only done and skipped count as success.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from itr_study.batch.declared import Notebook, read_notebook
from itr_study.batch.remaining import Remaining, expected_minutes
from itr_study.files.atomic import read_json, write_json
from itr_study.files.paths import home
from itr_study.processes import MARK, kill_marked, new_mark

FINE = ("done", "skipped")
POLL = 0.1  # seconds between looks at a running notebook


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
                 stop: threading.Event | None = None) -> NotebookResult:
    """Execute one notebook with parameters; nothing it started survives this call.

    Args:    output: written only when every cell ran; until then `<stem>.partial.ipynb`, a log
             and at the end `<stem>.status.json` lie beside it. timeout: seconds of wall clock;
             threads: of numerical libraries in the kernel; stop: set it to end early.
    Raises:  ValueError before any kernel starts, for an unknown parameter or a wrong type.
    """
    notebook, output = read_notebook(path), Path(output).resolve()
    notebook.check(parameters)
    output.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    try:
        with FileLock(f"{output}.lock", timeout=0):
            status, message = _execute(notebook, dict(parameters), output, timeout, threads,
                                       stop or threading.Event())
            final = output if status == "done" else _partial(output)
            result = NotebookResult(notebook.name, status, (time.monotonic() - start) / 60,
                                    message, final if final.exists() else None)
            record = {**asdict(result), "output": str(final), "parameters": dict(parameters)}
            write_json(output.with_suffix(".status.json"), record)
    except Timeout:
        return NotebookResult(notebook.name, "skipped", 0.0, "another batch is executing it")
    return result


def _partial(output: Path) -> Path:
    return output.with_suffix(".partial.ipynb")


def _execute(notebook: Notebook, parameters: dict, output: Path, timeout: float | None,
             threads: int | None, stop: threading.Event) -> tuple[str, str]:
    """Run the child and wait for it; (status, message). The output is renamed into place."""
    partial, mark = _partial(output), new_mark()
    partial.unlink(missing_ok=True)
    environment = {**os.environ, MARK: mark}
    if threads is not None:
        environment["OMP_NUM_THREADS"] = str(threads)
    with tempfile.TemporaryDirectory(prefix="itr_study-") as scratch, \
            open(output.with_suffix(".log"), "wb") as log:
        task = Path(scratch) / "task.json"
        write_json(task, {"notebook": str(notebook.path.resolve()), "output": str(partial),
                          "parameters": parameters, "parent": os.getpid()})
        command = [sys.executable, "-m", "itr_study.batch.child", str(task)]
        child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                 stderr=subprocess.STDOUT, start_new_session=True)
        try:
            early = _wait(child, timeout, stop)
        finally:
            kill_marked(mark)
            child.wait()
        verdict = Path(scratch) / "verdict.json"
        if early and not verdict.exists():
            return early
        if not verdict.exists():
            return "kernel-died", f"its process ended with code {child.returncode}: see the log"
        told = read_json(verdict)
    if told["status"] == "done":
        _settle(partial, output)
    return told["status"], told["message"]


def _wait(child: subprocess.Popen, timeout: float | None,
          stop: threading.Event) -> tuple[str, str] | None:
    """None when the child ended by itself, else why it must be ended."""
    end = time.monotonic() + timeout if timeout is not None else float("inf")
    while child.poll() is None:
        if stop.is_set():
            return "interrupted", "the batch was stopped"
        if time.monotonic() > end:
            return "timeout", f"longer than {timeout / 60:.3g} minutes: raise --timeout"
        stop.wait(POLL)
    return None


def _settle(partial: Path, output: Path) -> None:
    with open(partial, "rb") as file:
        os.fsync(file.fileno())
    os.replace(partial, output)


def executed_folder(dataset: str) -> Path:
    """Where executed notebooks of a data set lie."""
    return home() / "executed" / dataset


def say_at_once(text: str) -> None:
    """Print a line without delay: into a file, Python would keep it until the batch ends."""
    print(text, flush=True)


def reproduce(paths: Sequence[Path], parameters: Mapping[str, Any], dataset: str,
              workers: int = 1, timeout: float | None = None,
              say: Callable[[str], None] = say_at_once) -> list[NotebookResult]:
    """Execute notebooks, `workers` at once, going on after a failure; results in given order.

    Args:    say: gets a line when a notebook starts or ends, with what the batch will still take.
    Raises:  ValueError before any kernel starts, listing every wrong parameter of every notebook.
    """
    notebooks = [read_notebook(path) for path in paths]
    _check_all(notebooks, parameters)
    results: dict[str, NotebookResult] = {}
    for notebook in notebooks:
        if notebook.datasets is not None and dataset not in notebook.datasets:
            reason = f"it is for {', '.join(notebook.datasets)}"
            results[notebook.name] = NotebookResult(notebook.name, "skipped", 0.0, reason)
    waiting = [n for n in notebooks if n.name not in results]
    threads = max(1, (os.cpu_count() or 1) // workers) if workers > 1 else None
    remaining = Remaining({n.name: expected_minutes(n, parameters, executed_folder(dataset))
                           for n in waiting}, workers)

    def tell(line: str) -> None:
        say("; ".join(part for part in (line, remaining.text()) if part))

    def run(notebook: Notebook, stop: threading.Event) -> NotebookResult:
        remaining.start(notebook.name)
        tell(f"{notebook.name}: started")
        output = executed_folder(dataset) / notebook.path.name
        result = run_notebook(notebook.path, parameters, output, timeout, threads, stop)
        remaining.end(notebook.name, result.minutes if result.status == "done" else None)
        tell(f"{notebook.name}: {result.status}, {result.minutes:.1f} min {result.message}".strip())
        return result

    with _stoppable() as stop:
        results |= _schedule(waiting, run, workers, stop)
    return [results[n.name] for n in notebooks]


def _check_all(notebooks: list[Notebook], parameters: Mapping[str, Any]) -> None:
    problems = []
    for notebook in notebooks:
        try:
            notebook.check(parameters)
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError("\n".join(problems))


def _schedule(waiting: list[Notebook], run: Callable, workers: int,
              stop: threading.Event) -> dict[str, NotebookResult]:
    """Start each notebook when a worker is free and those it comes after have ended."""
    results: dict[str, NotebookResult] = {}
    running: dict[Future, Notebook] = {}
    waiting = list(waiting)
    with ThreadPoolExecutor(workers) as pool:
        while waiting or running:
            unfinished = {n.name for n in [*waiting, *running.values()]}
            for notebook in [n for n in waiting if not _blocked(n, unfinished, waiting)]:
                if len(running) == workers or stop.is_set():
                    break
                waiting.remove(notebook)
                running[pool.submit(run, notebook, stop)] = notebook
            if not running:
                break
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                results[running.pop(future).name] = future.result()
    late = {n.name: NotebookResult(n.name, "interrupted", 0.0, "not started") for n in waiting}
    return results | late


def _blocked(notebook: Notebook, unfinished: set[str], waiting: list[Notebook]) -> bool:
    """Whether a notebook it comes after is unfinished; those that come after all do not wait for
    each other."""
    if notebook.after == "all":
        last = {n.name for n in waiting if n.after == "all"}
        return bool(unfinished - last)
    return bool(unfinished & set(notebook.after) - {notebook.name})


@contextmanager
def _stoppable():
    """An event that Ctrl-C or SIGTERM sets, so that the table is printed and nothing survives."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {s: signal.signal(s, lambda *_: stop.set()) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def table(results: Sequence[NotebookResult]) -> str:
    """The closing table: one line a notebook."""
    width = max([len("notebook"), *(len(r.notebook) for r in results)])
    lines = [f"{'notebook':<{width}}  status       minutes  why"]
    lines += [f"{r.notebook:<{width}}  {r.status:<11}  {r.minutes:7.1f}  {r.message}".rstrip()
              for r in results]
    counts = Counter(r.status for r in results)
    return "\n".join([*lines, ", ".join(f"{n} {status}" for status, n in counts.items())])
