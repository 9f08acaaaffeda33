"""Read what runs left: curves, ranks, intervals and judged scores."""

import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from itr_study.checks import check_choice
from itr_study.data import DATASETS
from itr_study.evaluation.measures import measure_columns
from itr_study.evaluation.table import bootstrap, recall_by_image
from itr_study.files.paths import evidence_folder, kept_folders
from itr_study.lab.ledger.paired import NoRanks, Part
from itr_study.lab.runs.config import RunConfig, build_objective
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.published import NotKept, Published, arrays, curve
from itr_study.lab.runs.store import RunStore
from itr_study.lab.studies.arms import ArmRun
from itr_study.metrics import Ranks
from itr_study.metrics.intervals import crossed_error
from itr_study.training.collapse import collapse, equal_scores, flattened


def kept_table(figures: Path | str | None, dataset: str, name: str,
               rows: pd.DataFrame) -> pd.DataFrame | None:
    """Read the table of a figure, "<notebook>__<figure>", that was saved of the most runs.

    A table of runs that are not in `rows` is not taken (None: there is no other); figures: as of
    `files.paths.kept_folders`.
    """
    from itr_study.plots.published import read_record  # here: it loads matplotlib

    best, most = None, 0
    generated = dataset in DATASETS and DATASETS[dataset].generated
    for folder in kept_folders(generated, figures):
        path = folder / dataset / f"{name}.csv"
        provenance = path.with_suffix(".json")  # written last: without it a figure is half saved
        if path.is_file() and provenance.is_file():
            made_of = set(read_record(provenance).get("run_ids", ()))
            if most < len(made_of) and made_of <= set(rows["run"]):
                best, most = path, len(made_of)
    return best and pd.read_csv(best, keep_default_na=False, na_values=[""])


def models_here(runs: Collection[ArmRun], root: Path | str | None = None) -> bool:
    """Tell whether this machine has the models of these runs, but for diverged ones."""
    store = RunStore()
    return all(store.result(identify(run.config, root).id) is not None for run in runs)


def is_published(runs: Collection[ArmRun], root: Path | str | None = None) -> bool:
    """Tell whether the rows of these runs are the published ones, of another machine perhaps."""
    return all(Published(run.config.dataset).complete(identify(run.config, root).id)
               for run in runs)


Row = Mapping[str, Any]  # of a run, as `train_arms` gives it


def ranks_of(row: Row) -> Ranks:
    """Read the rank of every test query of a run, published or from the store.

    ValueError: neither has them, or the file is damaged or of another run.
    """
    found = arrays(row["run"])
    return Ranks(found["test_i2t"], found["test_t2i"])


def judged_of(row: Row, collection: str = "expert") -> np.ndarray:
    """Read (N,) float64 scores of the judged test pairs, rounded to float16.

    They have the order of `split.judgements[collection]`. Raises: as `ranks_of`, and ValueError
    for a data set or a collection of which none are kept.
    """
    check_choice(f"collection of judgements kept of {row['dataset']}", collection,
                 DATASETS[row["dataset"]].kept_judgements)
    name = f"test_judged_{collection}"  # ranks may be kept without it
    scores = arrays(row["run"], name)[name]
    if not np.isfinite(scores).all():
        raise ValueError(f"{name} of run {row['run']} must be finite: it is damaged; restore it: "
                         f"git checkout -- {evidence_folder() / row['dataset']}")
    return scores.astype(np.float64)


def over_images(rows: pd.DataFrame, image_of_text: np.ndarray, metric: str = "rsum",
                n: int = 1000) -> pd.DataFrame:
    """Compute each run's bootstrap interval over test images: arm, seed, value, low, high.

    It says how far a number would move with other images, and nothing about other seeds.

    Args:
        rows: runs, as `train_arms` gives them.
        image_of_text: (T,) of the test split.
        metric: a key of `bootstrap`.
        n: resamples.
    """
    intervals = []
    for row in rows.to_dict("records"):
        ranks = ranks_of(row)
        if len(ranks.t2i) != len(image_of_text):
            raise ValueError(f"run {row['run']} has ranks of {len(ranks.t2i)} texts, the test "
                             f"split has {len(image_of_text)}; give the data it was run on")
        intervals.append(bootstrap(ranks, image_of_text, n=n)[metric])
    return rows[["arm", "seed"]].reset_index(drop=True).join(
        pd.DataFrame(intervals, columns=["value", "low", "high"]))


def curves(rows: pd.DataFrame) -> pd.DataFrame:
    """Join the histories of all ended runs: one line per epoch, with arm and seed.

    Raises: ValueError: a run has left no curve.
    """
    histories = [curve(row["run"]).assign(arm=row["arm"], seed=row["seed"])
                 for row in rows.to_dict("records") if row["status"] in ("done", "diverged")]
    return pd.concat(histories, ignore_index=True)


