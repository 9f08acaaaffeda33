"""Kendall ranking loss."""

import math

import torch
from torch import Tensor

from itr_study.checks import check_choice, check_number
from itr_study.losses._hinge import REDUCTIONS
from itr_study.losses.base import RankingLoss

AT_ONCE = 2**18  # items looked at in one go
HELD = 2**20  # numbers held at one time while they are counted
TOLERANCE = 1e-6  # labels are float32: 1 - 0.8 falls short of 0.2 by 1e-8


class KendallLoss(RankingLoss):
    """Push the more relevant of two candidates above the other, if labels differ enough.

        L = (1/P) sum_i sum_{(j, k): r_ij - r_ik >= alpha, r_ij > r_ik} [s_ik - s_ij]+  +  t2i

    P counts the pairs of a direction. Exact, in O(I T) memory, by sorting: the sum is linear in the
    scores as long as their order stays, so it equals sum_ij s_ij G_ij, with its gradient G_ij
    counting

        -1 for each k with r_ik + alpha <= r_ij and s_ik > s_ij, which j is to beat and does not
        +1 for each k with r_ik >= r_ij + alpha and s_ik < s_ij, which j beats and is not to

    Equal scores of a pair have value and gradient 0: all scores equal is a minimum. A query without
    a pair adds 0, one without a match counts as any other.

    Use: with a loss that has a margin, on cosine labels, to order the non-matches as well. The bcls
        paper takes relaxation = 0.2, about the standard deviation of similarities among captions of
        one image, and trains kendall_window instead.
    See: kendall_window (samples the pairs), smooth_ndcg (ranks instead of pairs), triplet_sum (with
        a margin, only pairs that hold a match).

    Args:
        relaxation: least difference of relevance that a pair must have, in [0, 2); alpha. 0 takes
            every pair of different relevance, the plain loss.
        reduction: "mean" over the pairs of each direction, or "sum" as the paper prints it.
    Source: bcls Eqs. 4 (relaxation 0) and 17.
    Differs: no margin, which Eqs. 6 to 9 have and Eqs. 4, 11 and 17 have not; mean over pairs, not
        a sum; a difference of exactly alpha (within 1e-6) counts, as in the windows; Eq. 17 prints
        >.

    Example:
        >>> import torch
        >>> scores, relevance = torch.tensor([[0.1, 0.5, 0.2]]), torch.tensor([[1.0, 0.4, 0.3]])
        >>> value = KendallLoss(relaxation=0.2)(scores, relevance)
        >>> round(value.item(), 4)  # pairs 0-1: 0.4, 0-2: 0.1; 0.4 and 0.3 are too near; mean
        0.25
    """

    name, display_name, version, relevance_scale = "kendall", "Kendall", 1, "cosine"

    def __init__(self, relaxation: float = 0.2, reduction: str = "mean") -> None:
        super().__init__()
        check_relaxation(relaxation)
        check_choice("reduction", reduction, REDUCTIONS)
        self.relaxation, self.reduction = relaxation, reduction

    def _loss(self, scores: Tensor, relevance: Tensor, match: Tensor) -> Tensor:
        return self.direction(scores, relevance) + self.direction(scores.T, relevance.T)

    def direction(self, scores: Tensor, relevance: Tensor) -> Tensor:
        """Return the loss () of the rows' lists."""
        size = max(1, AT_ONCE // scores.shape[1])
        counted = [counts(s, r, self.relaxation) for s, r in
                   zip(scores.detach().split(size), relevance.split(size), strict=True)]
        return from_counts(scores, counted, self.reduction)


def check_relaxation(relaxation: float) -> None:
    """Raise ValueError unless relaxation lies in [0, 2), the range of cosines."""
    check_number("relaxation", relaxation, least=0, below=2)


def from_counts(scores: Tensor, counted: list[tuple[Tensor, Tensor]], reduction: str) -> Tensor:
    """Return the sum or mean () of hinges over pairs, by their gradient.

    counted: of some rows each, the gradient (i, T) of the sum and the number of pairs ().
    """
    gradient = torch.cat([of_rows for of_rows, _ in counted])
    total = (scores * gradient).sum(dtype=torch.float64)
    if reduction == "mean":
        total = total / torch.stack([pairs for _, pairs in counted]).sum().clamp(min=1)
    return total.to(scores.dtype)


def counts(scores: Tensor, relevance: Tensor, relaxation: float) -> tuple[Tensor, Tensor]:
    """Return (I, T), the gradient of the sum of hinges, and (), the number of pairs."""
    by_label, order = relevance.sort(dim=1)  # (I, T), by relevance from here on
    by_label = by_label.double().contiguous()
    place = score_places(scores.gather(1, order))
    least = by_label + relaxation - TOLERANCE
    if relaxation > TOLERANCE:
        first = torch.searchsorted(by_label, least)  # of those more relevant by alpha
    else:
        first = torch.searchsorted(by_label, by_label, right=True)
    last = below(first)  # how many are less relevant by alpha
    low = smaller_in_both(place, torch.stack((first, last)))
    # more relevant with a smaller score, less relevant with a larger score
    ups, downs = place - low[0], last - low[1]
    gradient = (ups - downs).to(scores.dtype)
    return torch.empty_like(gradient).scatter_(1, order, gradient), last.sum()


def score_places(scores: Tensor) -> Tensor:
    """Return the place (I, T) of every score in its sorted row; ties in column order.

    The columns are sorted by relevance, so a pair with equal scores is in order: it adds nothing.
    """
    order = scores.sort(dim=1, stable=True).indices
    places = torch.arange(scores.shape[1], device=scores.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places)


def below(first: Tensor) -> Tensor:
    """Count at every j the k with first_k <= j, (I, T); first never falls along a row."""
    ends = first.new_zeros(first.shape[0], first.shape[1] + 1)
    return ends.scatter_add_(1, first, torch.ones_like(first)).cumsum(dim=1)[:, :-1]


def smaller_in_both(place: Tensor, bounds: Tensor) -> Tensor:
    """Count the items in columns < bound (q, I, T) with a smaller place (I, T) than each item.

    A row of places is a permutation of 0 ... T - 1, bounds are 0 ... T. Places are cut into blocks
    of about sqrt(T): items in whole blocks are read off a table (block, column), the rest are
    compared within the block: some 2 sqrt(T) steps an item and query instead of T.
    """
    size = block_size(place.shape[1])
    rows = max(1, HELD // (place.shape[1] * max(size, place.shape[1] // size)))
    parts = [count_rows(p, b, size) for p, b in
             zip(place.split(rows), bounds.split(rows, dim=1), strict=True)]
    return torch.cat(parts, dim=1)


def block_size(items: int) -> int:
    """Return a power of two near the square root, at most 256."""
    return min(256, 2 ** round(math.log2(items) / 2))


def count_rows(place: Tensor, bounds: Tensor, size: int) -> Tensor:
    """Return `smaller_in_both` of a few rows."""
    rows, items = place.shape
    blocks = -(-items // size)
    block = place // size
    # before[., b, x]: items in columns < x with a place in a block < b
    before = torch.zeros(rows, blocks, items + 1, dtype=torch.int32, device=place.device)
    lower = block[:, None] < torch.arange(blocks, device=place.device)[:, None]
    torch.cumsum(lower, dim=2, dtype=torch.int32, out=before[:, :, 1:])
    return torch.stack([
        before.view(rows, -1).gather(1, block * (items + 1) + bound)
        + within_block(place, bound, size, blocks) for bound in bounds])


def within_block(place: Tensor, bound: Tensor, size: int, blocks: int) -> Tensor:
    """Count items of the same block with a smaller place, in columns < bound: (I, T) int32."""
    rows, items = place.shape
    padded = (rows, blocks * size)
    columns = torch.arange(items, device=place.device, dtype=torch.int32).expand(rows, items)
    column_at = torch.zeros(padded, dtype=torch.int32, device=place.device)
    column_at.scatter_(1, place, columns)
    bound_at = torch.zeros(padded, dtype=torch.int32, device=place.device)
    bound_at.scatter_(1, place, bound.int())
    shape = (rows, blocks, size)
    earlier = column_at.view(shape)[:, :, None, :] < bound_at.view(shape)[:, :, :, None]
    earlier &= torch.ones(size, size, dtype=torch.bool, device=place.device).tril(-1)
    counts = earlier.sum(dim=3, dtype=torch.uint8).view(padded)  # below 256
    return counts.gather(1, place)
