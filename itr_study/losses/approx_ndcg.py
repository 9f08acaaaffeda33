"""ApproxNDCG: a smooth NDCG as the learning-to-rank literature writes it."""

from torch import Tensor

from itr_study.checks import check_number
from itr_study.losses._ranks import smooth_ndcg
from itr_study.losses.base import RankingLoss


class ApproxNDCGLoss(RankingLoss):
    """Raise the NDCG of every list, with the steepness usual in learning to rank.

        L = -mean_i NDCG_i - mean_t NDCG_t
        rank_ij = 1 + sum_{k != j} sigmoid(alpha (s_ik - s_ij))

    The NDCG of smooth_ndcg with temperature 1 / alpha: the value is lower by 2, one for each
    direction, the gradient the same (if every list has a relevant item), but alpha = 10 is a
    temperature ten times as large. A list without a match counts as any other, one without a
    relevant item adds 0.

    Use: to compare smooth_ndcg with what that literature recommends: alpha = 10 (Bruch et al.), for
        scores without bounds; cosines differ less and may need more.
    See: smooth_ndcg (the same but for a constant), listnet (a softmax instead of ranks).

    Args:
        alpha: > 0, steepness per unit of scores; alpha of Qin et al.
    Source: Qin, Liu and Li, A general approximation framework for direct optimization of
        information retrieval measures, Information Retrieval 2010; Bruch et al., Revisiting
        approximate metric optimization in the age of deep neural networks, SIGIR 2019.
    Differs: two directions, added; relevance in [0, 1], not grades 0 to 4; no truncation at a rank.

    Example:
        >>> import torch
        >>> scores, relevance = torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0]])
        >>> value = ApproxNDCGLoss()(scores, relevance)
        >>> round(value.item(), 4)  # i2t: -1 / log2(2.5); t2i: one text has an image, -(1 + 0) / 2
        -1.2565
    """

    name, display_name, version, relevance_scale = "approx_ndcg", "ApproxNDCG", 1, "unit"

    def __init__(self, alpha: float = 10.0) -> None:
        super().__init__()
        check_number("alpha", alpha, above=0)
        self.alpha = alpha

    def _loss(self, scores: Tensor, relevance: Tensor, match: Tensor) -> Tensor:
        relevance = relevance.to(scores.dtype)
        return self.direction(scores, relevance) + self.direction(scores.T, relevance.T)

    def direction(self, scores: Tensor, relevance: Tensor) -> Tensor:
        """Return the loss () of the rows' lists."""
        ndcg, _ = smooth_ndcg(scores, relevance, 1 / self.alpha)  # (I,), 0 without gains
        return -ndcg.mean()
