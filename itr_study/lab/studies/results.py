"""What runs left behind: learning curves, ranks, intervals over images, scores of judged
pairs, the first results of some queries."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from itr_study.checks import check_choice
from itr_study.data import DATASETS
from itr_study.evaluation.bootstrap import bootstrap
from itr_study.files.paths import evidence_folder, kept_folders
from itr_study.lab.runs.config import RunConfig, build_objective
from itr_study.lab.runs.identity import identify
from itr_study.lab.runs.published import arrays, curve
from itr_study.lab.runs.store import RunStore
from itr_study.lab.studies.arms import ArmRun
from itr_study.metrics import Ranks
from itr_study.metrics.truth import DIRECTIONS
from itr_study.training.collapse import collapse, equal_scores, flattened

# What notebooks made of trained models and saved with a figure: taken from there where the models
# are on another machine.
#
# Rows of runs travel with the project, trained models do not. A table made of models (an
# ensemble, a share of attention inside boxes) would cost whoever has the rows alone hours of
# training.

def kept_table(figures: Path | str | None, dataset: str, name: str,
               rows: pd.DataFrame) -> pd.DataFrame | None:
    """The table of a figure as a notebook saved it; None where it is nowhere, or where it is of
    other runs than these rows. Of several the one of most runs, so that a smaller profile hides
    nothing.

    Args:    figures: as of `files.paths.kept_folders`; name: "<notebook>__<figure>"; rows: with
             `run`.
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
    """Whether this machine has what all these runs ended with: their models, but for those that
    diverged.

    Args:    root: folder of the real data sets.
    """
    store = RunStore()
    return all(store.result(identify(run.config, root).id) is not None for run in runs)


Row = Mapping[str, Any]  # of a run, as `train_arms` gives it


class FirstResults(NamedTuple):
    """The first results of some queries of the test split: queries (Q,), results (Q, 10), best
    first; images and texts by their place in the split."""

    queries: np.ndarray
    results: np.ndarray


def ranks_of(row: Row) -> Ranks:
    """The rank of every test query of a run, published or from the store.

    Args:    row: as `train_arms` gives it.
    Raises:  ValueError where neither has them, or the file is damaged or of another run.
    """
    found = arrays(row["run"])
    return Ranks(found["test_i2t"], found["test_t2i"])


def judged_of(row: Row, collection: str = "expert") -> np.ndarray:
    """(N,) float64: the scores that a run gives the judged pairs of the test split, rounded to
    float16, in the order of the judgements (`split.judgements[collection]`).

    Args, Raises: as `ranks_of`, and ValueError for a data set or a collection of which none are
             kept.
    """
    check_choice(f"collection of judgements kept of {row['dataset']}", collection,
                 DATASETS[row["dataset"]].kept_judgements)
    (scores,) = _kept(row, f"test_judged_{collection}")
    return scores.astype(np.float64)


def first_of(row: Row) -> dict[str, FirstResults]:
    """The first results of the sampled queries of a run: {"i2t": ..., "t2i": ...}.

    Args, Raises: as `ranks_of`.
    """
    return {direction: FirstResults(*_kept(row, f"test_{direction}_queries",
                                           f"test_{direction}_first"))
            for direction in DIRECTIONS}


def _kept(row: Row, *names: str) -> list[np.ndarray]:
    """Arrays that ranks alone may come without."""
    found = arrays(row["run"], *names)
    kept = [found[name] for name in names]
    if len({len(array) for array in kept}) > 1 or not all(np.isfinite(a).all() for a in kept):
        raise ValueError(f"{', '.join(names)} of run {row['run']} must be finite and of one "
                         "length: they are damaged; restore them: git checkout -- "
                         f"{evidence_folder() / row['dataset']}")
    return kept


def over_images(rows: pd.DataFrame, image_of_text: np.ndarray, metric: str = "rsum",
                n: int = 1000) -> pd.DataFrame:
    """One run per line with its bootstrap interval over test images.

    It says how far a number would move with other images, and nothing about other seeds.

    Args:    rows: runs, as `train_arms` gives them; image_of_text: (T,) of the test split;
             metric: a key of `bootstrap`; n: resamples.
    Returns: arm, seed, value, low, high.
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
    """One line per epoch of every run that ended: `arm` and `seed` of its row, and its history.

    Args:    rows: as `train_arms` gives them.
    Raises:  ValueError where a run has left no curve.
    """
    histories = [curve(row["run"]).assign(arm=row["arm"], seed=row["seed"])
                 for row in rows.to_dict("records") if row["status"] in ("done", "diverged")]
    return pd.concat(histories, ignore_index=True)


def generalisation(rows: pd.DataFrame) -> pd.Series:
    """100 log(RSUM on test / RSUM on training images): how much of what a run has learnt by heart
    it keeps, 0 for all of it. The difference of the two would call a run that learns little good.
    NaN for a run whose training images are fewer than is usual (settings.dev_images): R@K of few
    images is higher, whatever was learnt.

    Example: 434 on training images, 227 on test
        >>> kept = generalisation(pd.DataFrame({"train_rsum": [434.0], "test_rsum": [227.0]}))
        >>> kept.round(1).tolist()
        [-64.8]
    """
    kept = 100 * np.log(rows["test_rsum"].astype(float) / rows["train_rsum"].astype(float))
    return kept.mask(rows["settings.dev_images"].fillna(0) > 0) \
        if "settings.dev_images" in rows else kept


def collapses(rows: pd.DataFrame) -> pd.Series:
    """Why each run has collapsed, empty where it has not. Args: as in `curves`."""
    return endings(rows)["collapsed"]


def endings(rows: pd.DataFrame) -> pd.DataFrame:
    """`collapsed`, why each run has, and `flattened`, that it got the equal scores that its
    objective asks for, each empty where it has not; from its curve: also of runs that ended before
    their row said so (`training.collapse`).

    Args:    as in `curves`.
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
