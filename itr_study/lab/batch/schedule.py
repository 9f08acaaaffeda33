"""Notebooks in one headless batch: checked first, in the order they ask for, true statuses.

`Request` is what `itr-study reproduce` does: which notebooks, with which parameters, at what cost,
and how it went; `reproduce` executes them.
"""

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
from functools import partial
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import mean
from typing import Any

import psutil

from itr_study.checks import check_choice, check_number
from itr_study.data import DATASETS, check_root
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
from itr_study.lab.batch.declared import Notebook, find_notebooks, read_notebook, split_values
from itr_study.lab.batch.execute import NotebookResult, Say, run_notebook

PROFILES = ("smoke", "quick", "full", "paper")
WITH_PRESETS = ("03", "05", "06", "07")  # notebooks that have a profile paper
# Wall clock of one notebook in minutes: far above what it should take, so that only a hang ends.
PATIENCE = {"smoke": 10, "quick": 60, "full": 48 * 60, "paper": 48 * 60}
NOTEBOOK_BYTES = 3 << 30  # memory of a notebook and its two processes that train, on generated data
say_at_once: Say = partial(print, flush=True)  # into a file, Python keeps lines until the end


def reproduce(paths: Sequence[Path], parameters: Mapping[str, Any], dataset: str,
              workers: int = 1, timeout: float | None = None,
              say: Say = say_at_once) -> list[NotebookResult]:
    """Execute notebooks, `workers` at once, going on after a failure; results in given order.

    Args:    say: gets a line when a notebook starts or ends, with what the batch will still take,
             and one for what takes long in it.
    Raises:  ValueError before any kernel starts, listing every wrong parameter of every notebook,
             or naming notebooks that wait for each other.
    """
    notebooks, problems = [read_notebook(path) for path in paths], []
    for notebook in notebooks:
        try:
            notebook.check(parameters)
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError("\n".join(problems))
    executed, cores = executed_folder(dataset), os.cpu_count() or 1
    # Where they take all cores, each trains its small runs itself: a process for these would take
    # seconds to start, and read the data once more.
    itself = DATASETS[dataset].generated and workers >= cores
    remaining = Remaining({n.name: expected_minutes(n, parameters, executed)
                           for n in sorted(notebooks, key=lambda n: n.after == "all")}, workers)

    def report(line: str) -> None:
        say("; ".join(filter(None, (line, remaining.text()))))

    def run(notebook: Notebook, stop: threading.Event) -> NotebookResult:
        remaining.start(notebook.name)
        report(f"{notebook.name}: started")
        own = {"workers": 0} if itself and "workers" in notebook.parameters.model_fields else {}
        result = run_notebook(notebook.path, own | dict(parameters),
                              executed / notebook.path.name, timeout,
                              max(1, cores // workers) if workers > 1 else None, stop,
                              lambda step: say(f"{notebook.name}: {step}"))
        remaining.end(notebook.name, result.minutes if result.status == "done" else None)
        message = f"; {result.message}" * bool(result.message)
        report(f"{notebook.name}: {result.status}, {result.minutes:.1f} min{message}")
        return result

    with _stoppable() as stop:
        results = _schedule(notebooks, run, workers, stop)
    return [results[n.name] for n in notebooks]


def executed_folder(dataset: str) -> Path:
    """Where executed notebooks of a data set lie."""
    return home() / "executed" / dataset


def _schedule(notebooks: list[Notebook], run: Callable, workers: int,
              stop: threading.Event) -> dict[str, NotebookResult]:
    """Start each notebook, in reading order, when a worker is free and those before have ended."""
    order, ready = _sorted_by_after(notebooks), set()
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


def _sorted_by_after(notebooks: Sequence[Notebook]) -> TopologicalSorter:
    """What says which notebooks may start; those after "all" do not wait for each other."""
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
    main = threading.current_thread() is threading.main_thread()  # only this one may handle signals
    before = {s: signal.signal(s, lambda *_: stop.set())
              for s in (signal.SIGINT, signal.SIGTERM) if main}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def table(results: Sequence[NotebookResult]) -> str:
    """The closing table: one line a notebook."""
    width = max([len("notebook"), *(len(r.notebook) for r in results)])
    counts = Counter(r.status for r in results)
    return "\n".join([
        f"{'notebook':<{width}}  status       minutes  why",
        *(f"{r.notebook:<{width}}  {r.status:<11}  {r.minutes:7.1f}  {r.message}".rstrip()
          for r in results), ", ".join(f"{n} {status}" for status, n in counts.items())])


# How long a batch will still take: from what its notebooks took before, corrected as they end.

def expected_minutes(notebook: Notebook, parameters: Mapping[str, Any],
                     executed: Path) -> float | None:
    """What a notebook took when it was last done in this profile, else what it declares.

    Args:    executed: where the executed notebooks of the data set lie.
    Returns: None where neither is known: it declares `quick` on generated data only.
    """
    profile = parameters.get("profile")
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):  # none, or damaged
        last = read_json((executed / notebook.path.name).with_suffix(".status.json"))
        minutes = float(last["minutes"])
        if (last["status"] == "done" and last["parameters"].get("profile") == profile
                and 0 <= minutes < math.inf):
            return minutes
    generated = DATASETS[parameters.get("dataset", "scenes")].generated
    return notebook.minutes if generated and profile == "quick" else None


