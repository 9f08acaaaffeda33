"""Triplet loss with soft negatives."""

from torch import Tensor

from itr_study.checks import check_number
from itr_study.losses._batch import log_sum_exp
from itr_study.losses._hinge import check_hinge, hinge
from itr_study.losses.base import RankingLoss


class TripletSoftLoss(RankingLoss):
    """Push every match above a smooth maximum of its non-matches, in both directions.

        L = mean over matches (i, t) of  [m + s~_i - s_it]+  +  [m + s~_t - s_it]+
        s~_i = (1/gamma) log sum_u exp(gamma s_iu),  u over the non-matches of i; likewise s~_t

    Of n negatives, max <= s~ <= max + log(n) / scale: an upper bound, which acts like a larger
    margin, with scale 50 and n = 127 by up to 0.097.

    Use: instead of triplet_hardest, so that all negatives push, those with large scores most. The
        bcls paper takes scale = 50, finds that it trains better, and adds kendall_window on graded
        labels.
    See: triplet_hardest (the limit of a large scale), topk (the mean of the k largest), info_nce
        (the same smooth maximum, without a margin).

    Args:
        margin: required gap in units of scores (cosine: 0 to 2); m, a value bcls leaves out.
        scale: > 0, per unit of scores; gamma of Triplet-SN. Larger is closer to the hardest.
        reduction: "mean" over matches, or "sum" as the paper prints it.
    Source: bcls, Triplet-SN, Eqs. 14 and 15.
    Differs: mean over matches, not a sum over the batch; a query without negatives adds 0 (the
        printed formula takes the log of 0).

    Example:
        >>> import torch
        >>> scores = torch.tensor([[0.5, 0.4, 0.4]])
        >>> value = TripletSoftLoss(margin=0.2, scale=10)(scores, torch.tensor([[1.0, 0, 0]]))
        >>> round(value.item(), 4)  # 0.2 + 0.4 + log(2) / 10 - 0.5; the text has no other image
        0.1693
    """

    name, display_name, version, relevance_scale = "triplet_soft", "soft", 1, "binary"

    def __init__(self, margin: float = 0.2, scale: float = 50.0, reduction: str = "mean") -> None:
        super().__init__()
        check_hinge(margin, reduction)
        check_number("scale", scale, above=0)
        self.margin, self.scale, self.reduction = margin, scale, reduction

    def _loss(self, scores: Tensor, relevance: Tensor, match: Tensor) -> Tensor:
        soft_text = log_sum_exp(self.scale * scores, match, dim=1) / self.scale  # (I, 1)
        soft_image = log_sum_exp(self.scale * scores, match, dim=0) / self.scale  # (1, T)
        return hinge(scores, match, soft_text, soft_image, self.margin, self.reduction)
