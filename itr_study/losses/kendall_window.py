"""Kendall loss by sliding windows over relevance."""

import math

import torch
from torch import Tensor

from itr_study.checks import check_choice, check_number
from itr_study.losses._hinge import REDUCTIONS
from itr_study.losses.base import RankingLoss
from itr_study.losses.kendall import AT_ONCE, TOLERANCE, check_relaxation, from_counts, score_places


class KendallWindowLoss(RankingLoss):
    """Push what a window of labels calls relevant above what it does not, for every window.

        L = mean_i (1/M) sum_m [max_{k in Neg_m} s_ik - min_{j in Pos_m} s_ij]+  +  t2i     (SW-HS)
        L = (1/N) sum_i sum_m sum_{j in Pos_m} sum_{k in Neg_m} [s_ik - s_ij]+  +  t2i         (SW)
        w_m = -1 + m beta,  m = 1 ... M = (2 - alpha) / beta
        Neg_m = {k: r_ik < w_m},  Pos_m = {j: r_ij >= w_m + alpha};  what is between is left out

    A pair is in as many windows as fit between its two labels, so SW weighs pairs by the gap of
    their labels: with smaller strides it tends to a gap-weighted Kendall loss, not to Eq. 17.
    Matches are positive in every window; a query without one counts as any other. A window without
    positives or negatives adds 0, and is still counted in M. All scores equal is a minimum with
    value 0.

    Use: with triplet_soft, on cosine labels: together they are the bcls paper's objective, with
        relaxation = 0.2 and stride = 0.1. A smaller stride did better there, and costs more.
    See: kendall (every pair, no windows), ladder (a few levels that one chooses, with margins),
        triplet_soft (its companion).

    Args:
        hard: the hardest pair of a window (SW-HS), or all its pairs (SW).
        relaxation: size of a window, in [0, 2); alpha.
        stride: step between windows, 0.001 to 2 - relaxation; beta. If M is not whole, a last
            window is added at 1 - alpha.
        reduction: "mean" over queries (hard) or over pairs and windows, N of them (SW), in each
            direction; "sum" as the paper prints it (with 1 / M in SW-HS, without in SW).
    Source: bcls Eq. 18 (SW), Eqs. 19 and 20 (SW-HS).
    Differs: the edges, which the paper describes in words, are those above, in float64, each met
        within 1e-6: no window at -1, with nothing below, and one at 1 - alpha. Means.

    Example:
        >>> import torch
        >>> scores, relevance = torch.tensor([[0.1, 0.5, 0.2]]), torch.tensor([[1.0, 0.4, 0.3]])
        >>> value = KendallWindowLoss(relaxation=0.2, stride=0.1)(scores, relevance)
        >>> round(value.item(), 4)  # 4 windows, 0.5 ... 0.8, have 0.5 above 0.1; 1 has 0.2; of 18
        0.0944
    """

    name, display_name, version, relevance_scale = "kendall_window", "windows", 1, "cosine"

    def __init__(self, hard: bool = True, relaxation: float = 0.2, stride: float = 0.1,
                 reduction: str = "mean") -> None:
        super().__init__()
        check_choice("hard", hard, (True, False))
        check_relaxation(relaxation)
        check_number("stride", stride, least=1e-3, most=2 - relaxation + TOLERANCE)
        check_choice("reduction", reduction, REDUCTIONS)
        self.hard, self.relaxation, self.stride = hard, relaxation, stride
        self.reduction = reduction
        self.edges = window_edges(relaxation, stride)

    def _loss(self, scores: Tensor, relevance: Tensor, match: Tensor) -> Tensor:
        positive_upto, negative_after = self.windows(relevance, match)
        return (self.direction(scores, positive_upto, negative_after)
                + self.direction(scores.T, positive_upto.T, negative_after.T))

    def windows(self, relevance: Tensor, match: Tensor) -> tuple[Tensor, Tensor]:
        """Return positive_upto and negative_after, (I, T) int64 each.

        An item is positive in windows 1 ... positive_upto, negative in negative_after + 1 ... M.
        """
        edges = torch.as_tensor(self.edges, dtype=torch.float64, device=relevance.device)
        labels = relevance.detach().double().contiguous() + TOLERANCE
        negative_after = torch.bucketize(labels, edges, right=True)
        positive_upto = torch.bucketize(labels - self.relaxation, edges, right=True)
        return positive_upto.masked_fill_(match, len(self.edges)), negative_after

    def direction(self, scores: Tensor, positive_upto: Tensor, negative_after: Tensor) -> Tensor:
        """Return the loss () of the rows' lists."""
        if self.hard:
            hinges = hardest(scores, positive_upto, negative_after, len(self.edges))  # (I, M)
            total = hinges.sum() / len(self.edges)
            return total if self.reduction == "sum" else total / len(scores)
        size = max(1, AT_ONCE // scores.shape[1])
        parts = (one.split(size) for one in (scores.detach(), positive_upto, negative_after))
        counted = [counts(s, upto, after, len(self.edges))
                   for s, upto, after in zip(*parts, strict=True)]
        return from_counts(scores, counted, self.reduction)


def window_edges(relaxation: float, stride: float) -> list[float]:
    """Return w_1 ... w_M, rising; the last is 1 - alpha."""
    whole = math.floor((2 - relaxation) / stride + TOLERANCE)
    edges = [-1 + m * stride for m in range(1, whole + 1)]
    return edges if edges[-1] > 1 - relaxation - TOLERANCE else [*edges, 1 - relaxation]


def hardest(scores: Tensor, positive_upto: Tensor, negative_after: Tensor, windows: int) -> Tensor:
    """Return the hinge (I, M) of the hardest pair of every window.

    A negative of window m is one of window m + 1 too: the largest of each first window, then a
    running maximum. Likewise for the positives, from the last window down.
    """
    shape = (len(scores), windows + 1)
    largest = scores.new_full(shape, -torch.inf).scatter_reduce(1, negative_after, scores, "amax")
    largest = largest.cummax(dim=1).values[:, :-1]
    least = scores.new_full(shape, torch.inf).scatter_reduce(1, positive_upto, scores, "amin")
    least = least.flip(1).cummin(dim=1).values.flip(1)[:, 1:]
    return (largest - least).relu()


def counts(scores: Tensor, positive_upto: Tensor, negative_after: Tensor,
           windows: int) -> tuple[Tensor, Tensor]:
    """Return (I, T), the gradient of the sum of hinges, and () the number of pairs.

    As in `kendall`: an item's gradient is the number of pairs in which it is too high, less those
    in which it is too low. Sorted by score, running sums count them. Equal scores are sorted by
    label, so that their pairs are in order.
    """
    order = positive_upto.sort(dim=1, stable=True).indices
    place = score_places(scores.gather(1, order))
    order = torch.empty_like(order).scatter_(1, place, order)  # (I, T), by score from here on
    positive_upto, negative_after = positive_upto.gather(1, order), negative_after.gather(1, order)
    gradient, pairs = torch.zeros_like(scores), scores.new_zeros((), dtype=torch.float64)
    for window in range(1, windows + 1):
        positive = (positive_upto >= window).to(scores.dtype)
        negative = (negative_after < window).to(scores.dtype)
        lower = positive.cumsum(dim=1)  # positives with a smaller score
        higher = negative.sum(dim=1, keepdim=True) - negative.cumsum(dim=1)
        gradient += negative * lower - positive * higher
        pairs += (positive.sum(dim=1, dtype=torch.float64) * negative.sum(dim=1)).sum()
    return torch.empty_like(gradient).scatter_(1, order, gradient), pairs
