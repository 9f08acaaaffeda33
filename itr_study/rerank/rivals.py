"""The sums under FR's scores: what all queries together think of a candidate.

The logarithm of a softmax over queries is taken in two parts, first (A - m) + (second - first) A
and log(1 + sum exp first (A_l - m)), m a candidate's highest score, without whose query (the
winner) the sum is taken. Nothing overflows, and the small second part, which tells the winners of
many candidates apart, is not lost in the rounding of a large first.
"""

import numpy as np
import torch
from torch import Tensor

from itr_study.metrics.scores import Scores
from itr_study.rerank.base import CANDIDATES, Matrix, doubles, rows_together

LEAST = -700.0  # exp of less is near the smallest number there is


def rivals(scores: Matrix, direction: str, scale: float) -> tuple[Tensor, Tensor]:
    """Of each candidate (n,) its highest score m, and log sum exp scale (A_l - m) of the others.

    Candidates of "i2t" are the texts, and the sum goes over images; of "t2i" the other way round.
    float64; -inf where there is but one query.
    """
    step = rows_together(scores, scores.shape[0 if direction == "i2t" else 1])
    parts = [rivals_of_rows(doubles(block[start:start + step]), scale)
             for _, block in Scores.of(scores).blocks(CANDIDATES[direction], 8 * step)
             for start in range(0, len(block), step)]
    return tuple(torch.cat(part) for part in zip(*parts, strict=True))


def rivals_of_rows(values: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """`rivals` of rows (c, q), which are overwritten. The second keeps the sum in range."""
    top, winner = highest(values)
    values.scatter_(1, winner, -torch.inf)
    second = highest(values)[0].clamp(min=-1e200)  # of one query there is none
    total = torch.add(-scale * second, values, alpha=scale, out=values).exp_().sum(dim=1)
    return top[:, 0], scale * (second - top)[:, 0] + total.log()


def highest(values: Tensor) -> tuple[Tensor, Tensor]:
    """(c, 1) the highest of each row, and its place; on the CPU numpy finds it faster."""
    if values.device.type != "cpu":
        return values.max(dim=1, keepdim=True)
    place = torch.from_numpy(values.numpy().argmax(axis=1))[:, None]
    return values.gather(1, place), place


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)); below the reach of exp it goes on towards 0 in the order of x, so that no
    two numbers give the same for being small."""
    tail = np.exp(LEAST) * LEAST / x.clamp(max=LEAST)
    return torch.where(x < LEAST, tail, x.clamp(min=0) + x.abs().neg().exp().log1p())
