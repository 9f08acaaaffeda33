"""How the frozen learning rates were chosen."""

from collections.abc import Mapping

import numpy as np
import pandas as pd


def rate_table(rows: pd.DataFrame, frozen: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """The search behind the frozen learning rates: one line per setting, loss and rate.

    Args:    rows: of `topk.rate_arms`, arms named "<setting>/<loss>/<rate>", with dev_rsum.
             frozen: as `bases.frozen_rates` gives them.
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


def rates_verdict(table: pd.DataFrame) -> str:
    """Whether the frozen rates are the best on dev of a search, in words."""
    best, cases = table[table["best"]], table.groupby(["setting", "loss"]).ngroups
    wrong = best[~best["frozen"]]
    if len(best) == cases and wrong.empty:
        return f"All {cases} frozen learning rates are the best of this search on dev."
    lines = [f"  {line.setting}/{line.loss}: {line.rate:g} is best here"
             for line in wrong.itertuples()]
    return "\n".join([f"{len(best) - len(wrong)} of {cases} frozen learning rates are the best of "
                      "this search on dev; these are not:", *lines])
