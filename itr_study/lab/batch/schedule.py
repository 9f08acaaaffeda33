"""Notebooks in one headless batch: checked first, in the order they ask for, true statuses."""

import heapq
import math
import os
import shlex
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import mean
from typing import Any

import psutil

from itr_study.checks import check_choice, check_number
from itr_study.data import DATASETS
from itr_study.files.atomic import read_json, write_atomic
from itr_study.files.paths import (
    FIGURES_REMEDY,
    check_writable,
    evidence_folder,
    figures_folder,
    home,
    output_folder,
    shipped_folder,
)
from itr_study.lab.batch.declared import Notebook, find_notebooks, read_notebook
from itr_study.lab.batch.execute import NotebookResult, run_notebook

# How long a batch will still take: from what its notebooks took before, corrected as they end.

def expected_minutes(notebook: Notebook, parameters: Mapping[str, Any],
                     executed: Path) -> float | None:
    """What a notebook took when it was last done here in the same profile, else what it declares
    for `quick` on generated data, else None.

    Args:    executed: where the executed notebooks of the data set lie.
    """
    profile = parameters.get("profile")
    status = (executed / notebook.path.name).with_suffix(".status.json")
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):  # none, or damaged
        last = read_json(status)
        minutes = float(last["minutes"])
        if (last["status"] == "done" and last["parameters"].get("profile") == profile
                and 0 <= minutes < math.inf):
            return minutes
    generated = DATASETS[parameters.get("dataset", "scenes")].generated
    return notebook.minutes if generated and profile == "quick" else None