class Remaining:
    """What is left of a batch, in minutes.

    Each notebook that is done corrects the others: a machine twice as slow takes twice as long. The
    first ones are short and say little, so what was foreseen counts as one notebook more; one that
    still runs counts when it is late. Unknown ones count as the mean of the known; where none is
    known, there is no estimate before the first is done.

    Args:    expected: minutes of each notebook, None where unknown, in the order in which they
             start; workers: notebooks at once; clock: seconds that only go forward.

    Example:
        >>> batch = Remaining({"00": 1.0, "01": 4.0, "02": 4.0}, clock=lambda: 0.0)
        >>> batch.start("00")
        >>> batch.end("00", 5.0)
        >>> batch.text()
        'about 16 minutes remain'
    """

    def __init__(self, expected: Mapping[str, float | None], workers: int = 1,
                 clock: Callable[[], float] = time.monotonic) -> None:
        known = [minutes for minutes in expected.values() if minutes is not None]
        self.usual = mean(known) if known else 1.0
        self.expected = {n: self.usual if m is None else m for n, m in expected.items()}
        self.workers, self.clock, self.guessed = workers, clock, not known
        self.started: dict[str, float] = {}
        self.taken: dict[str, float | None] = {}

    def start(self, name: str) -> None:
        """Note that a notebook starts."""
        self.started[name] = self.clock()

    def end(self, name: str, minutes: float | None) -> None:
        """Note that a notebook ends, after `minutes`; None does not correct the others."""
        self.taken[name] = minutes

    def minutes(self) -> float | None:
        """Until the last one ends; None where nothing is known yet."""
        done = {name: taken for name, taken in dict(self.taken).items() if taken is not None}
        if self.guessed and not done:
            return None
        passed = {name: (self.clock() - start) / 60 for name, start in dict(self.started).items()
                  if name not in self.taken}
        known = done | {name: gone for name, gone in passed.items() if gone > self.expected[name]}
        foreseen = 0.0 if self.guessed else self.usual
        pace = (foreseen + sum(known.values())) / (
            foreseen + sum(map(self.expected.get, known)) or 1.0)
        left = [max(0.0, pace * minutes - passed.get(name, 0.0))
                for name, minutes in self.expected.items() if name not in self.taken]
        return max(sum(left) / self.workers, *left, 0.0)

    def text(self) -> str:
        """The estimate in words; empty where there is none, or nothing is left."""
        minutes = self.minutes()
        if minutes is None or len(self.taken) == len(self.expected):
            return ""
        return "about a minute remains" if minutes < 1.5 else f"about {minutes:.0f} minutes remain"


