"""ListNet, in its top-one form."""

from torch import Tensor

from itr_study.checks import check_number
from itr_study.losses.base import RankingLoss


class ListNetLoss(RankingLoss):
    """Make the top-one distribution of scores that of the labels, in both directions.

        L = -mean_i sum_j p_ij log q_ij - the same over images for every text
        p_i = softmax_j(r_ij / tau_r),  q_i = softmax_j(s_ij / tau)

    The least value is the entropy of the labels' distribution, not 0. With temperature = 2
    relevance_temperature, as by default, it is reached if scores equal the cosines behind labels
    (1 + cos) / 2, up to a constant in each list. A list without a match counts as any other.

    Use: to compare with smooth_ndcg: graded labels, the whole list, but no ranks. Choose the two
        temperatures together.
    See: smooth_ndcg (ranks), approx_ndcg (ranks too), info_nce (all weight on the match).

    Args:
        temperature: > 0, in units of scores; tau.
        relevance_temperature: > 0, in units of relevance; tau_r. Small: nearly all on the match, as
            in info_nce; large: nearly uniform. With 0.05 and sentence labels around 0.55 the match
            has most of the weight among 128 texts, and near paraphrases the rest.
    Source: Cao et al., Learning to rank: from pairwise approach to listwise approach, ICML 2007,
        the top-one form.
    Differs: two directions, added; temperatures, which grades 0 to 4 and unbounded scores do not
        need, but labels in [0, 1] and cosines do.

    Example:
        >>> import torch
        >>> value = ListNetLoss()(torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0]]))
        >>> round(value.item(), 4)  # log 2 whatever the labels; each text has only one image
        0.6931
    """

    name, display_name, version, relevance_scale = "listnet", "ListNet", 1, "unit"

    def __init__(self, temperature: float = 0.1, relevance_temperature: float = 0.05) -> None:
        super().__init__()
        check_number("temperature", temperature, above=0)
        check_number("relevance_temperature", relevance_temperature, above=0)
        self.temperature, self.relevance_temperature = temperature, relevance_temperature

    def _loss(self, scores: Tensor, relevance: Tensor, match: Tensor) -> Tensor:
        label_logits = relevance.to(scores.dtype) / self.relevance_temperature  # (I, T)
        logits = scores / self.temperature  # (I, T)
        i2t, t2i = (-(label_logits.softmax(dim) * logits.log_softmax(dim)).sum(dim).mean()
                    for dim in (1, 0))
        return i2t + t2i
