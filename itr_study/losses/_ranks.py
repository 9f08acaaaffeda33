"""Smooth ranks: what Smooth-NDCG and ApproxNDCG share.

    rank_j = 1 + sum_{k != j} sigmoid((s_k - s_j) / tau)    along every row of scores

Two ways, equal up to rounding. Pair by pair: all T x T differences of a few rows at a time. By
cells (`_cells.py`): items within a fraction of tau of each other are taken together, which costs a
row some T instead of T^2 steps. Both keep O(I T) memory: the differences are computed again for
the gradient.
"""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from itr_study.losses import _cells

AT_ONCE = 2**18  # pairs whose differences are held at one time


def smooth_rank(scores: Tensor, temperature: float) -> Tensor:
    """(I, T) smooth rank of every text in its row, 1 to T; differentiable once."""
    return _SmoothRank.apply(scores, temperature)


class _SmoothRank(torch.autograd.Function):
    """The rank, with a gradient that is computed again instead of kept."""

    @staticmethod
    def forward(ctx: object, scores: Tensor, temperature: float) -> Tensor:
        scores = scores.contiguous()
        ctx.save_for_backward(scores)
        ctx.temperature = temperature
        ctx.method = _cells if _cells.suit(scores, temperature) else Pairs
        with torch.autocast(scores.device.type, enabled=False):
            return ctx.method.ranks(scores, temperature)

    @staticmethod
    @once_differentiable
    def backward(ctx: object, grad: Tensor) -> tuple[Tensor, None]:
        (scores,) = ctx.saved_tensors
        with torch.autocast(scores.device.type, enabled=False):
            return ctx.method.pull_back(scores, ctx.temperature, grad), None


class Pairs:
    """Pair by pair, for short lists, scores spread over very many temperatures, and NaN."""

    @staticmethod
    def ranks(scores: Tensor, temperature: float) -> Tensor:
        """(I, T) ranks."""
        parts = []
        for rows in scores.split(_rows_at_once(scores)):
            ahead = _ahead(rows, temperature)  # (i, T, T)
            ahead.diagonal(dim1=1, dim2=2).zero_()
            parts.append(1 + ahead.sum(dim=2))
        return torch.cat(parts)

    @staticmethod
    def pull_back(scores: Tensor, temperature: float, grad: Tensor) -> Tensor:
        """(I, T) gradient of sum(grad * ranks); grad_j sends s'_jk up at k and down at j."""
        out = torch.empty_like(scores)
        size = _rows_at_once(scores)
        for rows, wanted, given in zip(scores.split(size), out.split(size), grad.split(size),
                                       strict=True):
            ahead = _ahead(rows, temperature)
            slope = ahead.mul_(1 - ahead)  # (i, T, T), symmetric; its diagonal cancels below
            up = torch.bmm(slope, given[:, :, None])[:, :, 0]
            wanted.copy_((up - given * slope.sum(dim=2)) / temperature)
        return out


def _ahead(rows: Tensor, temperature: float) -> Tensor:
    """(i, T, T) sigmoid((s_k - s_j) / tau) at [., j, k]: how far k stands ahead of j."""
    return rows[:, None, :].sub(rows[:, :, None]).div_(temperature).sigmoid_()


def _rows_at_once(scores: Tensor) -> int:
    return max(1, AT_ONCE // scores.shape[1]**2)
