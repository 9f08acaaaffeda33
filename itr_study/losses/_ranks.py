"""Smooth ranks and NDCG: what Smooth-NDCG and ApproxNDCG share.

    rank_j = 1 + sum_{k != j} sigmoid((s_k - s_j) / tau)    along every row of scores
    NDCG_i = (1 / ideal_i) sum_j (2^r_ij - 1) / log2(1 + rank_ij)

Ranks are made in two ways, equal up to rounding. Pair by pair: all T x T differences of a few rows
at a time. By cells (`_cells.py`): items within a fraction of tau of each other are taken together,
some T instead of T^2 steps a row. The number of cells depends on the scores, so only a CPU takes
them: another device would stop to tell. Both keep O(I T) memory: the differences are computed again
for the gradient, unless there are few enough to be kept.

The ideal is the largest value of any order: gains sorted down, equal ones at different ranks.
"""

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from itr_study.losses import _cells

AT_ONCE = 2**18  # pairs whose differences are held at one time: what fits a core's cache
AT_ONCE_ELSEWHERE = 2**24  # on other devices, to keep them busy: 64 MB in float32
KEPT = 2**21  # pairs that are kept for the gradient rather than computed again, 8 MB in float32


def smooth_rank(scores: Tensor, temperature: float) -> Tensor:
    """Return the smooth rank (I, T) of every text in its row, 1 to T; differentiable once."""
    return _SmoothRank.apply(scores, temperature)


class _SmoothRank(torch.autograd.Function):
    """The rank, with a gradient that is computed again instead of kept."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, temperature: float) -> Tensor:
        scores = scores.contiguous()
        ctx.temperature = temperature
        cells = scores.device.type == "cpu" and _cells.suit(scores, temperature)
        ctx.method = _cells if cells else Pairs
        ctx.kept = ctx.method is Pairs and scores.numel() * scores.shape[1] <= KEPT
        with _full_precision(scores):
            if ctx.kept:
                ahead = _ahead(scores, temperature)
                ctx.save_for_backward(ahead)
                return 1 + ahead.sum(dim=2)
            ctx.save_for_backward(scores)
            return ctx.method.ranks(scores, temperature)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (saved,) = ctx.saved_tensors
        with _full_precision(saved):
            if ctx.kept:
                return _pull_back(saved, ctx.temperature, grad), None
            return ctx.method.pull_back(saved, ctx.temperature, grad), None


def _full_precision(scores: Tensor) -> AbstractContextManager:
    """Switch autocast off; it has no tensors without values ("meta"), which trace a graph."""
    device = scores.device.type
    return torch.autocast(device, enabled=False) if device != "meta" else nullcontext()


class Pairs:
    """Ranks pair by pair: for short lists, scores spread over very many temperatures, and NaN."""

    @staticmethod
    def ranks(scores: Tensor, temperature: float) -> Tensor:
        """Return ranks (I, T)."""
        return torch.cat([1 + _ahead(rows, temperature).sum(dim=2)
                          for rows in scores.split(_rows_at_once(scores))])

    @staticmethod
    def pull_back(scores: Tensor, temperature: float, grad: Tensor) -> Tensor:
        """Return the gradient (I, T) of sum(grad * ranks)."""
        out = torch.empty_like(scores)
        size = _rows_at_once(scores)
        for rows, rows_out, rows_grad in zip(scores.split(size), out.split(size),
                                             grad.split(size), strict=True):
            rows_out.copy_(_pull_back(_ahead(rows, temperature), temperature, rows_grad))
        return out


def _ahead(rows: Tensor, temperature: float) -> Tensor:
    """(i, T, T) sigmoid((s_k - s_j) / tau) at [., j, k]: how far k is ahead of j; 0 at k = j."""
    ahead = rows[:, None, :].sub(rows[:, :, None]).mul_(1 / temperature).sigmoid_()
    ahead.diagonal(dim1=1, dim2=2).zero_()
    return ahead


def _pull_back(ahead: Tensor, temperature: float, grad: Tensor) -> Tensor:
    """(i, T) gradient of sum(grad * ranks); grad_j sends the slope of a pair up at k, down at j."""
    slope = torch.addcmul(ahead, ahead, ahead, value=-1)  # (i, T, T), symmetric
    up, steep = torch.bmm(slope, torch.stack((grad, torch.ones_like(grad)), dim=2)).unbind(dim=2)
    return (up - grad * steep) / temperature


def _rows_at_once(scores: Tensor) -> int:
    at_once = AT_ONCE if scores.device.type == "cpu" else AT_ONCE_ELSEWHERE
    return max(1, at_once // scores.shape[1]**2)


def smooth_ndcg(scores: Tensor, relevance: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Return NDCG (I,) of every image's list with smooth ranks, and if it finds anything."""
    return ndcg(relevance, smooth_rank(scores, temperature))


def true_ndcg(scores: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    """Return the same with rank 1 + the number of larger scores (listwise Eq. 10).

    Ties share the best of their ranks, so lists with ties may exceed 1.
    """
    order = falling(scores)
    ranked = scores.gather(1, order)
    places = torch.arange(scores.shape[1], device=scores.device).expand_as(order)
    tied = torch.zeros_like(order, dtype=torch.bool)
    tied[:, 1:] = ranked[:, 1:] == ranked[:, :-1]
    return ndcg(relevance.gather(1, order), 1 + places.masked_fill(tied, 0).cummax(dim=1).values)


def ndcg(relevance: Tensor, rank: Tensor) -> tuple[Tensor, Tensor]:
    """Return NDCG (I,) of every row, 0 if all gains are 0, and (I,) bool, if one is not."""
    best = relevance.gather(1, falling(relevance))
    ideal = discounted(best, torch.arange(1, best.shape[1] + 1, device=best.device))
    return discounted(relevance, rank) / ideal.where(ideal > 0, 1.0), ideal > 0


def falling(values: Tensor) -> Tensor:
    """Return the columns of every row (I, T), largest value first; on a CPU by faster numpy."""
    if values.device.type == "cpu":
        return torch.from_numpy(np.argsort(values.detach().numpy(), axis=1)).flip(1)
    return values.detach().argsort(dim=1, descending=True)


def discounted(relevance: Tensor, rank: Tensor) -> Tensor:
    """Return the sum (I,) of the gains of each row, discounted by rank."""
    gain = torch.expm1(relevance * math.log(2))  # 2^r - 1
    return (gain / torch.log2(1 + rank.to(gain.dtype))).sum(dim=1)
