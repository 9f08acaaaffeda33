"""Kendall ranking loss."""

import torch
from torch import Tensor

from itr_study.checks import check_choice, check_number
from itr_study.losses._batch import read_batch
from itr_study.losses._dominance import smaller_in_both
from itr_study.losses._hinge import REDUCTIONS
from itr_study.losses.base import RankingLoss

AT_ONCE = 2**18  # items looked at in one go
TOLERANCE = 1e-6  # labels are float32: 1 - 0.8 falls short of 0.2 by 1e-8


class KendallLoss(RankingLoss):
    """Push the more relevant of two candidates above the other, if labels differ enough.

        L = (1/P) sum_i sum_{(j, k): r_ij - r_ik >= alpha, r_ij > r_ik} [s_ik - s_ij]+  +  t2i

    P counts the pairs of a direction. Exact, in O(I T) memory, by sorting: the sum is linear in the
    scores as long as their order stays, so it equals sum_ij s_ij G_ij, where its gradient G_ij
    counts

        -1 for each k with r_ik + alpha <= r_ij and s_ik > s_ij, which j is to beat and does not
        +1 for each k with r_ik >= r_ij + alpha and s_ik < s_ij, which j beats and is not to

    Equal scores of a pair have value and gradient 0; all scores equal is a minimum with value 0,
    whatever the labels. A query without a pair adds 0, one without a match counts as any other: its
    labels make the pairs.

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

    def forward(self, scores: Tensor, relevance: Tensor) -> Tensor:
        scores, _ = read_batch(scores, relevance, self.relevance_scale)
        return self.direction(scores, relevance) + self.direction(scores.T, relevance.T)

    def direction(self, scores: Tensor, relevance: Tensor) -> Tensor:
        """() loss of the rows' lists."""
        size = max(1, AT_ONCE // scores.shape[1])
        counted = [counts(s, r, self.relaxation) for s, r in
                   zip(scores.detach().split(size), relevance.split(size), strict=True)]
        return from_counts(scores, counted, self.reduction)


def check_relaxation(relaxation: float) -> None:
    """Raise ValueError unless relaxation lies in [0, 2), the range of cosines."""
    check_number("relaxation", relaxation, least=0)
    if relaxation >= 2:
        raise ValueError("relaxation must be < 2, the range of labels in [-1, 1]; "
                         f"got {relaxation}")


def from_counts(scores: Tensor, counted: list[tuple[Tensor, Tensor]], reduction: str) -> Tensor:
    """() sum or mean of hinges over pairs, by their gradient: counted (i, T) for some rows each,
    with the number of pairs () of those rows."""
    gradient = torch.cat([of_rows for of_rows, _ in counted])
    pairs = 1 if reduction == "sum" else sum(number for _, number in counted).clamp(min=1)
    return (scores * gradient).sum(dtype=torch.float64).div(pairs).to(scores.dtype)


def counts(scores: Tensor, relevance: Tensor, relaxation: float) -> tuple[Tensor, Tensor]:
    """(I, T), the gradient of the sum of hinges, and (), the number of pairs."""
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
    """(I, T) place of every score in its sorted row; ties in the order of the columns.

    The columns are sorted by relevance, so a pair with equal scores is in order: it adds nothing.
    """
    order = scores.sort(dim=1, stable=True).indices
    places = torch.arange(scores.shape[1], device=scores.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places)


def below(first: Tensor) -> Tensor:
    """(I, T) at every j: the number of k with first_k <= j; first never falls along a row."""
    ends = first.new_zeros(first.shape[0], first.shape[1] + 1)
    return ends.scatter_add_(1, first, torch.ones_like(first)).cumsum(dim=1)[:, :-1]
