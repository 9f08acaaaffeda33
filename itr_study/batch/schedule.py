"""Notebooks in one headless batch: checked first, in the order they ask for, true statuses."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from itr_study.batch.declared import Notebook, read_notebook
from itr_study.batch.execute import NotebookResult, run_notebook
from itr_study.batch.remaining import Remaining, expected_minutes
from itr_study.data import DATASETS
from itr_study.files.paths import home


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

    Args:    say: gets a line when a notebook starts or ends, with what the batch will still take,
             and one for what takes long in it.
    Raises:  ValueError before any kernel starts, listing every wrong parameter of every notebook,
             or naming notebooks that wait for each other.
    """
    notebooks = [read_notebook(path) for path in paths]
    _check_all(notebooks, parameters)
    results: dict[str, NotebookResult] = {}
    for notebook in notebooks:
        if not notebook.suits(dataset):
            reason = f"it is for {', '.join(notebook.datasets)}"
            results[notebook.name] = NotebookResult(notebook.name, "skipped", 0.0, reason)
    chosen = [n for n in notebooks if n.name not in results]
    threads = max(1, (os.cpu_count() or 1) // workers) if workers > 1 else None
    remaining = Remaining({n.name: expected_minutes(n, parameters, executed_folder(dataset))
                           for n in sorted(chosen, key=lambda n: n.after == "all")}, workers)

    def report(line: str) -> None:
        say("; ".join(part for part in (line, remaining.text()) if part))

    def run(notebook: Notebook, stop: threading.Event) -> NotebookResult:
        remaining.start(notebook.name)
        report(f"{notebook.name}: started")
        output = executed_folder(dataset) / notebook.path.name
        given = trained_where(notebook, dataset, workers) | dict(parameters)
        result = run_notebook(notebook.path, given, output, timeout, threads, stop,
                              lambda step: say(f"{notebook.name}: {step}"))
        remaining.end(notebook.name, result.minutes if result.status == "done" else None)
        ending = f"{result.status}, {result.minutes:.1f} min {result.message}".strip()
        report(f"{notebook.name}: {ending}")
        return result

    with _stoppable() as stop:
        results |= _schedule(chosen, run, workers, stop)
    return [results[n.name] for n in notebooks]


def trained_where(notebook: Notebook, dataset: str, at_once: int) -> dict[str, int]:
    """Where notebooks side by side take all cores, a notebook trains its small runs itself: each
    process that does it instead starts for seconds, and reads the data anew."""
    itself = DATASETS[dataset].generated and at_once >= (os.cpu_count() or 1)
    return {"workers": 0} if itself and "workers" in notebook.parameters else {}


def _check_all(notebooks: list[Notebook], parameters: Mapping[str, Any]) -> None:
    problems = []
    for notebook in notebooks:
        try:
            notebook.check(parameters)
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError("\n".join(problems))


def _schedule(notebooks: list[Notebook], run: Callable, workers: int,
              stop: threading.Event) -> dict[str, NotebookResult]:
    """Start each notebook, in reading order, when a worker is free and those it comes after have
    ended; results by name."""
    order, ready = sorted_by_after(notebooks), set()
    running: dict[Future, str] = {}
    results = {n.name: NotebookResult(n.name, "interrupted", 0.0, "not started") for n in notebooks}
    with ThreadPoolExecutor(workers) as pool:
        while order.is_active() and (running or not stop.is_set()):
            ready |= set(order.get_ready())
            for notebook in [n for n in notebooks if n.name in ready][:workers - len(running)]:
                if not stop.is_set():
                    ready.remove(notebook.name)
                    running[pool.submit(run, notebook, stop)] = notebook.name
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                name = running.pop(future)
                results[name] = future.result()
                order.done(name)
    return results


def sorted_by_after(notebooks: Sequence[Notebook]) -> TopologicalSorter:
    """What says which notebooks may start; those that come after all do not wait for each other.

    Raises:  ValueError naming notebooks that wait for each other.
    """
    names = {n.name for n in notebooks}
    first = {n.name for n in notebooks if n.after != "all"}
    order = TopologicalSorter({
        n.name: first if n.after == "all" else names & set(n.after) - {n.name} for n in notebooks})
    try:
        order.prepare()
    except CycleError as error:
        raise ValueError(f"notebooks wait for each other: {' <- '.join(error.args[1])}; mend "
                         "`after` in the metadata of one of them") from error
    return order


@contextmanager
def _stoppable() -> Iterator[threading.Event]:
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
