"""What a figure was made with."""

from types import SimpleNamespace
from typing import Any

import pandas as pd


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
