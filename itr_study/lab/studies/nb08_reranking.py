"""The arms of notebook 08: models whose rows say what re-ranking makes of their scores.

No training is re-ranked: these are runs of other notebooks, measured re-ranked.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from pydantic import PositiveInt, model_validator

from itr_study.evaluation.search import Searcher
from itr_study.evaluation.table import percent
from itr_study.lab.ledger.reported import RECALLS
from itr_study.lab.studies.arms import FACTORS, ArmRun, base_config, over_seeds, sum_of, with_loss
from itr_study.lab.studies.bases import frozen_rates, searched_rates
from itr_study.lab.studies.nb06_kendall import COMPARED
from itr_study.lab.studies.parameters import Factor, Names, Parameters, by_profile
from itr_study.lab.studies.results import kept_table
from itr_study.rerank import fast_grid

RERANKED = ("reranked",)  # what rows with recalls after re-ranking are asked for
SCALES = [1.0, *map(float, [*range(5, 50, 5), *range(50, 500, 50), *range(500, 1501, 100)])]
RANKED = ["hardest", "sum", "hardest+listwise", "soft", "bcls", "top5", "listwise", "info_nce",
          "vsepp+gru/hardest", "vsepp+gru/sum"]


def models_of(given: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Give the factors of what can be re-ranked by label: "hardest", "vsepp+gru/hardest"."""
    return {loss: {"loss": loss} for loss in COMPARED} | {
        f"{setting}/{loss}": {"setting": setting, "loss": loss}
        for setting in searched_rates(given["dataset"]) for loss in COMPARED}


class RerankingParameters(Parameters, title="08_reranking"):
    """Parameters of notebook 08."""

    seeds: PositiveInt = by_profile(
        'runs of each model with a setting of its own, such as "vsepp+gru/..."', 1, 5, 5)
    reranked: Names = by_profile(
        "models that are re-ranked", ["hardest", "sum", "vsepp+gru/hardest"],
        [*RANKED, "vsepp+gru/bcls"], [*RANKED, "vsepp+gru/hardest+listwise", "vsepp+gru/bcls"],
        among=models_of)
    compared_seeds: PositiveInt = by_profile("runs of each of the others", 1, 5, 12)
    swept: str = by_profile("the one of them that most sections look at", *3 * ["hardest"])
    scales: list[Factor] = by_profile("grid of FR's scales, per unit of score, above 0",
                                      [5.0, 25.0, 100.0], *2 * [SCALES])
    tuned: Names = by_profile(
        "models whose best scale is looked for", ["hardest", "sum"],
        ["hardest", "sum", "vsepp+gru/hardest"], ["hardest", "sum", "listwise",
                                                  "vsepp+gru/hardest"])
    tuned_seeds: PositiveInt = by_profile("runs of each of these, whose weights are needed",
                                          1, 3, 5)

    @model_validator(mode="after")
    def check_chosen(self) -> Self:
        """Refuse a single scale, and models that are not re-ranked."""
        if len(self.scales) < 2:
            raise ValueError(f"scales must hold two or more, got {self.scales}: the first of a "
                             "pair is taken above and below the second")
        for name in ("swept", "tuned"):
            self.check_within(name, self.reranked, "reranked")
        return self


def reranked_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List Tables I-IV, every model of `parameters.reranked`, as other notebooks train it."""
    known, runs = models_of({"dataset": dataset}), []
    for label in parameters.reranked:
        start, seeds = base_config(dataset, "two_branch", parameters), parameters.compared_seeds
        loss = known[label]["loss"]
        if setting := known[label].get("setting"):
            rates, seeds = frozen_rates(dataset, parameters.rates_here)[setting], parameters.seeds
            start = with_loss(dataset, setting, parameters, "hardest",
                              rates.get(loss, rates["hardest"]))
        runs += over_seeds(label, sum_of(start, *COMPARED[loss]), seeds, RERANKED, **known[label])
    return runs


def scale_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List Fig. 7: the model whose scores are normalised on the whole grid of scales."""
    return [run for run in reranked_arms(dataset, parameters) if run.label == parameters.swept]


def tuned_arms(dataset: str, parameters: Parameters) -> list[ArmRun]:
    """List Fig. 7 beyond the paper: models whose scores spread more or less."""
    return [run for run in reranked_arms(dataset, parameters) if run.label in parameters.tuned
            and run.config.seed < parameters.tuned_seeds]


ARMS = (reranked_arms,)  # the others are some of their runs