def generalisation(rows: pd.DataFrame) -> pd.Series:
    """Compute 100 log(RSUM on test / train): 0 if all that was learnt is kept.

    A difference would call a run that learns little good. NaN for runs on fewer training images
    than usual (settings.dev_images): R@K of few images is higher, whatever was learnt.

    Example: 434 on training images, 227 on test
        >>> kept = generalisation(pd.DataFrame({"train_rsum": [434.0], "test_rsum": [227.0]}))
        >>> kept.round(1).tolist()
        [-64.8]
    """
    kept = 100 * np.log(rows["test_rsum"].astype(float) / rows["train_rsum"].astype(float))
    return kept.mask(rows["settings.dev_images"].fillna(0) > 0) \
        if "settings.dev_images" in rows else kept


def collapses(rows: pd.DataFrame) -> pd.Series:
    """Say why each run has collapsed, "" if it has not; rows as in `curves`."""
    return endings(rows)["collapsed"]


def endings(rows: pd.DataFrame) -> pd.DataFrame:
    """Say from its curve why a run has `collapsed` or, as its loss asks, `flattened`.

    Each is "" if it has not; also of runs that ended before their row said so. Rows as in `curves`.
    """
    by_objective: dict[tuple, Any] = {}
    reasons = []
    for row in rows.to_dict("records"):
        if row["status"] != "done":
            reasons.append(("", ""))
            continue
        config = RunConfig.model_validate_json(row["config"])
        key = (str(config.objective), config.settings.batch_size)
        if key not in by_objective:
            by_objective[key] = equal_scores(build_objective(config.objective), key[1])
        epochs = curve(row["run"])
        reasons.append(tuple(says(epochs, by_objective[key]) for says in (collapse, flattened)))
    return pd.DataFrame(reasons, rows.index, ["collapsed", "flattened"], dtype=object)


class Fair(NamedTuple):
    """Name a measure of the order that no training label was made by, and its judge."""

    metric: str
    whom: str


# What is known, else people, else other captions of the image: only `sam` is trained on CIDEr.
EXACTLY = Fair("test_i2t_tau_exact", "exact relevance")
PEOPLE = Fair("test_human_expert_tau_c", "experts")
CAPTIONS = Fair("test_i2t_tau_cider", "CIDEr")


def fair_judge(dataset: str) -> Fair:
    """Choose the measure that judges the rest of the list on a data set."""
    record = DATASETS[dataset]
    return EXACTLY if "exact" in record.graded_by else PEOPLE if record.judged_by else CAPTIONS


def fair_columns(dataset: str) -> list[str]:
    """List all columns of rows by that judge, both directions if it has two."""
    part = {EXACTLY: "ndcg_exact", PEOPLE: "human", CAPTIONS: "tau_cider"}[fair_judge(dataset)]
    return [f"test_{name}" for name in measure_columns(dataset, "test", needs=()) if part in name]


RECALLED = re.compile("test_(rsum|(i2t|t2i)_r(1|5|10))")
ERROR_KEY = ["arm_a", "arm_b", "metric", "pairs"]


class ImageErrors:
    """Standard errors over images, beyond those over seeds: from ranks, else from a kept table.

    They are of paired differences of recall, for the ledger (`CrossedArms`). Ranks of most runs are
    not published, so a table of the errors travels with the project: "12_claims__images".

    Source: `crossed_error` of seeds and images, `recall_by_image`.

    Args:
        image_of_text: (T,) of the test split.
        kept: a `table` of before, of runs that are here (`kept_table`), or None.
    """

    def __init__(self, image_of_text: np.ndarray, kept: pd.DataFrame | None = None) -> None:
        self.image_of_text = image_of_text
        self.kept = {} if kept is None else kept.set_index(ERROR_KEY)["error"].to_dict()
        self.found: dict[tuple, float] = {}
        self.by_image = cache(self._by_image)

    def __call__(self, part: Part, runs_a: list[str], runs_b: list[str]) -> float:
        """Compute or look up the error of a difference; the other arguments: its runs by seed.

        Raises: NoRanks: neither can be; the metric is no recall, or the ranks do not give it.
        """
        key = (part.arm_a, part.arm_b, part.metric, part.n)
        if not RECALLED.fullmatch(part.metric):
            raise NoRanks(f"{part.metric} is no recall")
        try:
            one, other = (np.stack([self.by_image(run)[part.metric.removeprefix("test_")]
                                    for run in runs]) for runs in (runs_a, runs_b))
        except NotKept as error:
            if key not in self.kept:
                raise NoRanks(str(error)) from error
            self.found[key] = self.kept[key]
            return self.found[key]
        if not np.allclose((one - other).mean(axis=1), part.differences, rtol=0, atol=1e-6):
            raise NoRanks(f"the ranks of these runs do not give their {part.metric}")
        self.found[key] = float(f"{crossed_error(one - other):.5g}")  # as the table has it
        return self.found[key]

    def table(self) -> pd.DataFrame:
        """List what was asked for: arm_a, arm_b, metric, pairs, error (to five digits)."""
        return pd.DataFrame([(*key, error) for key, error in self.found.items()],
                            columns=[*ERROR_KEY, "error"])

    def _by_image(self, run: str) -> dict[str, np.ndarray]:
        ranks = ranks_of({"run": run})
        if len(ranks.t2i) != len(self.image_of_text):
            raise NotKept(f"run {run} has ranks of another test split")
        return recall_by_image(ranks, self.image_of_text)
