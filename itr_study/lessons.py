"""What notebooks ask of runs and data beyond one number: curves, provenance, paired differences,
and how often two captions of one image meet in a batch."""

from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from itr_study.data.batches import EncodedSplit
from itr_study.identity import GENERATED
from itr_study.paired import Arms
from itr_study.runs import figures_folder
from itr_study.sampling import epoch_samples
from itr_study.settings import Settings
from itr_study.store import RunStore


def made_with(knobs: SimpleNamespace, rows: pd.DataFrame | None = None,
              **more: Any) -> dict[str, Any]:
    """The provenance of a figure: profile, knobs set by hand, and seeds, ids and data of its runs.

    Args:    knobs: as `profiles.choose` gives them; rows: as `train_arms` gives them, None where
             nothing was trained; more: what else the reader of the figure must know, such as the
             fingerprint of the data.
    """
    origin = {"profile": knobs.profile, "knobs": knobs.explicit}
    if rows is None:
        return origin | {"seeds": []} | more
    fingerprints = rows["data"].dropna().unique() if "data" in rows else []
    return origin | {"seeds": sorted({int(seed) for seed in rows["seed"]}),
                     "run_ids": sorted(set(rows["run"])), "data": ", ".join(fingerprints)} | more


def curves(rows: pd.DataFrame, figures: Path | str | None = None) -> pd.DataFrame:
    """One line per epoch of every run that ended: `arm` and `seed` of its row, and its history.

    Args:    rows: as `train_arms` gives them; figures: where the curves of real data are kept.
    Raises:  ValueError where a run has left no curve.
    """
    found = [_curve(row, figures).assign(arm=row["arm"], seed=row["seed"])
             for row in rows.to_dict("records") if row["status"] in ("done", "diverged")]
    return pd.concat(found, ignore_index=True)


def _curve(row: dict[str, Any], figures: Path | str | None) -> pd.DataFrame:
    if row["dataset"] in GENERATED:
        result = RunStore().result(row["run"])
        if result is None:
            raise ValueError(f"run {row['run']} is not in the store; train it with train_arms")
        return result.history.table()
    path = figures_folder(figures) / row["dataset"] / "curves" / f"{row['run']}.csv"
    if not path.is_file():
        raise ValueError(f"no curve of run {row['run']}: {path.name} is not beside its row; "
                         "restore it from git")
    return pd.read_csv(StringIO(path.read_text(encoding="utf-8")))


def differences(rows: pd.DataFrame, pairs: Sequence[tuple[str, str]],
                metrics: Sequence[str]) -> pd.DataFrame:
    """Paired differences of arms over the seeds they share, with their 95 % interval.

    Args:    rows: arm, seed, dataset, model and metrics; pairs: (arm, the one taken from it).
    Returns: comparison, arm_a, arm_b, metric, n, difference, low, high; the interval of a single
             pair is NaN.
    """
    arms, records = Arms(rows), []
    for arm_a, arm_b in pairs:
        for metric in metrics:
            part = arms.part(arm_a, arm_b, metric)
            low, high = part.interval() if len(part.seeds) > 1 else (np.nan, np.nan)
            records.append({"comparison": f"{arm_a} − {arm_b}", "arm_a": arm_a, "arm_b": arm_b,
                            "metric": metric, "n": len(part.seeds), "difference": part.mean,
                            "low": low, "high": high})
    return pd.DataFrame(records)


def verdict(low: float, high: float) -> str:
    """What an interval of a difference says about its sign.

    Example:
        >>> verdict(0.5, 2.0), verdict(-2.0, -0.5), verdict(-1.0, 2.0), verdict(np.nan, np.nan)
        ('higher', 'lower', 'undecided', 'undecided (one seed)')
    """
    if np.isnan(low):
        return "undecided (one seed)"
    return "higher" if low > 0 else "lower" if high < 0 else "undecided"


def expected_siblings(texts_per_image: Sequence[int], batch: int) -> float:
    """Pairs of captions of one image that a random batch holds, on average.

    Each of the sum over images of n (n - 1) / 2 pairs is in a batch of B of the T texts with
    probability B (B - 1) / (T (T - 1)).

    Example: 2 images with 2 texts each; of the 6 batches of two, 2 hold a pair
        >>> round(expected_siblings([2, 2], 2), 4)
        0.3333
    """
    counts = np.asarray(texts_per_image, dtype=float)
    total = counts.sum()
    chance = batch * (batch - 1) / (total * (total - 1))
    return float((counts * (counts - 1) / 2).sum() * chance)


def counted_siblings(split: EncodedSplit, settings: Settings, seed: int = 0) -> np.ndarray:
    """The same pairs, counted in every batch of the first epoch of a run."""
    found = []
    for sample in epoch_samples(split, settings, seed, 0):
        counts = np.unique(split.image_of_text[sample.texts], return_counts=True)[1]
        found.append(int((counts * (counts - 1) // 2).sum()))
    return np.array(found)
