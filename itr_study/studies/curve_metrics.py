"""What learning curves say about a run, as columns beside its row: claims about training itself.

    rows = milestones(train_arms(arms, ...))     first_ndcg, last_error, half_rsum ...
"""

import numpy as np
import pandas as pd

from itr_study.evaluation.percent import percent
from itr_study.studies.results import curves, endings, generalisation

# Means over an epoch of what a loss says of itself -> names here; percent, as all metrics are.
LOGGED = {"smooth_ndcg.ndcg": "ndcg", "smooth_ndcg.smooth_ndcg": "smooth_ndcg",
          "smooth_ndcg.error": "error", "orthogonality.correlation": "head_correlation",
          "orthogonality.mask_rate": "mask_rate", "orthogonality.mask_std": "mask_std",
          "variance_weighted.sigma_std": "sigma_std"}
HALF = {"dev_rsum": ("half_rsum", 1), "triplet_hardest": ("half_hinge", 100)}


def milestones(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with more columns, NaN where a run does not log what they are made of.

    first_<name>, last_<name> for ndcg, smooth_ndcg and error: the loss's diagnostics on training
    batches (listwise Figs. 6, 7), means over the first and the last epoch, percent; the same of
    heads for head_correlation, mask_rate, mask_std, sigma_std (dvse Figs. 4, 6); ndcg_apart:
    100 (1 - correlation) of true and smooth NDCG over the epochs; half_rsum: RSUM on dev when
    half of the epochs are done; half_hinge: the hardest-negative term of the training loss then,
    unweighted, in hundredths of a score; epoch_seconds: the median epoch, evaluation on dev
    included; collapsed, flattened: see `endings`. And of the row itself, generalisation: see there.

    Args:    rows: as `train_arms` gives them.
    """
    by_run = curves(rows).groupby(["arm", "seed"], sort=False)
    milestones_of = {key: _milestones(epochs) for key, epochs in by_run}
    keys = zip(rows["arm"], rows["seed"], strict=True)
    columns = pd.DataFrame([milestones_of.get(key, {}) for key in keys], index=rows.index)
    return pd.concat([rows, columns, endings(rows)], axis=1).assign(
        generalisation=generalisation(rows))


def _milestones(epochs: pd.DataFrame) -> dict[str, float]:
    """Of one run, epochs in order."""
    first, last, half = (epochs.iloc[at] for at in (0, -1, max(1, len(epochs) // 2) - 1))
    columns = {"epoch_seconds": epochs["seconds"].median()}
    columns |= {f"{when}_{short}": percent(epoch[name]) for name, short in LOGGED.items()
                if name in epochs for when, epoch in (("first", first), ("last", last))}
    columns |= {short: scale * half[name] for name, (short, scale) in HALF.items()
                if name in epochs}
    if {"smooth_ndcg.ndcg", "smooth_ndcg.smooth_ndcg"} <= set(epochs):
        columns["ndcg_apart"] = _apart(epochs["smooth_ndcg.ndcg"],
                                       epochs["smooth_ndcg.smooth_ndcg"])
    return columns


def _apart(one: pd.Series, two: pd.Series) -> float:
    """100 (1 - correlation); NaN where either does not move, or fewer than three epochs say."""
    if len(one.dropna()) < 3 or min(one.std(), two.std()) == 0:
        return np.nan
    return percent(1 - float(np.corrcoef(one, two)[0, 1]))