class Remaining:
    """What is left of a batch, in minutes.

    Each notebook that is done corrects the others: a machine twice as slow takes twice as long.
    The first ones are short and say little, so what was foreseen counts beside them as one notebook
    more; one that still runs counts when it is late. Notebooks of unknown length count as much as
    the known ones on average; where none is known, there is no estimate before the first is done.

    Args:    expected: minutes of each notebook of the batch beside the others, None where unknown,
             in the order in which they start. workers: notebooks at once. clock: seconds that only
             go forward.
    Example:
        >>> batch = Remaining({"00": 1.0, "01": 4.0, "02": 4.0}, clock=lambda: 0.0)
        >>> batch.start("00")
        >>> batch.end("00", 5.0)
        >>> batch.text()
        'about 16 minutes remain'
    """

    def __init__(self, expected: Mapping[str, float | None], workers: int = 1,
                 clock: Callable[[], float] = time.monotonic):
        known = [minutes for minutes in expected.values() if minutes is not None]
        self.usual = mean(known) if known else 1.0
        self.expected = {n: self.usual if m is None else m for n, m in expected.items()}
        self.workers, self.clock, self.guessed = workers, clock, not known
        self.started: dict[str, float] = {}
        self.taken: dict[str, float | None] = {}

    def start(self, name: str) -> None:
        self.started[name] = self.clock()

    def end(self, name: str, minutes: float | None) -> None:
        """A notebook ended: after `minutes`, or None where that does not correct the others."""
        self.taken[name] = minutes

    def minutes(self) -> float | None:
        """Until the last one ends; None where nothing is known yet."""
        done = {name: taken for name, taken in dict(self.taken).items() if taken is not None}
        if self.guessed and not done:
            return None
        passed = {name: (self.clock() - start) / 60 for name, start in dict(self.started).items()
                  if name not in self.taken}
        pace = self._pace(done, passed)
        busy = [max(0.0, pace * self.expected[name] - gone) for name, gone in passed.items()]
        ends = sorted([0.0] * (self.workers - len(busy)) + busy)
        for name in self.expected:
            if name not in self.taken and name not in passed:
                heapq.heapreplace(ends, ends[0] + pace * self.expected[name])
        return max(ends)

    def _pace(self, done: Mapping[str, float], passed: Mapping[str, float]) -> float:
        """Minutes that pass for each one foreseen."""
        foreseen = 0.0 if self.guessed else self.usual
        taken, planned = foreseen + sum(done.values()), foreseen + sum(map(self.expected.get, done))
        for name, gone in passed.items():
            if gone > self.expected[name]:
                taken, planned = taken + gone, planned + self.expected[name]
        return taken / planned if planned else 1.0

    def text(self) -> str:
        """The estimate in words; empty where there is none, or nothing is left."""
        minutes = self.minutes()
        if minutes is None or len(self.taken) == len(self.expected):
            return ""
        if minutes < 1.5:
            return "about a minute remains"
        return f"about {minutes:.0f} minutes remain"


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
    threads = max(1, (os.cpu_count() or 1) // workers) if workers > 1 else None
    remaining = Remaining({n.name: expected_minutes(n, parameters, executed_folder(dataset))
                           for n in sorted(notebooks, key=lambda n: n.after == "all")}, workers)

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
        results = _schedule(notebooks, run, workers, stop)
    return [results[n.name] for n in notebooks]


def trained_where(notebook: Notebook, dataset: str, at_once: int) -> dict[str, int]:
    """Where notebooks side by side take all cores, a notebook trains its small runs itself: each
    process that does it instead starts for seconds, and reads the data anew."""
    itself = DATASETS[dataset].generated and at_once >= (os.cpu_count() or 1)
    return {"workers": 0} if itself and "workers" in notebook.parameters.model_fields else {}


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


# `itr-study reproduce`: which notebooks, with which parameters, at what cost, and how it went.

PROFILES = ("smoke", "quick", "full")
# Wall clock of one notebook in minutes: far above what it should take, so that only a hang ends.
PATIENCE = {"smoke": 10, "quick": 60, "full": 48 * 60}
NOTEBOOK_BYTES = 3 << 30  # memory of a notebook and its two processes that train, on generated data


def data_root(dataset: str, data: Path | str | None) -> str | None:
    """The root of the data as an absolute path: given, or $ITR_DATA; None for generated data.

    Raises:  ValueError for an unknown data set, or real data without a root.
    """
    if dataset in DATASETS and DATASETS[dataset].generated:
        return None

    check_choice("the data set", dataset, DATASETS)
    root = data or os.environ.get("ITR_DATA")
    if not root:
        raise ValueError(f"{dataset} is real data: say where it lies with --data (make: DATA=...) "
                         "or ITR_DATA")
    return str(Path(root).expanduser().resolve())


def known_root(dataset: str, data: Path | str | None) -> str | None:
    """The same, but None for real data without a root: published rows serve without it."""
    return data_root(dataset, data) if data or os.environ.get("ITR_DATA") else None


@dataclass(frozen=True)
class Request:
    """What the user asked for, checked: notebooks, their parameters, and how they are executed."""

    paths: list[Path]
    dataset: str
    profile: str
    parameters: dict[str, Any]
    workers: int
    timeout: float  # seconds
    options: tuple[str, ...]  # the command line again, without names, for the retry
    publish: bool = False  # whether the figures are those that git keeps

    @classmethod
    def make(cls, names: Sequence[str], dataset: str, data: Path | None, profile: str | None,
             figures: Path | None, given: Sequence[str], workers: int | None,
             minutes: float | None, publish: bool = False, device: str = "auto",
             fresh: bool = False) -> "Request":
        """A request from what the user typed; workers: None = `side_by_side`; device: as in `fit`;
        fresh: take no published rows, in this process and those that it starts.

        Raises:  ValueError for an unknown notebook, profile or parameter, missing data, a device
                 that is not here, or a folder of figures beside --publish.
        """
        root = data_root(dataset, data)
        if minutes is not None:
            check_number("--timeout (minutes)", minutes, above=0)
        profile = profile or ("quick" if DATASETS[dataset].generated else "full")
        check_choice("profile", profile, PROFILES)
        paths = find_notebooks(list(names))
        if not paths:
            raise ValueError(f"no notebooks in {shipped_folder('notebooks')}: start this in a copy "
                             "of the repository, or install itr-study from a wheel")
        if not paths:
            raise ValueError("there are no notebooks beside pyproject.toml; name some by path")
        parameters = {"profile": profile, "dataset": dataset}
        parameters |= {"data": root} if root else {}
        parameters |= {"figures": str(figures.resolve())} if figures else {}
        parameters |= {"device": device} if device != "auto" else {}
        parameters |= read_given(paths, given)
        if "device" in parameters:
            from itr_study.training.devices import choose_device  # loads torch

            choose_device(parameters["device"])
        if publish and "figures" in parameters:
            raise ValueError("--publish draws into figures/ of the project: leave the other folder "
                             "of figures out, or --publish")
        published = str(figures_folder())
        parameters |= {"figures": published} if publish else {}
        options = ["--dataset", dataset, "--profile", profile]
        options += ["--data", root] if root else []
        options += ["--figures", str(figures)] if figures else []
        options += ["--publish"] if publish else []
        options += ["--device", device] if device != "auto" else []
        if fresh:
            os.environ["ITR_STUDY_EVIDENCE"] = str(measured_alone(home() / "no-evidence"))
            options += ["--fresh"]
        options += [part for text in given for part in ("-p", text)]
        return cls(paths, dataset, profile, parameters, workers or side_by_side(dataset),
                   60 * (minutes or PATIENCE[profile]), tuple(options),
                   parameters.get("figures") == published)

    def hours(self) -> float:
        """Hours that the missing runs will take; none are foreseen for generated data."""
        if DATASETS[self.dataset].generated:
            return 0.0
        from itr_study.lab.studies.plans import planned

        return sum(p.hours for p in planned(self.paths, self.parameters))

    def plan(self) -> str:
        """The runs of each notebook: present, missing, stale, and hours."""
        from itr_study.lab.studies.plans import plan_table, planned

        note = ("\nThis data is generated: a run counts as present while its store is here, and "
                "hours are not foreseen." if DATASETS[self.dataset].generated else "")
        return plan_table(planned(self.paths, self.parameters)) + note

    def run(self) -> int:
        """Execute, print the table and the way to retry, make the gallery anew, and of real data
        say what differs from what is published; 0 only if every notebook is done and every figure
        of the gallery has its files.

        Raises:  OSError with the remedy, before anything is computed, where no figure can be kept.
        """
        for folder in self.output().values():
            check_writable(folder, FIGURES_REMEDY)
        start, began = time.monotonic(), time.time()
        results = reproduce(self.paths, self.parameters, self.dataset, self.workers, self.timeout)
        print(f"\n{table(results)}, in {(time.monotonic() - start) / 60:.1f} minutes")
        print(f"Executed notebooks and logs: {executed_folder(self.dataset)}")
        unsuccessful = [r for r in results if r.status != "done"]
        if unsuccessful:
            print(f"Retry just those: {self.retry(unsuccessful)}")
        done = {r.notebook for r in results if r.status == "done"}
        has_figures = any(read_notebook(path).figures for path in self.paths if path.stem in done)
        whole = self.shown(done, began) if has_figures else True
        return int(bool(unsuccessful) or not whole)

    def output(self) -> dict[str, Path]:
        """Where figures of the data set and common ones go: its name, or COMMON -> folder."""
        figures, generated = self.parameters.get("figures"), DATASETS[self.dataset].generated
        return {self.dataset: output_folder(generated, figures) / self.dataset,
                "common": output_folder(False, figures) / "common"}

    def shown(self, done: Collection[str], began: float) -> bool:
        """Make the pages of figures and print where they are, and what differs from what is
        published; False, with the reason printed, where a figure is not whole.

        Args:    done: the notebooks that drew; began: when (seconds of the epoch).
        """
        from itr_study.plots import figures as gallery  # loads matplotlib
        from itr_study.plots.published import compare

        own, common = self.output().values()
        generated = DATASETS[self.dataset].generated
        try:
            if self.publish:
                print(f"Gallery: {gallery.publish(self.dataset if generated else None)}")
            if generated and own.parent == figures_folder():  # git does not see it
                print(f"Gallery: {gallery.build_gallery(own / 'index.html', [own, common])}")
            elif not self.publish:
                page = own.parent / "index.html"
                print(f"Gallery: {gallery.build_gallery(page, gallery.inside(own.parent))}")
            if not generated and not self.publish:
                print(compare(own.parent, figures_folder(), [self.dataset, "common"], done,
                              began).text())
        except ValueError as error:
            print(f"The gallery was not made: {error}")
            return False
        return True

    def retry(self, results: Sequence[NotebookResult]) -> str:
        """The command that executes these notebooks again."""
        ours = {path.stem for path in find_notebooks()}
        argument = {path.stem: path.stem if path.stem in ours else str(path) for path in self.paths}
        names = [argument[result.notebook] for result in results]
        return shlex.join(["itr-study", "reproduce", *names, *self.options])


def measured_alone(folder: Path) -> Path:
    """A folder of evidence without any run: what benchmarks measured is copied, as a batch does not
    measure it anew."""
    evidence = evidence_folder()
    for path in [*evidence.glob("common/*.csv"), *evidence.glob("*/models.csv")]:
        write_atomic(folder / path.relative_to(evidence), path.read_bytes())
    return folder


def side_by_side(dataset: str) -> int:
    """Notebooks at once where nobody says: two on generated data, so that one trains while the
    other draws; one where cores or memory are few, and on real data, whose runs are large."""
    roomy = (os.cpu_count() or 1) > 1 and psutil.virtual_memory().available >= 2 * NOTEBOOK_BYTES
    return 2 if roomy and DATASETS[dataset].generated else 1


def read_given(paths: Sequence[Path], given: Sequence[str]) -> dict[str, Any]:
    """`name=value` texts as values of the type that the notebooks declare.

    Raises:  ValueError for a text without "=", an unknown name, or a value of a wrong type.
    """
    notebooks, values = [read_notebook(path) for path in paths], {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"a parameter is given as name=value, got {text!r}")
        if name in values:
            raise ValueError(f"{name} is given twice; give it once")
        for notebook in notebooks:
            values[name] = notebook.read(name, value)
    return values
