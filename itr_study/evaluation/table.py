"""The row papers print."""

import numpy as np

from itr_study.evaluation.percent import percent
from itr_study.metrics.ranks import Ranks
from itr_study.metrics.recall import KS, recall_of_ranks
from itr_study.metrics.truth import DIRECTIONS

RETRIEVAL = tuple(f"{direction}_{metric}" for direction in DIRECTIONS
                  for metric in (*(f"r{k}" for k in KS), "medr", "meanr")) + ("rsum",)


def retrieval_table(best: Ranks) -> dict[str, float]:
    """Compute the row papers print: R@1, R@5, R@10 in percent, median and mean rank, RSUM.

    Source: all four papers; RSUM as in listwise and bcls. The median of an even number of ranks may
    end in .5, while published code rounds down.

    Args:
        best: the rank of the best match of every query, as `ranks` gives them.

    Returns:
        i2t_r1, i2t_r5, i2t_r10, i2t_medr, i2t_meanr, the same with t2i, and rsum, the sum of the
        six percentages (at most 600).

    Example:
        >>> table = retrieval_table(Ranks(i2t=np.array([1, 2]), t2i=np.array([1, 7, 30, 1])))
        >>> table["i2t_r1"], table["t2i_r5"], table["t2i_medr"], table["rsum"]
        (50.0, 50.0, 4.0, 425.0)
    """
    table = {name: percent(value) for name, value in recall_of_ranks(best).items()}
    table["rsum"] = sum(table.values())
    for direction in DIRECTIONS:
        each = best.by_direction(direction)
        table |= {f"{direction}_medr": float(np.median(each)),
                  f"{direction}_meanr": float(each.mean())}
    return {name: table[name] for name in RETRIEVAL}
