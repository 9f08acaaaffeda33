"""The one object a notebook talks to: its numbers, data, runs and figures.

study = Study("03_topk", globals())         what the parameters cell says
by_d = study.train(topk.d_arms)             one row per run, trained where it is missing
study.save(plots.sweep_curve(by_d, "d", ...), by_d, "dimension", "R@5 hardly moves.", by_d)
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import Image
from matplotlib.figure import Figure
from torch import nn

from itr_study.checks import check_choice
from itr_study.data import DATASETS
from itr_study.data.base import RetrievalDataset
from itr_study.data.batches import EncodedSplit
from itr_study.digits import counted
from itr_study.evaluation.search import Searcher
from itr_study.files import paths
from itr_study.lab.ledger.paired import differences, sign
from itr_study.lab.ledger.verdict import adjusted
from itr_study.lab.runs.data import dataset_of, encoded_data
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.run import searcher, weights
from itr_study.lab.runs.store import ENDED, RunStore
from itr_study.lab.studies.arms import (
    FACTORS,
    ArmRun,
    Maker,
    base_config,
    ended_arms,
    reading,
    train_arms,
)
from itr_study.lab.studies.bases import tuned_on
from itr_study.lab.studies.needs import leave_out
from itr_study.lab.studies.parameters import PAPER
from itr_study.lab.studies.plans import STUDIES
from itr_study.lab.studies.presets import paper_arms
from itr_study.lab.studies.results import (
    collapses,
    curves,
    is_published,
    kept_table,
    models_here,
    over_images,
    ranks_of,
)
from itr_study.metrics import Ranks
from itr_study.metrics.intervals import LEVEL
from itr_study.plots.figures import COMMON, save_figure
from itr_study.plots.names import name_of
from itr_study.plots.published import read_record
from itr_study.plots.style import COLUMN
from itr_study.plots.tables import Page, table_cells, table_html
from itr_study.plots.tables import finding as plots_finding
from itr_study.progress import in_lines
from itr_study.training.devices import choose_device

Groups = Mapping[tuple[str, int], Sequence[ArmRun]]  # (arm, seed) -> runs


class Study:
    """What one notebook looks at, and with how much computing.

    Args:
        notebook: its name, such as "03_topk".
        cell: variables of its parameters cell (`globals()`); None or absent: the profile's.
    Raises: ValueError: a device that is not here, and what `Parameters` refuses.
    """

    def __init__(self, notebook: str, cell: Mapping[str, Any]) -> None:
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
        self.made: set[str] = set()  # figures whose tables are made of models of this machine
        leave_out(self)

    @property
    def generated(self) -> bool:
        """Whether the data is made here: relevance is known, pictures may be published."""
        return DATASETS[self.dataset_name].generated

    @property
    def kept_in(self) -> list[Path]:
        """The folders where saved tables are looked up: this study's, then the published."""
        kept = paths.kept_folders(self.generated, self.figures)
        return [folder / self.dataset_name for folder in kept]

    @cached_property
    def dataset(self) -> RetrievalDataset:
        """The data set: pictures, texts, and what people said about them."""
        return dataset_of(base_config(self.dataset_name, "two_branch", self.parameters), self.root)

    def arms(self, make: Maker) -> list[ArmRun]:
        """List the runs of some arms, but those that need more texts an image than there are."""
        runs = make(self.dataset_name, self.parameters)
        few = dict.fromkeys(
            run.label for run in runs if (texts := run.config.settings.texts_per_image) > 1
            and (self.generated or self.root is not None)
            and np.bincount(self.dataset.splits["train"].image_of_text).max() < texts)
        if few:
            print(in_lines(f"Not trained, since {self.dataset_name} has too few texts an image: "
                           + ", ".join(map(name_of, few))))
        return [run for run in runs if run.label not in few]

    def first(self, make: Maker, arm: str) -> ArmRun:
        """Return an arm's run of the smallest seed. Raises: ValueError for an unknown arm."""
        runs = self.arms(make)
        for run in runs:
            if run.label == arm:
                return run
        known = ", ".join(dict.fromkeys(run.label for run in runs))
        raise ValueError(f"no variant {arm!r}; there are {known}")

    def train(self, arms: Maker | Sequence[ArmRun], failed: bool = False,
              weights: bool = False) -> pd.DataFrame:
        """Train what is missing; return a row per run: its arm, seed and all it measured.

        Args:
            arms: a maker of arms, such as `topk.k_arms`, or runs.
            failed: keep the rows of diverged runs (which are named on stderr in any case).
            weights: also train, for `searcher`, runs whose model this machine lacks.

        Raises:
            ValueError: there is no run.
            RuntimeError: a run met an accident (a killed worker, no memory); the others are kept.
        """
        runs = self.arms(arms) if callable(arms) else list(arms)
        if not runs:
            raise ValueError(f"there is no run to train: of the parameters of {self.notebook} that "
                             "name its variants, lists need an item and numbers of seeds must be "
                             "1 or more")
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

    def and_paper(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Add the rows of the paper's presets: profile paper trains them, others look for them."""
        presets = (self.train if self.profile == PAPER else self.ended)(paper_arms)
        return pd.concat([rows, presets[presets["status"] == "done"]]) if len(presets) else rows

    def ended(self, arms: Maker | Sequence[ArmRun]) -> pd.DataFrame:
        """Return the rows of runs that have ended; nothing is trained, nothing missed."""
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

    def noted(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Add the name of each arm in `method`, and in `note` that it collapsed or saw captions."""
        runs = rows["run"] if "run" in rows else pd.Series("", rows.index)
        fallen = set(rows.loc[[bool(self.collapsed.get(run)) for run in runs], "arm"])
        notes = {}
        for arm, part in rows.groupby("arm", sort=False):
            seen = "has seen captions" * bool(part.iloc[0].get("seen"))
            notes[arm] = "; ".join(filter(None, ["collapsed" * (arm in fallen), seen]))
        return rows.copy().assign(  # a copy is in one piece, where rows were joined
            method=rows["arm"].map(name_of), note=rows["arm"].map(notes))

    def compare(self, rows: pd.DataFrame, pairs: Sequence[tuple[str, str]],
                metrics: Sequence[str] = ("test_rsum",), level: float = LEVEL) -> pd.DataFrame:
        """Compute differences of two arms seed by seed, with their interval.

        Args:
            rows: as `train` gives them.
            pairs: (arm, the one taken from it), left out if this machine has no runs of one.
            metrics: columns of rows.
            level: of the intervals.
        Returns: Columns of `lab.ledger.paired.differences`; verdict ("undecided" below five seeds,
            "collapsed" if runs of either have); note of either, as in `noted`, or TRAINED_ON if
            the metric's labels trained one; factors of arm_a, and of arm_b with "_b" behind.
        """
        arms = self.noted(rows).drop_duplicates("arm").set_index("arm")
        known = [pair for pair in pairs if set(pair) <= set(arms.index)]
        table = differences(rows, known, metrics, level)
        both = zip(arms["note"].reindex(table.arm_a), arms["note"].reindex(table.arm_b),
                   strict=True)
        labels = arms.get("labels", pd.Series("", arms.index)).astype(str)
        own = [TRAINED_ON * (metric.rpartition("_")[2] in (labels[a], labels[b])) for metric, a, b
               in zip(table.metric, table.arm_a, table.arm_b, strict=True)]
        notes = ["; ".join(dict.fromkeys(filter(None, "; ".join((*two, judge)).split("; "))))
                 for two, judge in zip(both, own, strict=True)]
        factors = arms[[name for name in FACTORS if name in arms]]
        ends = zip(table.low, table.high, table.n, notes, strict=True)
        return table.assign(
            verdict=["collapsed" if "collapsed" in note else sign(low, high, n)
                     for low, high, n, note in ends], note=notes
        ).join(factors, on="arm_a").join(factors.add_suffix("_b"), on="arm_b")

    def beside(self, rows: pd.DataFrame, metric: str = "test_rsum",
               reference: str | None = None) -> pd.DataFrame:
        """Compare every other arm with one of them by a metric, as `compare` does.

        Args:
            rows: as `train` gives them.
            metric: column of rows.
            reference: that one; None, or one without runs: the highest mean, picked by what it is
                judged by: of m arms its level is 1 - 0.05 / m (`verdict.adjusted`).
        """
        means = rows.groupby("arm", sort=False)[metric].mean()
        arm, level = (reference, LEVEL) if reference in means.index \
            else (means.idxmax(), adjusted(len(means)))
        pairs = [(other, arm) for other in means.index if other != arm]
        return self.compare(rows, pairs, [metric], level)

    def finding(self, rows: pd.DataFrame, metric: str = "test_rsum",
                reference: str | None = None) -> str:
        """Say what is settled in a subtitle ("k = 1 is best"), or ""; Args: as `beside`."""
        differences = self.beside(rows, metric, reference)
        if set(differences["verdict"]) == {"lower"}:
            return f"{name_of(differences['arm_b'].iloc[0])} is best"
        return plots_finding(differences, "it")

    def note(self, *words: str, split: str = "test") -> str:
        """Write the words under a picture: data set, rates tuned elsewhere, how little, words."""
        tuned = tuned_on(self.dataset_name, "two_branch")
        here = ", ".join(self.parameters.rates_here)
        rates = [f"tuned on {tuned}"] * (tuned != self.dataset_name)
        rates += [f"those of {here} tuned here"] * bool(here)
        taken = f"learning rates {', '.join(rates)}" * bool(rates)
        little = ["profile smoke: too little to judge"] * (self.profile == "smoke")
        if self.generated or self.root is not None:
            images = len(self.dataset.splits[split].image_ids)
            little += [counted(images, f"{split} image")] * (images < FEW)
        return "; ".join(filter(None, [self.dataset_name, taken, *little, *words]))

    def curves(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return one line per epoch of every run, with its arm and seed."""
        return curves(rows)

    def ranks(self, row: Mapping[str, Any]) -> Ranks:
        """Return the rank of every test query of a run."""
        return ranks_of(row)

    def over_images(self, rows: pd.DataFrame, metric: str = "rsum") -> pd.DataFrame:
        """Tell how far each number would move with other test images (bootstrap)."""
        owner = self.dataset.splits["test"].image_of_text
        return over_images(rows, owner, metric)

    def encoded(self, run: ArmRun, split: str = "test") -> EncodedSplit:
        """Return a split as the model of a run reads it: features, words, label vectors."""
        device = str(choose_device(self.device))
        return encoded_data(run.config, self.root, device).splits[split]

    def model(self, run: ArmRun) -> nn.Module:
        """Return the trained model of a run; train it now if this machine has none."""
        return weights(run.config, self.root, device=self.device)

    def searcher(self, run: ArmRun, split: str = "test") -> Searcher:
        """Return the trained model of a run, ready to search a split."""
        return searcher(run.config, self.root, split, device=self.device)

    def models(self, runs: Mapping[str, ArmRun] | Maker | Sequence[ArmRun],
               split: str = "test") -> dict[str, Searcher]:
        """Return trained models by name, ready to search; train first those missing here.

        Args:
            runs: by name; or a maker of arms or runs, each named by its arm.
            split: of the data.
        Raises: ValueError: two runs of one name; as `train`.
        """
        if not isinstance(runs, Mapping):
            listed = self.arms(runs) if callable(runs) else runs
            runs = {name_of(run.label): run for run in listed}
            if len(runs) < len(listed):
                raise ValueError(f"{len(listed)} runs have {len(runs)} names, those of their "
                                 f"variants ({', '.join(runs)}); name them: {{'seed 0': run, "
                                 "'seed 1': other}")
        ids = [identify(run.config, self.root).id for run in runs.values()]
        if absent := [run_id for run_id in ids if RunStore().result(run_id) is None]:
            print(f"{len(absent)} of {counted(len(ids), 'model')} must be trained first.")
        self.train(list(runs.values()), weights=True)
        return {name: self.searcher(run, split) for name, run in runs.items()}

    def of_models(self, name: str, rows: pd.DataFrame, runs: Groups | Sequence[ArmRun],
                  make: Callable[[Any], pd.DataFrame], needs: Collection[str] = (),
                  values: Mapping[str, Collection] = MappingProxyType({})) -> pd.DataFrame:
        """Return a table made of models: lines that a figure of these runs keeps, the others new.

        Rows of runs travel with the project, trained models do not: of the lines that are not kept
        the models that are missing are trained now. Models of two machines are no pair: if a line
        of a seed is new, or a row of it is not published, its kept lines are made again where all
        their models are here.

        Args:
            name: of the figure in this notebook.
            rows: as `train` gives them; runs without a row are left out, and a table of runs that
                are not among them is not taken.
            runs: in the order of the lines; or (arm, seed) -> all whose models its lines need.
            make: gets some of `runs` as they are given; returns their lines, with arm and seed.
            needs: columns without which a kept table is of no use.
            values: of columns, which a kept table must have; its other lines are left out.
        """
        single = not isinstance(runs, Mapping)
        groups = {(run.label, run.config.seed): [run] for run in runs} if single else runs
        ids = {(row.arm, row.seed): row.run for row in rows.itertuples()}
        members = {key: [ids.get((run.label, run.config.seed)) for run in group]
                   for key, group in groups.items()}
        groups = {key: group for key, group in groups.items() if None not in members[key]}
        kept = kept_table(self.figures, self.dataset_name, f"{self.notebook}__{name}", rows)
        if kept is None or not {"arm", "seed", *needs, *values} <= set(kept) or not all(
                set(asked) <= set(kept[column]) for column, asked in values.items()):
            kept = pd.DataFrame(columns=["arm", "seed", *values])
        for column, asked in values.items():
            kept = kept[kept[column].isin(asked)]
        keys = list(zip(kept["arm"], kept["seed"], strict=True))
        if "members" in kept:  # the same runs, together
            keys = [key if key in groups and " + ".join(members[key]) == of else None
                    for key, of in zip(keys, kept["members"], strict=True)]
        known = groups.keys() & set(keys)
        elsewhere = {key[1] for key in known if not models_here(groups[key], self.root)}
        again = {key[1] for key in groups.keys() - known} | {
            key[1] for key in known if not is_published(groups[key], self.root)}
        making = {key: group for key, group in groups.items()
                  if key not in known or key[1] in again - elsewhere}
        tables = [kept[np.array([key in known and key not in making for key in keys], bool)]]
        if making:
            missing = [run for group in making.values() for run in group]
            self.train(missing, weights=True)
            tables.append(make(missing if single else making))
            self.made.add(name)
        table = pd.concat([part for part in tables if len(part)] or tables)
        place = {key: number for number, key in enumerate(groups)}
        order = [place[key] for key in zip(table["arm"], table["seed"], strict=True)]
        return table.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)

    def save(self, picture: Figure | None, table: pd.DataFrame, name: str, summary: str,
             runs: pd.DataFrame | None = None, *, only: str | None = None, common: bool = False,
             **more: Any) -> Figure | None:
        """Save a figure, its data and what made it in `output_folder`; return the figure.

        Args:
            picture: None saves a table alone, as a paper may print.
            table: the data drawn.
            name: in this notebook, "k_sweep".
            summary: one sentence, what a reader sees.
            runs: rows of the runs behind it, None for none.
            only: "generated" for pictures of images (photographs are not ours to publish), "real"
                for what generated data lacks; on other data nothing is saved.
            common: no data set, profile or run changes it: saved once for all of them.
            more: of its provenance, such as made_from: on what a common figure was trained or
                measured, in words.
        """
        if only is not None:
            check_choice("only", only, ("generated", "real"))
        summary = summary if summary.endswith((".", "!")) else summary + "."
        if picture is not None:
            for what, text, most in (("title", picture.title, TITLE),
                                     ("subtitle", picture.subtitle, SUBTITLE)):
                if len(text) > most:
                    raise ValueError(
                        f"the {what} of {name} has {len(text)} letters, at most {most} are read at "
                        f"a glance: {text!r}; say only what is drawn")
            picture.alt = summary
        if only is not None and self.generated != (only == "generated"):
            return picture
        if name in self.made:
            more["from_models"] = True
        origin = {"seeds": []} | more if common else self.provenance(runs, **more)
        own = self.generated and not common
        folder = paths.output_folder(own, self.figures)
        self.saved[name] = save_figure(
            picture, table, f"{self.notebook}__{name}", COMMON if common else self.dataset_name,
            summary, origin, folder,
            published=not own and folder.resolve() == paths.figures_folder().resolve())
        return picture

    def drawing(self, name: str) -> Image:
        """Return a drawing of this notebook that no data changes, as it is published."""
        file = f"{COMMON}/{self.notebook}__{name}.png"
        own, copy = paths.project_root() / "figures" / file, paths.shipped_copy("figures") / file
        self.saved[name] = path = own if own.is_file() else copy
        record = read_record(path.with_suffix(".json"))
        return Image(filename=path, alt=record["summary"], width=COLUMN)

    def table(self, rows: pd.DataFrame, columns: Sequence[str], name: str, title: str,
              reported: pd.DataFrame | None = None, note: str = "") -> Page:
        """Save a table of arms (mean, half the 95 % interval, seeds) and return it.

        Args: as `plots.table_html`, `rows` as `train` gives them, and its `name` in this notebook.
        """
        noted = self.noted(rows)
        cells = table_cells(noted, "method", columns, reported)
        self.save(None, cells, name, title, rows)
        return table_html(noted, "method", columns, reported, title, note)

    def printed(self, rows: pd.DataFrame, name: str, title: str,
                columns: Sequence[str] | None = None, ours: pd.DataFrame | None = None,
                note: str = "") -> Page:
        """Save a table of a paper and return it; ", as printed" is added to its title.

        Args: as `table`; rows: method and columns, of which None shows all; ours: rows of `train`,
        shown first, and saved, where their data have all these columns.
        """
        columns = list(columns or rows.columns.drop("method"))
        if ours is not None and set(columns) <= set(ours.dropna(axis=1, how="all")):
            return self.table(ours, columns, name, f"{title}, and ours on {self.dataset_name}",
                              rows, note)
        title += ", as printed"
        self.save(None, rows, name, title, common=True)
        return table_html(rows.head(0), "method", columns, rows, title, note)

    def provenance(self, runs: pd.DataFrame | None = None, **more: Any) -> dict[str, Any]:
        """Describe what made a figure: the profile, parameters set by hand, and its runs."""
        origin = {"profile": self.profile, "parameters": self.parameters.explicit}
        if runs is None:
            return origin | {"seeds": []} | more
        fingerprints = runs["data"].dropna().unique() if "data" in runs else []
        devices = sorted(set(runs["device"].dropna())) if "device" in runs else []
        return origin | {"seeds": sorted({int(seed) for seed in runs["seed"]}),
                         "run_ids": sorted(set(runs["run"])),
                         "data": ", ".join(fingerprints), "devices": devices} | more


TITLE, SUBTITLE = 60, 90  # letters at most
TRAINED_ON = "trained on these labels"
FEW = 100  # images of a split, of which a picture says how few they are
