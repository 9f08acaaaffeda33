"""The arms of notebook 08: models whose rows say what re-ranking makes of their scores.

No training is re-ranked: these are runs of other notebooks, measured re-ranked.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

from itr_study.evaluation.percent import percent
from itr_study.evaluation.search import Searcher
from itr_study.lab.ledger.reported import RECALLS
from itr_study.lab.studies.arms import ArmRun, base_config, over_seeds, sum_of, with_loss
from itr_study.lab.studies.bases import frozen_rates
from itr_study.lab.studies.nb06_kendall import COMPARED
from itr_study.lab.studies.results import kept_table
from itr_study.rerank import fast_grid

RERANKED = ("reranked",)  # what rows with recalls after re-ranking are asked for


def reranked_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Tables I-IV: every model of `parameters.reranked`, labelled as everywhere ("hardest",
    "vsepp+gru/hardest"): those of one model over the seeds of its comparison, `compared_seeds`."""
    return [run for label in parameters.reranked
            for run in _over_seeds(label, dataset, parameters)]


def scale_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Fig. 7: the model whose scores are normalised on the whole grid of scales."""
    return [run for run in reranked_arms(dataset, parameters) if run.label == parameters.swept]


def tuned_arms(dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """Fig. 7 beyond the paper: models whose scores lie apart by more or less."""
    return [run for run in reranked_arms(dataset, parameters) if run.label in parameters.tuned
            and run.config.seed < parameters.tuned_seeds]


def _over_seeds(label: str, dataset: str, parameters: SimpleNamespace) -> list[ArmRun]:
    """The runs of a label, those that other notebooks train under it."""
    setting, _, loss = label.rpartition("/")
    start = base_config(dataset, "two_branch", parameters)
    if setting:
        rates = frozen_rates(dataset)[setting]
        start = with_loss(dataset, setting, parameters, "hardest",
                          rates.get(loss, rates["hardest"]))
    seeds = parameters.seeds if setting else parameters.compared_seeds
    return over_seeds(label, sum_of(start, *COMPARED[loss]), seeds, RERANKED)


# What re-ranking makes of runs, as arms beside them: rows that the ledger and tables can compare.
#
#     rows = with_rerankers(study.train(reranked_arms))     "hardest", and "hardest@fast" of its
#     rows
#     grid = scale_grid(searcher_of_split, scales)          Fig. 7: R@1 at every pair of scales
#     arms = scale_rows(grid, rows)                         "hardest@fast(25)",
#     "hardest@fast(1<2)" …
#
# A pair of scales is written first, second: of Eq. 15 first is what multiplies the scores inside
# the sum (gamma1, for texts that are searched by images; lambda1 the other way), second what
# multiplies the pair's own score (gamma2, lambda2).

METHODS = ("fast", "fast_bank", "reciprocal", "multi")
MEASURED = (*RECALLS, "test_rsum", "test_i2t_hubness", "test_t2i_hubness")
KEPT = ("arm", "seed", "dataset", "model", "run", "status", "seen", "data", "collapsed",
        "flattened", "config", "arithmetic")  # of a run, re-ranked
WINNER = {"i2t": "test_i2t_r1", "t2i": "test_t2i_r1"}
REGIONS: dict[str, Callable[[pd.Series, pd.Series], pd.Series]] = {
    "1=2": pd.Series.eq, "1>2": pd.Series.gt, "1<2": pd.Series.lt}  # of first and second


def with_rerankers(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows, each also as it is after every re-ranker: arm "hardest@fast" beside "hardest".

    Its columns of recall, RSUM and hubness are those after re-ranking; what was not measured after
    it is NaN. Two columns are new: `rerank_gain`, RSUM after less RSUM before, and
    `rerank_seconds`, what re-ranking took beyond plain ranks. Rows that were not re-ranked stay
    alone.

    Args:    rows: as `Study.train` gives them.
    """
    parts = [rows.assign(rerank_gain=0.0, rerank_seconds=0.0)]
    for method in METHODS if f"test_{METHODS[0]}_rsum" in rows else ():
        measured = rows[rows[f"test_{method}_rsum"].notna()]
        after = {name: measured[name.replace("test_", f"test_{method}_", 1)] for name in MEASURED
                 if name.replace("test_", f"test_{method}_", 1) in measured}
        kept = measured[[name for name in KEPT if name in measured]]
        parts.append(kept.assign(
            **after, arm=measured["arm"] + f"@{method}",
            rerank_gain=after["test_rsum"] - measured["test_rsum"],
            rerank_seconds=measured.get(f"seconds_{method}", np.nan)))
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def scale_grid(splits: Mapping[str, Searcher], scales: Sequence[float]) -> pd.DataFrame:
    """R@1 after FR at every pair of scales, in percent, on several splits of one run.

    Args:    splits: "dev" and "test", each encoded by the run's model; scales: above 0.
    Returns: one line a direction and pair: direction, first, second, dev_r1, test_r1.
    """
    columns = {}
    for split, searcher in splits.items():
        by_direction = fast_grid(searcher.scores, searcher.split.image_of_text, scales, scales)
        columns[f"{split}_r1"] = percent(np.concatenate(
            [np.ravel(by_direction[direction]) for direction in WINNER]))
    pairs = pd.MultiIndex.from_product([WINNER, scales, scales],
                                       names=["direction", "first", "second"])
    return pd.DataFrame(columns, index=pairs).reset_index()


