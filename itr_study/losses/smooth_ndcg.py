"""Smooth-NDCG of the listwise paper."""

import torch
from torch import Tensor

from itr_study.checks import check_choice, check_number
from itr_study.losses._batch import read_batch
from itr_study.losses._hinge import REDUCTIONS
from itr_study.losses._ranks import smooth_ndcg, true_ndcg
from itr_study.losses.base import RankingLoss


class SmoothNDCGLoss(RankingLoss):
    """Raise the NDCG of every image's list of texts and of every text's list of images.

        L = mean_i (1 - NDCG_i) + mean_t (1 - NDCG_t)
        NDCG_i = (1 / ideal_i) sum_j (2^r_ij - 1) / log2(1 + rank_ij)
        rank_ij = 1 + sum_{k != j} sigmoid((s_ik - s_ij) / tau)

    and the same for every text on the transposes. Memory O(I T). A list without a match is ordered
    by its labels as any other; one without a relevant item adds 0. If all are equally relevant
    there is nothing to order, but the smooth NDCG is below 1 if scores are near each other.

    Use: with a pairwise loss, on graded labels, to order the non-matches as well: the listwise
        paper adds it to triplet_hardest with weight 1 and temperature = 0.01. Alone it has no
        margin and finds the match less well.
    See: approx_ndcg (the same but for a constant; another default), listnet (a softmax instead of
        ranks), kendall (pairs instead of ranks).

    Args:
        temperature: > 0, in units of scores; tau. Small is close to the true rank, but only items
            within some tau of each other get a gradient.
        reduction: "mean" over the queries of a direction, or "sum".
    Source: listwise Eqs. 16 to 21.
    Differs: Eq. 16 prints the sigmoid of the opposite difference, which is the list upside down,
        and drops tau; Eqs. 12, 13 give tied relevances the same rank, so that no order reaches 1:
        here the ideal sorts them. t2i uses the transpose of relevance (published code does not).

    Example:
        >>> import torch
        >>> scores, relevance = torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0]])
        >>> value = SmoothNDCGLoss()(scores, relevance)
        >>> round(value.item(), 4)  # i2t: rank 1.5, 1 - 1 / log2(2.5); each text has one image
        0.2435
    """

    name, display_name, version, relevance_scale = "smooth_ndcg", "Smooth-NDCG", 1, "unit"

    def __init__(self, temperature: float = 0.01, reduction: str = "mean") -> None:
        super().__init__()
        check_number("temperature", temperature, above=0)
        check_choice("reduction", reduction, REDUCTIONS)
        self.temperature, self.reduction = temperature, reduction

    def _loss(self, scores: Tensor, relevance: Tensor, match: Tensor) -> Tensor:
        relevance = relevance.to(scores.dtype)
        return self.direction(scores, relevance) + self.direction(scores.T, relevance.T)

    def direction(self, scores: Tensor, relevance: Tensor) -> Tensor:
        """Return the loss () of the rows' lists."""
        return self.reduce(*smooth_ndcg(scores, relevance, self.temperature))

    def reduce(self, ndcg: Tensor, ranked: Tensor) -> Tensor:
        """Return the loss () of lists with this NDCG (I,), if ranked (I,) has anything to find."""
        losses = (1 - ndcg).where(ranked, 0.0)
        return losses.sum() if self.reduction == "sum" else losses.mean()

    def diagnose(self, scores: Tensor, relevance: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss and means over all lists: "ndcg", "smooth_ndcg" and their "error".

        The error is the absolute difference of each list (listwise Fig. 6 and Eq. 24). NaN if a
        direction has no list with a relevant item.
        """
        scores, _ = read_batch(scores, relevance, self.relevance_scale)
        relevance = relevance.to(scores.dtype)
        total, means = scores.new_zeros(()), scores.new_zeros(3)
        for scores_of, relevance_of in ((scores, relevance), (scores.T, relevance.T)):
            smooth, ranked = smooth_ndcg(scores_of, relevance_of, self.temperature)
            total = total + self.reduce(smooth, ranked)
            with torch.no_grad():
                true, _ = true_ndcg(scores_of, relevance_of)
                lists = torch.stack((true, smooth, (smooth - true).abs()))  # (3, I)
                means += lists.where(ranked, 0.0).sum(dim=1) / ranked.sum()
        return total, dict(zip(("ndcg", "smooth_ndcg", "error"), means / 2, strict=True))
