"""Pictures of re-ranking, from numbers made up."""

from functools import cache

import numpy as np
import pandas as pd

from itr_study import plots

SCALES = [1.0, 5.0, 25.0]
FLIP = np.array([[0.5, 0.9], [0.2, 0.6]])  # image 0 finds text 1; turned round, its own
WAYS = ("i2t", "t2i")


@cache
def reranking_pictures() -> dict:
    """One of each kind."""
    grid = pd.DataFrame([(way, first, second, second - first) for way in WAYS for first in SCALES
                         for second in SCALES], columns=["direction", "first", "second", "gain"])
    chosen = pd.DataFrame({"first": 5.0, "second": 25.0}, index=WAYS)
    hubs = pd.DataFrame([(way, method, count, many) for way in WAYS
                         for method in ("before", "after")
                         for count, many in ((0, 1), (1, 2), (9, 1))],
                        columns=["direction", "method", "occurrences", "candidates"])
    return {"scales": plots.scale_maps(grid, "It hurts below", {"printed": chosen}, "n = 1"),
            "hubs": plots.occurrence_lines(hubs, "One is everywhere"),
            "flip": plots.schematic_rerank({"scores": FLIP, "shares": FLIP.T}, "It turns")}
