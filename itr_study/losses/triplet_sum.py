"""Triplet loss over all negatives."""

from torch import Tensor

from itr_study.losses._batch import negatives
from itr_study.losses._hinge import check_hinge, sum_of_hinges
from itr_study.losses.base import RankingLoss


class TripletSumLoss(RankingLoss):
    """Push every match above each of its non-matches by a margin, in both directions.

        L = mean over matches (i, t) of  sum_u [m + s_iu - s_it]+  +  sum_j [m + s_jt - s_it]+

    Memory: on a CPU matches x (I + T), elsewhere that of a few score matrices; never (I, T, T).

    Use: as the plain baseline ("traditional" in the topk paper), or for the first epochs before
        triplet_hardest or topk, which may collapse (all scores equal) if they start from scratch.
    See: triplet_hardest (only the largest negative), topk (the mean of the k largest),
        semantic_margin (a margin that depends on relevance).

    Args:
        margin: required gap in units of scores (cosine: 0 to 2); Delta in topk Eq. 11.
        reduction: "mean" over matches, or "sum" as the papers print it; the negatives of a match
            are summed in both, so values and gradients grow with the batch.
    Source: topk Eq. 11 ("traditional"), bcls Eqs. 1 and 10; Faghri et al., VSE++, BMVC 2018 (sum of
        hinges).
    Differs: mean over matches, not a sum over the batch; other texts of the same image are matches
        (bcls Eq. 10), not negatives as in topk Eq. 11 and bcls Eq. 1.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[0.5, 0.4, 0.6]])
        >>> value = TripletSumLoss(margin=0.2)(scores, torch.tensor([[1.0, 0, 0]]))
        >>> round(value.item(), 4)  # (0.2 + 0.4 - 0.5) + (0.2 + 0.6 - 0.5)
        0.4
    """

    name, display_name, version, relevance_scale = "triplet_sum", "sum", 1, "binary"

    def __init__(self, margin: float = 0.2, reduction: str = "mean") -> None:
        super().__init__()
        check_hinge(margin, reduction)
        self.margin, self.reduction = margin, reduction

    def _loss(self, scores: Tensor, relevance: Tensor, match: Tensor) -> Tensor:
        raised = negatives(scores + self.margin, match)  # (I, T), -inf at matches
        total = sum_of_hinges(raised, scores, match)
        return total if self.reduction == "sum" else total / match.sum().clamp(min=1)
