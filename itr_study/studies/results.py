"""What runs left behind: learning curves, ranks, intervals over images."""

import math
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from itr_study.data import DATASETS
from itr_study.evaluation.bootstrap import bootstrap
from itr_study.files.paths import figures_folder
from itr_study.metrics import Ranks
from itr_study.runs.config import RunConfig, build_objective
from itr_study.runs.store import RunStore
from itr_study.training.collapse import collapse, equal_scores


def ranks_of(row: Mapping[str, Any], figures: Path | str | None = None) -> Ranks:
    """The rank of every test query of a run, from the store or from beside its committed row.

    Args:    row: as `train_arms` gives it; figures: where the rows of real data are kept.
    Raises:  ValueError where neither has them, or the file is damaged or of another run.
    """
    path = figures_folder(figures) / row["dataset"] / "ranks" / f"{row['run']}.npz"
    if not DATASETS[row["dataset"]].generated and path.is_file():
        return committed_ranks(path, row)
    result = RunStore().result(row["run"])
    if result is None:
        raise ValueError(f"no ranks of run {row['run']}: it is neither in the store nor is "
                         f"{path.name} beside its row; restore it from git or train it again")
    ranks = result.ranks()
    return Ranks(ranks["test_i2t"], ranks["test_t2i"])


def committed_ranks(path: Path, row: Mapping[str, Any]) -> Ranks:
    """The ranks in the file beside a row; its R@1 must be the row's, where the row has one.

    Raises:  ValueError naming the file and the way to get it back.
    """
    remedy = f"restore it: git checkout -- {path}"
    try:
        with np.load(path, allow_pickle=False) as arrays:
            ranks = Ranks(arrays["test_i2t"], arrays["test_t2i"])
    except (BadZipFile, EOFError, KeyError, ValueError, TypeError) as error:
        # numpy's own words are left out: some advise to unpickle the file
        raise ValueError(f"{path} holds no ranks (test_i2t, test_t2i), it is damaged; "
                         f"{remedy}") from error
    for direction, of_queries in (("i2t", ranks.i2t), ("t2i", ranks.t2i)):
        stated, found = row.get(f"test_{direction}_r1"), 100 * float((of_queries <= 1).mean())
        if stated is not None and not math.isclose(stated, found, abs_tol=1e-6):
            raise ValueError(f"{path} is not of this row: its {direction} R@1 is {found:.2f}, the "
                             f"row says {stated:.2f}; {remedy}")
    return ranks


def over_images(rows: pd.DataFrame, image_of_text: np.ndarray, metric: str = "rsum",
                figures: Path | str | None = None, n: int = 1000) -> pd.DataFrame:
    """One run per line with its bootstrap interval over test images.

    It says how far a number would move with other images, and nothing about other seeds.

    Args:    rows: runs, as `train_arms` gives them; image_of_text: (T,) of the test split;
             metric: a key of `bootstrap`; n: resamples.
    Returns: arm, seed, value, low, high.
    """
    intervals = []
    for row in rows.to_dict("records"):
        ranks = ranks_of(row, figures)
        if len(ranks.t2i) != len(image_of_text):
            raise ValueError(f"run {row['run']} has ranks of {len(ranks.t2i)} texts, the test "
                             f"split has {len(image_of_text)}; give the data it was run on")
        intervals.append(bootstrap(ranks, image_of_text, n=n)[metric])
    return rows[["arm", "seed"]].reset_index(drop=True).join(
        pd.DataFrame(intervals, columns=["value", "low", "high"]))


def curves(rows: pd.DataFrame, figures: Path | str | None = None) -> pd.DataFrame:
    """One line per epoch of every run that ended: `arm` and `seed` of its row, and its history.

    Args:    rows: as `train_arms` gives them; figures: where the curves of real data are kept.
    Raises:  ValueError where a run has left no curve.
    """
    histories = [_curve(row, figures).assign(arm=row["arm"], seed=row["seed"])
                 for row in rows.to_dict("records") if row["status"] in ("done", "diverged")]
    return pd.concat(histories, ignore_index=True)


def generalisation(rows: pd.DataFrame) -> pd.Series:
    """100 log(RSUM on test / RSUM on training images): how much of what a run has learnt by heart
    it keeps, 0 for all of it. The difference of the two would call a run that learns little good.

    Example: 434 on training images, 227 on test
        >>> kept = generalisation(pd.DataFrame({"train_rsum": [434.0], "test_rsum": [227.0]}))
        >>> kept.round(1).tolist()
        [-64.8]
    """
    return 100 * np.log(rows["test_rsum"].astype(float) / rows["train_rsum"].astype(float))


def collapses(rows: pd.DataFrame, figures: Path | str | None = None) -> pd.Series:
    """Why each run has collapsed, empty where it has not, from its curve: also of runs that ended
    before their row said so (`training.collapse`).

    Args:    as in `curves`.
    """
    by_objective: dict[tuple, Any] = {}
    reasons = []
    for row in rows.to_dict("records"):
        if row["status"] != "done":
            reasons.append("")
            continue
        config = RunConfig.model_validate_json(row["config"])
        key = (str(config.objective), config.settings.batch_size)
        if key not in by_objective:
            by_objective[key] = equal_scores(build_objective(config.objective), key[1])
        reasons.append(collapse(_curve(row, figures), by_objective[key]))
    return pd.Series(reasons, index=rows.index, dtype=object)


def _curve(row: dict[str, Any], figures: Path | str | None) -> pd.DataFrame:
    if DATASETS[row["dataset"]].generated:
        result = RunStore().result(row["run"])
        if result is None:
            raise ValueError(f"run {row['run']} is not in the store; train it with train_arms")
        return result.history.table()
    path = figures_folder(figures) / row["dataset"] / "curves" / f"{row['run']}.csv"
    if not path.is_file():
        raise ValueError(f"no curve of run {row['run']}: {path.name} is not beside its row; "
                         "restore it from git")
    return pd.read_csv(StringIO(path.read_text(encoding="utf-8")))
