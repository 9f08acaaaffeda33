"""Triplet loss with the hardest in-batch negative.

    L = mean over matches (i, t) of  [m + max_u s_iu - s_it]+  +  [m + max_j s_jt - s_it]+
"""

from torch import Tensor, nn

from itr_study.losses._batch import negatives, read_batch
from itr_study.losses._hinge import check_hinge, hinge


class TripletHardest(nn.Module):
    """Push every match above its hardest non-match by a margin, in both directions.

    Args:
        margin: required gap in units of scores (cosine: 0 to 2); m in bcls Eq. 12, alpha in VSE++.
        reduction: "mean" over matches, or "sum" as the papers print it.
    Shape: scores (I, T), relevance (I, T); returns () >= 0.
    Raises: ValueError for margin < 0, shapes that differ, relevance out of range.
    Source: Faghri et al., VSE++, BMVC 2018 (max of hinges); bcls Eqs. 12 and 13.
    Differs: mean over matches, not a sum over the batch; other texts of the same image are
        matches, never negatives (bcls excludes them by r < 1 as well).
    Example:
        >>> import torch
        >>> scores = torch.tensor([[0.9, 0.8], [0.3, 0.5]])
        >>> value = TripletHardest(margin=0.2)(scores, torch.eye(2))
        >>> round(value.item(), 4)  # i2t 0.1 and 0, t2i 0 and 0.5, over 2 matches
        0.3
    """

    name, label, source, version = "triplet_hardest", "hardest", "VSE++; bcls Eq. 12", 1
    labels = "binary"

    def __init__(self, margin: float = 0.2, reduction: str = "mean") -> None:
        super().__init__()
        check_hinge(margin, reduction)
        self.margin, self.reduction = margin, reduction

    def forward(self, scores: Tensor, relevance: Tensor) -> Tensor:
        scores, match = read_batch(scores, relevance, self.labels)
        rivals = negatives(scores, match)  # (I, T)
        text, image = rivals.amax(dim=1, keepdim=True), rivals.amax(dim=0, keepdim=True)
        return hinge(scores, match, text, image, self.margin, self.reduction)
