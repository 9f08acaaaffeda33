"""Triplet loss with the hardest negative."""

from torch import Tensor

from itr_study.losses._batch import negatives
from itr_study.losses._hinge import check_hinge, hinge
from itr_study.losses.base import RankingLoss


class TripletHardestLoss(RankingLoss):
    """Push every match above its hardest non-match by a margin, in both directions.

        L = mean over matches (i, t) of  [m + max_u s_iu - s_it]+  +  [m + max_j s_jt - s_it]+

    Use: to find the match; the loss that the listwise and bcls papers start from. It follows one
        negative a query: if that one is false (a caption that also fits) it pushes the wrong way,
        and training from scratch may collapse: warm up with triplet_sum.
    See: triplet_soft (a smooth maximum), topk (the mean of the k largest), triplet_sum (all
        negatives), ladder (this loss, and further ones at levels of relevance).

    Args:
        margin: required gap in units of scores (cosine: 0 to 2); m in bcls Eq. 12, alpha in VSE++.
        reduction: "mean" over matches, or "sum" as the papers print it.
    Source: Faghri et al., VSE++, BMVC 2018 (max of hinges); bcls Eqs. 12 and 13.
    Differs: mean over matches, not a sum over the batch; other texts of the same image are matches,
        never negatives (bcls excludes them by r < 1 as well).

    Example:
        >>> import torch
        >>> scores = torch.tensor([[0.9, 0.8], [0.3, 0.5]])
        >>> value = TripletHardestLoss(margin=0.2)(scores, torch.eye(2))
        >>> round(value.item(), 4)  # i2t 0.1 and 0, t2i 0 and 0.5, over 2 matches
        0.3
    """

    name, display_name, version, relevance_scale = "triplet_hardest", "hardest", 1, "binary"

    def __init__(self, margin: float = 0.2, reduction: str = "mean") -> None:
        super().__init__()
        check_hinge(margin, reduction)
        self.margin, self.reduction = margin, reduction

    def _loss(self, scores: Tensor, relevance: Tensor, match: Tensor) -> Tensor:
        others = negatives(scores, match)  # (I, T), -inf at matches
        hardest_text = others.amax(dim=1, keepdim=True)  # (I, 1), of each image
        hardest_image = others.amax(dim=0, keepdim=True)  # (1, T), of each text
        return hinge(scores, match, hardest_text, hardest_image, self.margin, self.reduction)
