"""`itr-study reproduce`: which notebooks, with which parameters, at what cost, and how it went."""

import os
import shlex
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from itr_study.batch.declared import find_notebooks, read_notebook
from itr_study.batch.execute import FINE, NotebookResult
from itr_study.batch.schedule import executed_folder, reproduce, table
from itr_study.checks import check_choice, check_number
from itr_study.data import DATASETS
from itr_study.files.atomic import write_atomic
from itr_study.files.paths import (
    FIGURES_REMEDY,
    check_writable,
    evidence_folder,
    figures_folder,
    home,
    output_folder,
)

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
        from itr_study.studies.forecast import planned

        return sum(p.hours for p in planned(self.suiting(), self.parameters))

    def suiting(self) -> list[Path]:
        """The notebooks that are for the data set: of the others no run is trained."""
        return [path for path in self.paths if read_notebook(path).suits(self.dataset)]

    def plan(self) -> str:
        """The runs of each notebook: present, missing, stale, and hours."""
        from itr_study.studies.forecast import plan_table, planned

        note = ("\nThis data is generated: a run counts as present while its store is here, and "
                "hours are not foreseen." if DATASETS[self.dataset].generated else "")
        return plan_table(planned(self.suiting(), self.parameters)) + note

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
        unsuccessful = [r for r in results if r.status not in FINE]
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
        from itr_study.plots import gallery  # loads matplotlib
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
            raise ValueError(f"{name} is given twice; which one holds is not for us to guess")
        for notebook in notebooks:
            parameter = notebook.parameters.get(name)
            if parameter is None:
                notebook.check({name: value})
            values[name] = parameter.read(value)
    return values