def data_root(dataset: str, data: Path | str | None) -> str | None:
    """Find the root of the data, absolute: given, or $ITR_DATA; None for generated data.

    Raises:  ValueError for an unknown data set, real data without a root, generated data with one.
    """
    check_choice("the data set", dataset, DATASETS)
    check_root(dataset, data)
    if DATASETS[dataset].generated:
        return None
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
        """Check what the user typed.

        Args:    workers: None = `side_by_side`; device: as in `fit`; fresh: take no published rows,
                 in this process and those that it starts.
        Raises:  ValueError for an unknown notebook, profile or parameter, a value of a wrong type,
                 missing data, a device that is not here, or a folder of figures beside --publish.
        """
        root = data_root(dataset, data)
        if minutes is not None:
            check_number("--timeout (minutes)", minutes, above=0)
        profile = profile or ("quick" if DATASETS[dataset].generated else "full")
        check_choice("profile", profile, PROFILES)
        paths = find_notebooks(names or WITH_PRESETS * (profile == "paper"))
        parameters = {"profile": profile, "dataset": dataset}
        options = ["--dataset", dataset, "--profile", profile]
        if root:
            parameters["data"] = root
            options += ["--data", root]
        if figures:
            parameters["figures"] = str(figures.resolve())
            options += ["--figures", str(figures)]
        if device != "auto":
            parameters["device"] = device
            options += ["--device", device]
        texts = split_values("-p", given)
        if own := {"profile", "dataset", "data"} & texts.keys():
            raise ValueError(f"-p {min(own)}: use --{min(own)}")
        for notebook in map(read_notebook, paths):
            parameters |= {name: notebook.read(name, text) for name, text in texts.items()}
        if "device" in parameters:
            from itr_study.training.devices import choose_device  # loads torch

            choose_device(parameters["device"])
        published = str(figures_folder())
        if publish:
            if "figures" in parameters:
                raise ValueError("--publish draws into figures/ of the project: leave the other "
                                 "folder of figures out, or --publish")
            parameters["figures"] = published
            options += ["--publish"]
        if fresh:
            os.environ["ITR_STUDY_EVIDENCE"] = str(measured_alone(home() / "no-evidence"))
            options += ["--fresh"]
        options += [part for text in given for part in ("-p", text)]
        return cls(paths, dataset, profile, parameters, workers or side_by_side(dataset),
                   60 * (minutes or PATIENCE[profile]), tuple(options),
                   parameters.get("figures") == published)

    def hours(self) -> float:
        """Hours that the missing runs will take, NaN: unknown; 0 of generated data and smoke."""
        if DATASETS[self.dataset].generated or self.profile == "smoke":
            return 0.0
        from itr_study.lab.studies.plans import planned

        return sum(math.nan if p.unknown else p.hours for p in planned(self.paths, self.parameters))

    def plan(self) -> str:
        """The runs of each notebook: present, missing, stale, and hours."""
        from itr_study.lab.studies.plans import plan_table, planned

        note = ("\nThis data is generated: a run counts as present while its store is here, and "
                "hours are not foreseen." if DATASETS[self.dataset].generated else "")
        return plan_table(planned(self.paths, self.parameters)) + note

    def run(self) -> int:
        """Execute, print the table, the way to retry and the gallery.

        Returns: 0 only if every notebook is done and every figure of the gallery has its files.
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
        whole = not has_figures or self.shown(done, began)
        return int(bool(unsuccessful) or not whole)

    def output(self) -> dict[str, Path]:
        """Where figures of the data set and common ones go: its name, or "common" -> folder."""
        figures, generated = self.parameters.get("figures"), DATASETS[self.dataset].generated
        return {self.dataset: output_folder(generated, figures) / self.dataset,
                "common": output_folder(False, figures) / "common"}

    def shown(self, done: Collection[str], began: float) -> bool:
        """Make the pages of figures, print where they are, and what real data changed in them.

        Args:    done: the notebooks that drew; began: when (seconds of the epoch).
        Returns: False, with the reason printed, where a figure is not whole.
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
            if (figures_folder() / self.dataset).is_dir() and not (generated or self.publish):
                print(compare(own.parent, figures_folder(), [self.dataset, "common"], done,
                              began).text())
        except ValueError as error:
            print(f"The gallery was not made: {error}")
            return False
        return True

    def retry(self, results: Sequence[NotebookResult]) -> str:
        """The command that executes these notebooks again."""
        ours = shipped_folder("notebooks")
        argument = {path.stem: path.stem if (ours / path.name).is_file() else str(path)
                    for path in self.paths}
        names = [argument[result.notebook] for result in results]
        return shlex.join(["itr-study", "reproduce", *names, *self.options])


def measured_alone(folder: Path) -> Path:
    """Make evidence without runs: only what benchmarks measured, as no batch measures it."""
    evidence = evidence_folder()
    for path in [*evidence.glob("common/*.csv"), *evidence.glob("*/models.csv")]:
        write_atomic(folder / path.relative_to(evidence), path.read_bytes())
    return folder


def side_by_side(dataset: str) -> int:
    """Notebooks at once where nobody says: two on generated data where there is room, else one."""
    roomy = (os.cpu_count() or 1) > 1 and psutil.virtual_memory().available >= 2 * NOTEBOOK_BYTES
    return 2 if roomy and DATASETS[dataset].generated else 1
