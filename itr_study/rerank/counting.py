"""Ranks of scores that are a matrix minus a handicap of each candidate, without writing them.

Single precision decides nearly all comparisons: counted are the candidates above a bound just
below the best match and those above one just above it. Where a query has others between the two it
is counted anew in double precision.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from itr_study.metrics.ranks import elsewhere, wide
from itr_study.rerank.base import Matrix, rows_together

MOST_ROWS = 255  # of which hits are summed in uint8


def count(scores: Matrix, direction: str, handicap: np.ndarray,
          least: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """For each bound (Q,), how many candidates of a query have A - handicap at or above it.

    Args:
        handicap: (n,) of the candidates, float32; least: bounds of the queries, float32.
    """
    counts = tuple(np.zeros(len(bound), np.int64) for bound in least)
    for rows, part in shifted(scores, direction, handicap):
        for total, bound in zip(counts, least, strict=True):
            if direction == "i2t":
                total[rows] = hits_of_rows(part, bound[rows])
            else:
                total += hits_of_columns(part, bound)
    return counts


def shifted(scores: Matrix, direction: str,
            handicap: np.ndarray) -> Iterator[tuple[slice, Matrix]]:
    """(rows, A - handicap) of some rows after the other, float32; the next overwrites the last."""
    step = min(MOST_ROWS, rows_together(scores, scores.shape[1]))
    room = None
    for start in range(0, len(scores), step):
        rows = slice(start, min(start + step, len(scores)))
        off = handicap if direction == "i2t" else handicap[rows, None]
        part = wide(scores[rows])
        if elsewhere(part):
            yield rows, part.float() - torch.from_numpy(off).to(part.device)
            continue
        room = np.empty(part.shape, np.float32) if room is None else room[:len(part)]
        yield rows, np.subtract(np.asarray(part), off, out=room, casting="same_kind")


def hits_of_rows(part: Matrix, bound: np.ndarray) -> np.ndarray:
    """(q,) numbers of each row that are at least its bound."""
    if isinstance(part, Tensor):
        hit = part >= torch.from_numpy(bound).to(part.device)[:, None]
        return hit.sum(dim=1).cpu().numpy()
    hit = part >= bound[:, None]
    return np.array([np.count_nonzero(row) for row in hit])  # several times faster than axis=1


def hits_of_columns(part: Matrix, bound: np.ndarray) -> np.ndarray:
    """(n,) numbers of each column that are at least its bound."""
    if isinstance(part, Tensor):
        return (part >= torch.from_numpy(bound).to(part.device)).sum(dim=0).cpu().numpy()
    return np.add.reduce((part >= bound).view(np.uint8), axis=0, dtype=np.uint8)
