"""The one object a notebook talks to: its numbers, its data, its runs and its figures.

    study = Study("03_topk", globals())         what the parameters cell says
    by_d = study.train(topk.d_arms)             one row per run, trained where it is missing
    study.save(plots.sweep_curve(by_d, "d", ...), by_d, "dimension", "R@5 hardly moves.", by_d)
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from torch import nn

from itr_study.checks import check_choice
from itr_study.data import DATASETS
from itr_study.data.base import RetrievalDataset
from itr_study.data.batches import EncodedSplit
from itr_study.digits import counted
from itr_study.evaluation.search import Searcher
from itr_study.files.paths import figures_folder, kept_folders, output_folder
from itr_study.lab.ledger.paired import differences, sign
from itr_study.lab.ledger.verdict import adjusted
from itr_study.lab.runs.data import dataset_of, encoded_data
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import searcher, weights
from itr_study.lab.runs.store import ENDED, RunStore
from itr_study.lab.studies.arms import (
    ArmRun,
    Maker,
    base_config,
    ended_arms,
    reading,
    train_arms,
)
from itr_study.lab.studies.bases import at_edge, tuned_on
from itr_study.lab.studies.needs import leave_out
from itr_study.lab.studies.plans import STUDIES
from itr_study.lab.studies.results import collapses, curves, over_images, ranks_of
from itr_study.metrics import Ranks
from itr_study.metrics.intervals import LEVEL
from itr_study.plots.figures import COMMON, save_figure
from itr_study.plots.names import EDGE, FALLEN, name_of
from itr_study.progress import in_lines
from itr_study.training.devices import choose_device


class Study:
    """What one notebook looks at, and with how much computing.

    Args:    notebook: its name, such as "03_topk"; cell: the variables of its parameters cell
             (`globals()`), None or absent for the profile's own.
    Raises:  ValueError for a device that is not here, and for what `Parameters` refuses: another
             variable with a type is an unknown parameter.
    """

    def __init__(self, notebook: str, cell: Mapping[str, Any]):
        check_choice("notebook with parameters", notebook, STUDIES)
        parameters, _ = STUDIES[notebook]
        # of a cell the variables with a type, and those of a batch, which have none
        names = parameters.model_fields.keys() | cell.get("__annotations__", {}).keys()
        self.parameters = chosen = parameters.of(**{n: cell[n] for n in names if n in cell})
        self.dataset_name, self.profile, self.root = chosen.dataset, chosen.profile, chosen.data
        self.figures, self.workers, self.device = chosen.figures, chosen.workers, chosen.device
        choose_device(self.device)
        self.notebook = notebook
        self.parameters = reading(chosen, self.root)
        self.saved: dict[str, Path] = {}  # pictures by name
        self.collapsed: dict[str, str] = {}  # run -> why its scores have, of all trained here
        leave_out(self)

    @property
    def generated(self) -> bool:
        """Whether the data is made here: then every relevance is known, and pictures of it may be
        published."""
        return DATASETS[self.dataset_name].generated

    @property
    def kept_in(self) -> list[Path]:
        """The folders that saved tables of this data set are looked up in: where this study saves,
        then the published one."""
        return [folder / self.dataset_name for folder in kept_folders(self.generated, self.figures)]

    @cached_property
    def dataset(self) -> RetrievalDataset:
        """The data set: pictures, texts, and what people said about them."""
        return dataset_of(base_config(self.dataset_name, "two_branch", self.parameters), self.root)

    def arms(self, make: Maker) -> list[ArmRun]:
        """Every run of some arms, such as `topk.k_arms`, at this notebook's numbers."""
        return make(self.dataset_name, self.parameters)

    def first(self, make: Maker, arm: str) -> ArmRun:
        """The run of an arm with the smallest seed. Raises: ValueError for an unknown arm."""
        runs = self.arms(make)
        for run in runs:
            if run.label == arm:
                return run
        known = ", ".join(dict.fromkeys(run.label for run in runs))
        raise ValueError(f"no arm {arm!r}; there are {known}")

    def train(self, arms: Maker | Sequence[ArmRun], failed: bool = False,
              weights: bool = False) -> pd.DataFrame:
        """One row per run with its arm, seed and all it measured; missing runs are trained now.

        Args:    arms: a maker of arms, such as `topk.k_arms`, or runs; failed: keep the rows of
                 runs that diverged, too (they are named on stderr in any case); weights: train
                 those, too, of which this machine has no model, side by side: for `searcher`.
        Raises:  ValueError where the arms hold no run; RuntimeError naming runs that met an
                 accident (a killed worker, no memory): what is drawn without them would be another
                 finding. The others are kept.
        """
        runs = self.arms(arms) if callable(arms) else list(arms)
        if not runs:
            raise ValueError("there is no run to train: these arms are empty; of the parameters of "
                             f"{self.notebook} that they are made from, lists need an item and "
                             "numbers of seeds must be 1 or more")
        rows = train_arms(runs, root=self.root, workers=self.workers, device=self.device,
                          weights=weights)
        accidents = rows[~rows["status"].isin(ENDED)]
        if len(accidents):
            first = accidents.iloc[0]
            raise RuntimeError(
                f"run {first['run']} ({first['arm']}, seed {first['seed']}) {first['status']}: "
                f"{first['reason']}. {len(accidents)} of {len(rows)} runs did not end; the others "
                "are kept: execute this again to train what is missing")
        self._note_collapses(rows)
        return rows if failed else rows[rows["status"] == "done"]

    def ended(self, arms: Maker | Sequence[ArmRun]) -> pd.DataFrame:
        """The rows of those runs that are here already: nothing is trained, and nothing missed."""
        runs = self.arms(arms) if callable(arms) else list(arms)
        rows = ended_arms(runs, root=self.root)
        if len(rows):
            self._note_collapses(rows)
        return rows

    def _note_collapses(self, rows: pd.DataFrame) -> None:
        """Remember which runs have collapsed, and say of which arms they are."""
        new = rows[~rows["run"].isin(self.collapsed)]
        reasons = collapses(new)
        self.collapsed |= dict(zip(new["run"], reasons, strict=True))
        for arm, of_arm in reasons[reasons != ""].groupby(new["arm"], sort=False):
            print(in_lines(f"{len(of_arm)} of {(new['arm'] == arm).sum()} runs of {name_of(arm)} "
                           f"have {of_arm.iloc[0]}"))

    def caveats(self, rows: pd.DataFrame) -> dict[str, str]:
        """The marks behind the name of each arm: § where its learning rate lies at the edge of
        those tried, ¶ where scores of its runs have collapsed (`plots.marks_note`)."""
        runs = rows["run"] if "run" in rows else [""] * len(rows)
        fallen = {arm for arm, run in zip(rows.arm, runs, strict=True) if self.collapsed.get(run)}
        return {arm: EDGE * at_edge(self.dataset_name, arm) + FALLEN * (arm in fallen)
                for arm in rows["arm"].unique()}

    def with_caveats(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows, their arms with the marks that belong behind their names, for tables."""
        return rows.assign(arm=rows["arm"] + rows["arm"].map(self.caveats(rows)))

    def compare(self, rows: pd.DataFrame, pairs: Sequence[tuple[str, str]],
                metrics: Sequence[str] = ("test_rsum",), level: float = LEVEL) -> pd.DataFrame:
        """Differences of two arms seed by seed, with interval (95 %) and verdict: "undecided" with
        fewer than five seeds, "collapsed" where runs of either have; pairs of which an arm has no
        runs here are left out. `marks`: as in `caveats`. See `lab.ledger.paired.differences`."""
        marks = self.caveats(rows)
        known = [pair for pair in pairs if set(pair) <= set(marks)]
        table = differences(rows, known, metrics, level)
        both = [marks[a] + marks[b] for a, b in zip(table["arm_a"], table["arm_b"], strict=True)]
        ends = zip(table.low, table.high, table.n, both, strict=True)
        return table.assign(
            verdict=["collapsed" if FALLEN in two else sign(a, b, n) for a, b, n, two in ends],
            marks=["".join(mark for mark in (EDGE, FALLEN) if mark in two) for two in both])

    def beside(self, rows: pd.DataFrame, metric: str = "test_rsum",
               reference: str | None = None) -> pd.DataFrame:
        """Every other arm less one of them by a metric, as `compare` has it; for
        `wording.standing`.

        Args:    reference: the arm that all are held against; None, or one that has no runs here,
                 takes the highest mean. That is picked by what it is judged by, so that of m arms
                 its level is 1 - 0.05 / m, as in the ledger (`rules.adjusted`).
        """
        means = rows.groupby("arm", sort=False)[metric].mean()
        arm, level = (reference, LEVEL) if reference in means.index \
            else (means.idxmax(), adjusted(len(means)))
        pairs = [(other, arm) for other in means.index if other != arm]
        return self.compare(rows, pairs, [metric], level).assign(reference_mean=means[arm],
                                                                 level=level)

    def note(self, *words: str) -> str:
        """What is written under a picture: the data set, where its learning rates were tuned if not
        on it, and words."""
        tuned = tuned_on(self.dataset_name, "two_branch")
        taken = f"learning rates tuned on {tuned}" * (tuned != self.dataset_name)
        return "; ".join(filter(None, [self.dataset_name, taken, *words]))

    def curves(self, rows: pd.DataFrame) -> pd.DataFrame:
        """One line per epoch of every run, with its arm and seed."""
        return curves(rows)

    def ranks(self, row: Mapping[str, Any]) -> Ranks:
        """The rank of every test query of a run."""
        return ranks_of(row)

    def over_images(self, rows: pd.DataFrame, metric: str = "rsum") -> pd.DataFrame:
        """How far the number of each run would move with other test images (bootstrap)."""
        owner = self.dataset.splits["test"].image_of_text
        return over_images(rows, owner, metric)

    def encoded(self, run: ArmRun, split: str = "test") -> EncodedSplit:
        """A split as the model of a run reads it: features, words, label vectors."""
        device = str(choose_device(self.device))
        return encoded_data(run.config, self.root, device).splits[split]

    def model(self, run: ArmRun) -> nn.Module:
        """The trained model of a run; trained now if this machine has none."""
        return weights(run.config, self.root, device=self.device)

    def searcher(self, run: ArmRun, split: str = "test") -> Searcher:
        """The trained model of a run, ready to search a split."""
        return searcher(run.config, self.root, split, device=self.device)

    def models(self, runs: Mapping[str, ArmRun] | Maker | Sequence[ArmRun],
               split: str = "test") -> dict[str, Searcher]:
        """The trained models of runs by name, ready to search a split, for `explorers`; those that
        this machine has not are trained first, side by side.

        Args:    runs: by name; or a maker of arms or runs, each named by its arm.
        Raises:  ValueError for two runs of one name; as `train`.
        """
        if not isinstance(runs, Mapping):
            listed = self.arms(runs) if callable(runs) else runs
            runs = {name_of(run.label): run for run in listed}
            if len(runs) < len(listed):
                raise ValueError(f"{len(listed)} runs have {len(runs)} names, those of their arms "
                                 f"({', '.join(runs)}); name them: {{'seed 0': run, 'seed 1': "
                                 "other}")
        ids = [identify(run.config, self.root).id for run in runs.values()]
        if absent := [run_id for run_id in ids if RunStore().result(run_id) is None]:
            print(f"{len(absent)} of {counted(len(ids), 'model')} must be trained first.")
        self.train(list(runs.values()), weights=True)
        return {name: self.searcher(run, split) for name, run in runs.items()}

    def save(self, picture: Figure | None, table: pd.DataFrame, name: str, summary: str,
             runs: pd.DataFrame | None = None, *, only: str | None = None, common: bool = False,
             **more: Any) -> Figure | None:
        """Keep a figure with the data it shows and what made it (`files.paths.output_folder` says
        where); the picture, to be shown.

        Args:    picture: None keeps a table alone, as a paper may print; table: the data drawn;
                 name: in this notebook, "k_sweep"; summary: one sentence, what a reader sees; runs:
                 rows of the runs behind it, None for none; only: "generated" for pictures of images
                 (photographs are not ours to publish), "real" for what generated data lacks:
                 elsewhere nothing is kept; common: no data set, profile or run changes it: filed
                 once, for all of them; more: what else belongs to its provenance; of a common
                 figure that was trained or measured all the same, made_from: on what, in words.
        """
        if only is not None:
            check_choice("only", only, ("generated", "real"))
        summary = summary if summary.endswith((".", "!")) else summary + "."
        if picture is not None:
            picture.alt = summary
        if only is not None and self.generated != (only == "generated"):
            return picture
        origin = {"seeds": []} | more if common else self.provenance(runs, **more)
        own = self.generated and not common
        folder = output_folder(own, self.figures)
        self.saved[name] = save_figure(
            picture, table, f"{self.notebook}__{name}", COMMON if common else self.dataset_name,
            summary, origin, folder,
            published=not own and folder.resolve() == figures_folder().resolve())
        return picture

    def provenance(self, runs: pd.DataFrame | None = None, **more: Any) -> dict[str, Any]:
        """What a figure is made with: the profile, parameters set by hand, and seeds, ids, data and
        devices of its runs."""
        origin = {"profile": self.profile, "parameters": self.parameters.explicit}
        if runs is None:
            return origin | {"seeds": []} | more
        fingerprints = runs["data"].dropna().unique() if "data" in runs else []
        devices = sorted(set(runs["device"].dropna())) if "device" in runs else []
        return origin | {"seeds": sorted({int(seed) for seed in runs["seed"]}),
                         "run_ids": sorted(set(runs["run"])),
                         "data": ", ".join(fingerprints), "devices": devices} | more
