"""Top-k triplet loss."""

from torch import Tensor

from itr_study.checks import check_count
from itr_study.losses._hinge import check_hinge, hinge, k_largest
from itr_study.losses.base import RankingLoss


class TopKLoss(RankingLoss):
    """Push every match above the mean of its k hardest non-matches, in both directions.

        L = mean over matches (i, t) of  [m + (1/k) sum_{r<=k} s_i[r] - s_it]+  +  over images

    s_i[r] is the r-th largest score among the non-matching texts of image i. The mean is taken
    before the hinge, so the loss is convex in the scores, kth <= topk <= triplet_hardest, and it
    never grows with k.

    Use: if negatives may be false (captions that also fit), so that the hardest is a bad teacher.
    See: triplet_hardest (stricter), triplet_soft (a smooth maximum), kth (the paper's non-convex
        original).

    Args:
        margin: required gap in units of scores (cosine: 0 to 2); Delta, a value the paper omits.
        k: how many of the hardest negatives are averaged, >= 1, at most those of a query with a
            match and a negative; the paper recommends 4 to 6. k = 1 is triplet_hardest.
        reduction: "mean" over matches, or "sum" as the paper prints it (Eq. 1).
    Source: topk Eqs. 9, 10 and 12.
    Differs: mean over matches, not a sum over the batch; other texts of the same image in the batch
        are matches, not negatives as in the paper's Eq. 12.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[0.5, 0.6, 0.2]])
        >>> value = TopKLoss(margin=0.2, k=2)(scores, torch.tensor([[1.0, 0, 0]]))
        >>> round(value.item(), 4)  # 0.2 + (0.6 + 0.2) / 2 - 0.5
        0.1
    """

    name, display_name, version, relevance_scale = "topk", "top-k", 1, "binary"

    def __init__(self, margin: float = 0.2, k: int = 5, reduction: str = "mean") -> None:
        super().__init__()
        check_hinge(margin, reduction)
        check_count("k", k)
        self.margin, self.k, self.reduction = margin, k, reduction

    def _loss(self, scores: Tensor, relevance: Tensor, match: Tensor) -> Tensor:
        hard_texts = k_largest(scores, match, self.k, dim=1)  # (I, k), of each image
        hard_images = k_largest(scores, match, self.k, dim=0)  # (k, T), of each text
        return hinge(scores, match, hard_texts.mean(dim=1, keepdim=True),
                     hard_images.mean(dim=0, keepdim=True), self.margin, self.reduction)
