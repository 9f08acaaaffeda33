"""NDCG of every row of scores, smooth and true: what the losses on NDCG share.

    NDCG_i = (1 / ideal_i) sum_j (2^r_ij - 1) / log2(1 + rank_ij)

The ideal is the largest value any order can have: the gains sorted down, at ranks 1, 2, 3, ... so
that equal relevances take different ranks.
"""

import math

import numpy as np
import torch
from torch import Tensor

from itr_study.losses._ranks import smooth_rank


def smooth_ndcg(scores: Tensor, relevance: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """(I,) NDCG of every image's list with smooth ranks, and where it has anything to find."""
    return ndcg(relevance, smooth_rank(scores, temperature))


def true_ndcg(scores: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    """As smooth_ndcg, with rank 1 + the number of larger scores (listwise Eq. 10).

    Ties share the best of their ranks, so lists with ties may exceed 1.
    """
    order = falling(scores)
    ranked = scores.gather(1, order)
    places = torch.arange(scores.shape[1], device=scores.device).expand_as(order)
    tied = torch.zeros_like(order, dtype=torch.bool)
    tied[:, 1:] = ranked[:, 1:] == ranked[:, :-1]
    return ndcg(relevance.gather(1, order), 1 + places.masked_fill(tied, 0).cummax(dim=1).values)


def ndcg(relevance: Tensor, rank: Tensor) -> tuple[Tensor, Tensor]:
    """(I,) NDCG of every row, 0 where all gains are 0, and (I,) bool, where one is not."""
    best = relevance.gather(1, falling(relevance))
    ideal = discounted(best, torch.arange(1, best.shape[1] + 1, device=best.device))
    return discounted(relevance, rank) / ideal.where(ideal > 0, 1.0), ideal > 0


def falling(values: Tensor) -> Tensor:
    """(I, T) int64, the columns of every row, largest value first; on a CPU by numpy, which sorts
    several times as fast as torch there."""
    if values.device.type == "cpu":
        return torch.from_numpy(np.argsort(values.detach().numpy(), axis=1)).flip(1)
    return values.detach().argsort(dim=1, descending=True)


def discounted(relevance: Tensor, rank: Tensor) -> Tensor:
    """(I,) sum of the gains of each row, discounted by rank."""
    gain = torch.expm1(relevance * math.log(2))  # 2^r - 1
    return (gain / torch.log2(1 + rank.to(gain.dtype))).sum(dim=1)