# What re-ranking makes of runs, as arms that the ledger and tables can compare. A pair of scales is
# written first, second: of Eq. 15 first is what multiplies the scores inside the sum (gamma1, for
# texts that are searched by images; lambda1 the other way), second what multiplies the pair's own
# score (gamma2, lambda2).

METHODS = ("fast", "fast_bank", "reciprocal", "multi")
MEASURED = (*RECALLS, "test_rsum", "test_i2t_hubness", "test_t2i_hubness")
KEPT = ("arm", "seed", "dataset", "model", "run", "status", "seen", "data", "collapsed",
        "flattened", "config", "arithmetic",
        *(name for name in FACTORS if name != "reranker"))  # of a run, re-ranked
WINNER = {"i2t": "test_i2t_r1", "t2i": "test_t2i_r1"}
REGIONS: dict[str, Callable[[pd.Series, pd.Series], pd.Series]] = {
    "1=2": pd.Series.eq, "1>2": pd.Series.gt, "1<2": pd.Series.lt}  # of first and second


def with_rerankers(rows: pd.DataFrame) -> pd.DataFrame:
    """Add each row as it is after every re-ranker: "hardest@fast" next to "hardest".

    New rows have recall, RSUM and hubness after re-ranking, and NaN for what was not measured after
    it; new columns are reranker, rerank_gain (RSUM after less RSUM before) and rerank_seconds
    (beyond plain ranks). Rows that were not re-ranked stay alone.
    """
    parts = [rows.copy().assign(rerank_gain=0.0, rerank_seconds=0.0)]
    for method in METHODS if f"test_{METHODS[0]}_rsum" in rows else ():
        measured = rows[rows[f"test_{method}_rsum"].notna()]
        after = {name: measured[found] for name in MEASURED
                 if (found := name.replace("test_", f"test_{method}_", 1)) in measured}
        parts.append(measured[[name for name in KEPT if name in measured]].assign(
            **after, arm=measured["arm"] + f"@{method}", reranker=method,
            rerank_gain=after["test_rsum"] - measured["test_rsum"],
            rerank_seconds=measured.get(f"seconds_{method}", np.nan)))
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def scale_grid(splits: Mapping[str, Searcher], scales: Sequence[float]) -> pd.DataFrame:
    """Compute R@1 after FR at every pair of scales, in percent, on dev and test of one run.

    Gives direction, first, second, dev_r1, test_r1, a line a direction and pair.
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
    """Find the pair of scales with the highest mean over seeds, of equals the smallest."""
    cells = grid.groupby(["direction", "first", "second"], as_index=False)
    means = cells[["dev_r1", "test_r1"]].mean()
    return means.loc[means.groupby("direction")[by].idxmax()].set_index("direction")


def tuned_scales(curves: pd.DataFrame) -> pd.DataFrame:
    """Find the scale with the highest mean of R@1 on dev, of equals the smallest.

    Of rows of `scale_grid` of equal scales, with arm, seed and spread (of its scores), it gives
    arm, direction, first (the scale), dev_r1, spread (mean), at_edge (of those tried).
    """
    cells = curves.groupby(["arm", "direction", "first"], as_index=False)
    means = cells[["dev_r1", "spread"]].mean()
    best = means.loc[means.groupby(["arm", "direction"])["dev_r1"].idxmax()]
    ends = [curves["first"].min(), curves["first"].max()]
    return best.assign(at_edge=best["first"].isin(ends)).reset_index(drop=True)


def scale_rows(grid: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Turn a `scale_grid`, with arm and seed, into arms of the ledger, R@1 on test each.

    They are of each run every equal pair of scales ("hardest@fast(25)"), the mean over the pairs of
    a region ("hardest@fast(1>2)": first above second), the best pair of a region by dev
    ("hardest@fast(best 1>2)") and of all ("hardest@fast(best)").
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
    """Compute R@1 on test by label, of one run and direction."""
    diagonal = cells[cells["first"] == cells["second"]]
    values = {f"{scale:g}": r1 for scale, r1 in zip(diagonal["first"], diagonal["test_r1"],
                                                    strict=True)}
    for name, holds in REGIONS.items():
        region = cells[holds(cells["first"], cells["second"])]
        values[name] = region["test_r1"].mean()
        values[f"best {name}"] = region.loc[region["dev_r1"].idxmax(), "test_r1"]
    return values | {"best": cells.loc[cells["dev_r1"].idxmax(), "test_r1"]}


def kept_grid(figures: Path | str | None, dataset: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Read the grid that notebook 08 saved with its figure, or an empty one."""
    kept = kept_table(figures, dataset, "08_reranking__scales", rows)
    return pd.DataFrame(columns=["arm", "seed", "direction", "first", "second"]) \
        if kept is None else kept
