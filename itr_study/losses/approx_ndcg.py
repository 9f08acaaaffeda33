"""ApproxNDCG: raise a smooth NDCG, written as the learning-to-rank literature does.

Use:  to compare smooth_ndcg with what that literature recommends, alpha = 10 (Bruch et al.): that
      is for scores without bounds; cosines differ less and may ask for more.
See:  smooth_ndcg (the same but for a constant, with temperature = 1 / alpha), listnet (a softmax in
      the place of ranks).

    L = -mean_i NDCG_i - mean_t NDCG_t
    rank_ij = 1 + sum_{k != j} sigmoid(alpha (s_ik - s_ij))
"""

from torch import Tensor

from itr_study.checks import check_number
from itr_study.losses._batch import read_batch
from itr_study.losses._ndcg import smooth_ndcg
from itr_study.losses.base import RankingLoss


class ApproxNDCGLoss(RankingLoss):
    """Raise the NDCG of every list, with the steepness usual in learning to rank.

    It is smooth_ndcg in other words: the same gains 2^r - 1, discounts, ideal and ranks (no item
    is compared with itself) with temperature 1 / alpha, and the value is lower by 2, one for each
    direction, while the gradient is the same (where every list has a relevant item). What really
    differs is the default: alpha = 10 is a temperature of 0.1, ten times that of smooth_ndcg.
    Memory O(I T). A list without a match counts as any other, one without a relevant item adds 0.

    Args:
        alpha: > 0, steepness per unit of scores; alpha of Qin et al., 10 in Bruch et al., whose
            scores are not bounded: cosines differ less and may ask for more.
    Shape: scores (I, T), relevance (I, T) in [0, 1]; returns () in [-2, 0].
    Raises: ValueError for alpha <= 0, shapes that differ, relevance outside [0, 1] or NaN.
    Source: Qin, Liu and Li, A general approximation framework for direct optimization of
        information retrieval measures, Information Retrieval 2010; Bruch et al., Revisiting
        approximate metric optimization in the age of deep neural networks, SIGIR 2019.
    Differs: two directions, added; relevance lies in [0, 1] instead of grades 0 to 4; not truncated
        at a rank, so that their smooth indicator of the top n is not needed.
    Example:
        >>> import torch
        >>> scores, relevance = torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0]])
        >>> value = ApproxNDCGLoss()(scores, relevance)
        >>> round(value.item(), 4)  # i2t: -1 / log2(2.5); one text finds its image at once, one has
        ... # nothing to find: -(1 + 0) / 2
        -1.2565
    """

    name, label, version, labels = "approx_ndcg", "ApproxNDCG", 1, "unit"
    source = "Qin et al., Information Retrieval 2010; Bruch et al., SIGIR 2019"

    def __init__(self, alpha: float = 10.0) -> None:
        super().__init__()
        check_number("alpha", alpha, above=0)
        self.alpha = alpha

    def forward(self, scores: Tensor, relevance: Tensor) -> Tensor:
        scores, _ = read_batch(scores, relevance, self.labels)
        relevance = relevance.to(scores.dtype)
        return self.direction(scores, relevance) + self.direction(scores.T, relevance.T)

    def direction(self, scores: Tensor, relevance: Tensor) -> Tensor:
        """() loss of the rows' lists."""
        ndcg, _ = smooth_ndcg(scores, relevance, 1 / self.alpha)  # (I,), 0 without gains
        return -ndcg.mean()
