"""How learning rates are chosen: the best on dev of a grid, which must lie inside it.

A best rate at the edge of its grid says that a better one may lie beyond, and a comparison at such
rates may be one of grids. `chosen_rates` refuses it. What was frozen before that rule stays until
the grids are widened, and is marked wherever it is shown (`bases.at_edge`).
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd


def rate_table(rows: pd.DataFrame, frozen: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """The search behind the frozen learning rates: one line per setting, loss and rate.

    Args:    rows: of `topk.rate_arms` or `judges.judge_rate_arms`, arms named
             "<setting>/<loss>/<rate>", with dev_rsum; also of runs that diverged, whose rates were
             tried, with NaN.
             frozen: as `bases.frozen_rates` or, by setting, `judges.judge_rates` gives them.
    Returns: setting, loss, rate, seed, dev_rsum, best (highest on dev of its setting and loss,
             the smaller rate of equals), edge ("smallest" or "largest" rate tried, else ""),
             frozen (the rate that the sweeps use).
    """
    names = rows["arm"].str.rsplit("/", n=2, expand=True)
    table = pd.DataFrame({"setting": names[0], "loss": names[1], "rate": names[2].astype(float),
                          "seed": rows["seed"], "dev_rsum": rows["dev_rsum"].astype(float)})
    table = table.sort_values(["setting", "loss", "rate"], kind="stable", ignore_index=True)
    groups = table.dropna(subset="dev_rsum").groupby(["setting", "loss"])["dev_rsum"]
    table["best"] = table.index.isin(groups.idxmax())
    grids = table.groupby(["setting", "loss"])["rate"]
    ends = [table["rate"] <= grids.transform("min"), table["rate"] >= grids.transform("max")]
    table["edge"] = np.select(ends, ["smallest", "largest"], "")
    table["frozen"] = [np.isclose(frozen[line.setting][line.loss], line.rate)
                       for line in table.itertuples()]
    return table


def chosen_rates(table: pd.DataFrame) -> dict[str, dict[str, float]]:
    """The best rate of every setting and loss of a search: setting -> loss -> rate.

    Raises:  ValueError where a best rate is the smallest or the largest tried, and where all runs
             diverged, with the remedy.
    """
    if lost := without_best(table):
        raise ValueError(f"no learning rate is chosen for {', '.join(lost)}: all runs diverged; "
                         "try smaller rates")
    if beyond := at_the_edge(table):
        raise ValueError(f"a learning rate at the edge of its grid is not chosen: {beyond}; widen "
                         "the grid (`tried` in studies/bases, or the parameter `rates` of "
                         "notebook 03, `judge_factors` of 12) until every best lies inside")
    rates: dict[str, dict[str, float]] = {}
    for line in table[table["best"]].itertuples():
        rates.setdefault(line.setting, {})[line.loss] = line.rate
    return rates


def without_best(table: pd.DataFrame) -> list[str]:
    """What a search found no rate for: all its runs diverged."""
    found = table.groupby(["setting", "loss"], sort=False)["best"].any()
    return ["/".join(names) for names in found.index[~found]]


def at_the_edge(table: pd.DataFrame) -> str:
    """The best rates of a search that lie at an edge of what was tried, in words."""
    lines = []
    for line in table[table["best"] & (table["edge"] != "")].itertuples():
        grid = table.loc[(table["setting"] == line.setting) & (table["loss"] == line.loss), "rate"]
        tried = ", ".join(f"{rate:g}" for rate in grid)
        lines.append(f"{line.setting}/{line.loss} at {line.rate:g}, the {line.edge} of {tried}")
    return "; ".join(lines)


def rates_verdict(table: pd.DataFrame) -> str:
    """Whether the frozen rates are the best on dev of a search, and inside what was tried."""
    best, cases = table[table["best"]], table.groupby(["setting", "loss"]).ngroups
    wrong, edges = best[~best["frozen"]], best[best["edge"] != ""]
    if len(best) == cases and wrong.empty:
        lines = [f"All {cases} frozen learning rates are the best of this search on dev."]
    else:
        lines = [f"{len(best) - len(wrong)} of {cases} frozen learning rates are the best of "
                 "this search on dev; these are not:"]
        lines += [f"  {line.setting}/{line.loss}: {line.rate:g} is best here"
                  for line in wrong.itertuples()]
        lines += [f"  {name}: all runs diverged" for name in without_best(table)]
    if len(edges):
        lines += [f"{len(edges)} of {cases} best rates lie at the edge of what was tried (§): a "
                  "better one may lie beyond."]
    return "\n".join(lines)
