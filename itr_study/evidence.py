"""What stands beside the seeds of a run table: how learning rates were chosen, how far numbers
would move with other images, and which images are hardest to tell apart."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from itr_study.identity import GENERATED
from itr_study.metrics import Ranks, bootstrap
from itr_study.runs import figures_folder
from itr_study.store import RunStore


def rate_table(rows: pd.DataFrame, frozen: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """The search behind the frozen learning rates: one line per setting, loss and rate.

    Args:    rows: of `plans.rate_arms`, arms named "<setting>/<loss>/<rate>", with dev_rsum.
             frozen: as `plans.frozen_rates` gives them.
    Returns: setting, loss, rate, seed, dev_rsum, best (highest on dev of its setting and loss,
             the smaller rate of equals), frozen (the rate that the sweeps use).
    """
    names = rows["arm"].str.rsplit("/", n=2, expand=True)
    table = pd.DataFrame({"setting": names[0], "loss": names[1], "rate": names[2].astype(float),
                          "seed": rows["seed"], "dev_rsum": rows["dev_rsum"].astype(float)})
    table = table.sort_values(["setting", "loss", "rate"], kind="stable", ignore_index=True)
    groups = table.dropna(subset="dev_rsum").groupby(["setting", "loss"])["dev_rsum"]
    table["best"] = table.index.isin(groups.idxmax())
    table["frozen"] = [np.isclose(frozen[line.setting][line.loss], line.rate)
                       for line in table.itertuples()]
    return table


def rates_said(table: pd.DataFrame) -> str:
    """Whether the frozen rates are the best on dev of a search, in words."""
    best, cases = table[table["best"]], table.groupby(["setting", "loss"]).ngroups
    wrong = best[~best["frozen"]]
    if len(best) == cases and wrong.empty:
        return f"All {cases} frozen learning rates are the best of this search on dev."
    lines = [f"  {line.setting}/{line.loss}: {line.rate:g} is best here"
             for line in wrong.itertuples()]
    return "\n".join([f"{len(best) - len(wrong)} of {cases} frozen learning rates are the best of "
                      "this search on dev; these are not:", *lines])


def ranks_of(row: Mapping[str, Any], figures: Path | str | None = None) -> Ranks:
    """The rank of every test query of a run, from the store or from beside its committed row.

    Args:    row: as `train_arms` gives it; figures: where the rows of real data are kept.
    Raises:  ValueError where neither has them.
    """
    path = figures_folder(figures) / row["dataset"] / "ranks" / f"{row['run']}.npz"
    if row["dataset"] not in GENERATED and path.is_file():
        with np.load(path, allow_pickle=False) as arrays:
            return Ranks(arrays["test_i2t"], arrays["test_t2i"])
    result = RunStore().result(row["run"])
    if result is None:
        raise ValueError(f"no ranks of run {row['run']}: it is neither in the store nor is "
                         f"{path.name} beside its row; restore it from git or train it again")
    found = result.ranks()
    return Ranks(found["test_i2t"], found["test_t2i"])


def over_images(rows: pd.DataFrame, image_of_text: np.ndarray, metric: str = "rsum",
                figures: Path | str | None = None, n: int = 1000) -> pd.DataFrame:
    """One run per line with its bootstrap interval over test images.

    It says how far a number would move with other images, and nothing about other seeds.

    Args:    rows: runs, as `train_arms` gives them; image_of_text: (T,) of the test split;
             metric: a key of `metrics.bootstrap`; n: resamples.
    Returns: arm, seed, value, low, high.
    """
    found = [bootstrap(ranks_of(row, figures), image_of_text, n=n)[metric]
             for row in rows.to_dict("records")]
    return pd.DataFrame({"arm": list(rows["arm"]), "seed": list(rows["seed"]),
                         "value": [one.value for one in found],
                         "low": [one.low for one in found], "high": [one.high for one in found]})


def confusable_pairs(alike: np.ndarray, image_of_text: np.ndarray,
                     count: int = 2) -> list[tuple[int, int, float]]:
    """The images whose texts fit each other best, no image twice.

    Args:    alike: (I, T), how well each text fits each image (relevance, or scores of a model);
             image_of_text: (T,).
    Returns: (first, second, mean over both directions of how well the other's texts fit).
    Example: the text of image 1 fits image 0 with 0.9, that of image 0 fits image 1 with 0.7
        >>> table = np.array([[1.0, 0.9, 0.1], [0.7, 1.0, 0.2], [0.0, 0.3, 1.0]])
        >>> [(i, j, round(v, 2)) for i, j, v in confusable_pairs(table, np.array([0, 1, 2]), 1)]
        [(0, 1, 0.8)]
    """
    texts = np.bincount(image_of_text, minlength=len(alike))
    means = np.zeros((len(alike), len(alike)))
    np.add.at(means.T, image_of_text, np.asarray(alike, dtype=float).T)
    means = means / texts
    both = np.triu(means + means.T, 1) / 2
    both[np.tril_indices(len(alike))] = -np.inf
    found = []
    for _ in range(min(count, len(alike) // 2)):
        first, second = map(int, np.unravel_index(both.argmax(), both.shape))
        found.append((first, second, float(both[first, second])))
        for image in (first, second):
            both[image, :] = both[:, image] = -np.inf
    return found


def mistakes(scores: np.ndarray, relevance: np.ndarray, image_of_text: np.ndarray,
             top: int = 10) -> dict[str, float]:
    """How relevant are the wrong results among the first ones, on average over all of them?

    Args:    scores, relevance: (I, T); image_of_text: (T,); top: results of each query.
    Returns: mean relevance by direction; NaN where nothing among the first is wrong.
    Example: image 0 finds the text of image 1, of relevance 0.8, among its first two
        >>> table = np.array([[0.9, 0.5, 0.1], [0.2, 0.7, 0.1], [0.2, 0.1, 0.9]])
        >>> graded = np.array([[1.0, 0.8, 0.3], [0.8, 1.0, 0.1], [0.3, 0.1, 1.0]])
        >>> round(mistakes(table, graded, np.arange(3), 2)["i2t"], 3)  # 0.8, 0.8, 0.3
        0.633
    """
    match = np.asarray(image_of_text) == np.arange(len(scores))[:, None]
    found = {}
    tables = scores, np.asarray(relevance, dtype=float), match
    for way, (s, r, m) in (("i2t", tables), ("t2i", [table.T for table in tables])):
        first = np.argsort(-s, axis=1, kind="stable")[:, :top]
        wrong = ~np.take_along_axis(m, first, 1)
        values = np.take_along_axis(r, first, 1)[wrong]
        found[way] = float(values.mean()) if len(values) else float("nan")
    return found
