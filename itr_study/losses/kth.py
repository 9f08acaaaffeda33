"""The original top-k loss, which is not convex."""

from torch import Tensor

from itr_study.losses._hinge import hinge, k_largest
from itr_study.losses.topk import TopKLoss


class KthLoss(TopKLoss):
    """Push every match above its k-th hardest non-match: it need only be in the top k.

        L = mean over matches (i, t) of  [m + s_i[k] - s_it]+  +  [m + s_t[k] - s_it]+

    s_i[k] is the k-th largest score among the non-matching texts of image i. Not convex in the
    scores for k > 1; `topk`, which the paper derives from it and trains, is its convex upper bound.

    Use: to see what topk stands for, taken literally.
    See: topk (the mean of the k largest), triplet_hardest (only the largest).

    Args:
        margin: required gap in units of scores (cosine: 0 to 2); Delta, a value the paper omits.
        k: the rank that a match may have without being punished, >= 1, at most the negatives of a
            query with a match and a negative; k = 1 is triplet_hardest.
        reduction: "mean" over matches, or "sum" as the paper prints it (Eq. 1).
    Source: topk Eqs. 2, 3 and the second line of Eq. 8.
    Differs: mean over matches, not a sum over the batch. The first line of Eq. 8 is not taken: it
        equals the second only for a match that ranks at most k, and at rank k + 1 it compares the
        match with itself, a constant without gradient.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[0.5, 0.6, 0.4]])
        >>> value = KthLoss(margin=0.2, k=2)(scores, torch.tensor([[1.0, 0, 0]]))
        >>> round(value.item(), 4)  # 0.2 + 0.4 - 0.5
        0.1
    """

    name, display_name, version, relevance_scale = "kth", "k-th", 1, "binary"

    def _loss(self, scores: Tensor, relevance: Tensor, match: Tensor) -> Tensor:
        kth_text = last_or_nan(k_largest(scores, match, self.k, dim=1), dim=1)  # (I, 1)
        kth_image = last_or_nan(k_largest(scores, match, self.k, dim=0), dim=0)  # (1, T)
        return hinge(scores, match, kth_text, kth_image, self.margin, self.reduction)


def last_or_nan(largest: Tensor, dim: int) -> Tensor:
    """The last of the k largest, but NaN if there is one: it sorts first and would be lost."""
    first, last = largest.narrow(dim, 0, 1), largest.narrow(dim, largest.shape[dim] - 1, 1)
    return first.where(first.isnan(), last)