def best_scales(grid: pd.DataFrame, by: str = "dev_r1") -> pd.DataFrame:
    """The pair of scales with the highest mean over seeds, a line a direction; of equals the
    smallest."""
    cells = grid.groupby(["direction", "first", "second"], as_index=False)
    means = cells[["dev_r1", "test_r1"]].mean()
    return means.loc[means.groupby("direction")[by].idxmax()].set_index("direction")


def tuned_scales(curves: pd.DataFrame) -> pd.DataFrame:
    """The scale that each model chooses on dev, a line a model and direction: that of the highest
    mean of R@1 over its runs, of equals the smallest; beside it the mean spread of its scores.

    Args:    curves: as `scale_grid` of equal scales, with arm, seed and spread.
    Returns: arm, direction, first (the scale), dev_r1, spread, at_edge (of those tried).
    """
    cells = curves.groupby(["arm", "direction", "first"], as_index=False)
    means = cells[["dev_r1", "spread"]].mean()
    best = means.loc[means.groupby(["arm", "direction"])["dev_r1"].idxmax()]
    ends = [curves["first"].min(), curves["first"].max()]
    return best.assign(at_edge=best["first"].isin(ends)).reset_index(drop=True)


def scale_rows(grid: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """The grid as arms of the ledger, R@1 on test each: of one run every equal pair of scales
    ("hardest@fast(25)"), the mean over the pairs of a region ("hardest@fast(1>2)": first above
    second), the best pair of a region by dev ("hardest@fast(best 1>2)") and of all ("…(best)").

    Args:    grid: as `scale_grid`, with arm and seed; rows: the runs behind it.
    """
    records = []
    for (arm, seed), part in grid.groupby(["arm", "seed"], sort=False):
        by_label: dict[str, dict[str, float]] = {}
        for direction, cells in part.groupby("direction"):
            for label, value in _of_direction(cells).items():
                by_label.setdefault(label, {})[WINNER[direction]] = value
        records += [{"arm": f"{arm}@fast({label})", "of": arm, "seed": seed} | values
                    for label, values in by_label.items()]
    known = rows[[name for name in KEPT if name in rows]].rename(columns={"arm": "of"})
    arms = pd.DataFrame(records, columns=["arm", "of", "seed", *WINNER.values()])
    return arms.merge(known, on=["of", "seed"]).drop(columns="of")


def _of_direction(cells: pd.DataFrame) -> dict[str, float]:
    """R@1 on test by label, of one run and direction."""
    diagonal = cells[cells["first"] == cells["second"]]
    values = {f"{scale:g}": r1 for scale, r1 in zip(diagonal["first"], diagonal["test_r1"],
                                                    strict=True)}
    for name, holds in REGIONS.items():
        region = cells[holds(cells["first"], cells["second"])]
        values[name] = region["test_r1"].mean()
        values[f"best {name}"] = region.loc[region["dev_r1"].idxmax(), "test_r1"]
    return values | {"best": cells.loc[cells["dev_r1"].idxmax(), "test_r1"]}


def kept_grid(figures: Path | str | None, dataset: str, rows: pd.DataFrame) -> pd.DataFrame:
    """The grid that notebook 08 saved with its figure, or an empty one; args as `kept_table`."""
    kept = kept_table(figures, dataset, "08_reranking__scales", rows)
    return pd.DataFrame(columns=["arm", "seed", "direction", "first", "second"]) \
        if kept is None else kept
