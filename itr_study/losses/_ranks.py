"""Smooth ranks: what Smooth-NDCG and ApproxNDCG share.

    rank_j = 1 + sum_{k != j} sigmoid((s_k - s_j) / tau)    along every row of scores

Two ways, equal up to rounding. Pair by pair: all T x T differences of a few rows at a time. By
cells (`_cells.py`): items within a fraction of tau of each other are taken together, which costs a
row some T instead of T^2 steps. How many cells there are depends on the scores, so that only a CPU
takes them: any other device would stop to tell, and has no trouble with pairs. Both keep O(I T)
memory: the differences are computed again for the gradient, unless there are few enough to be kept.
"""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from itr_study.losses import _cells

AT_ONCE = 2**18  # pairs whose differences are held at one time: what fits a core's cache
AT_ONCE_ELSEWHERE = 2**24  # on other devices, to keep them busy: 64 MB in float32
KEPT = 2**21  # pairs that are kept for the gradient rather than computed again, 8 MB in float32


def smooth_rank(scores: Tensor, temperature: float) -> Tensor:
    """(I, T) smooth rank of every text in its row, 1 to T; differentiable once."""
    return _SmoothRank.apply(scores, temperature)


class _SmoothRank(torch.autograd.Function):
    """The rank, with a gradient that is computed again instead of kept."""

    @staticmethod
    def forward(ctx: object, scores: Tensor, temperature: float) -> Tensor:
        scores = scores.contiguous()
        ctx.temperature = temperature
        cells = scores.device.type == "cpu" and _cells.suit(scores, temperature)
        ctx.method = _cells if cells else Pairs
        ctx.kept = ctx.method is Pairs and scores.numel() * scores.shape[1] <= KEPT
        with torch.autocast(scores.device.type, enabled=False):
            if ctx.kept:
                ahead = _ahead(scores, temperature)
                ctx.save_for_backward(ahead)
                return 1 + ahead.sum(dim=2)
            ctx.save_for_backward(scores)
            return ctx.method.ranks(scores, temperature)

    @staticmethod
    @once_differentiable
    def backward(ctx: object, grad: Tensor) -> tuple[Tensor, None]:
        (saved,) = ctx.saved_tensors
        with torch.autocast(saved.device.type, enabled=False):
            if ctx.kept:
                return _pull_back(saved, ctx.temperature, grad), None
            return ctx.method.pull_back(saved, ctx.temperature, grad), None


class Pairs:
    """Pair by pair, for short lists, scores spread over very many temperatures, and NaN."""

    @staticmethod
    def ranks(scores: Tensor, temperature: float) -> Tensor:
        """(I, T) ranks."""
        parts = []
        for rows in scores.split(_rows_at_once(scores)):
            parts.append(1 + _ahead(rows, temperature).sum(dim=2))
        return torch.cat(parts)

    @staticmethod
    def pull_back(scores: Tensor, temperature: float, grad: Tensor) -> Tensor:
        """(I, T) gradient of sum(grad * ranks)."""
        out = torch.empty_like(scores)
        size = _rows_at_once(scores)
        for rows, rows_out, rows_grad in zip(scores.split(size), out.split(size),
                                             grad.split(size), strict=True):
            rows_out.copy_(_pull_back(_ahead(rows, temperature), temperature, rows_grad))
        return out


def _ahead(rows: Tensor, temperature: float) -> Tensor:
    """(i, T, T) sigmoid((s_k - s_j) / tau) at [., j, k]: how far k stands ahead of j; 0 at k = j.
    """
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
