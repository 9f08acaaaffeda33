"""Soft labels: the divergence of scores from the label matrix."""

from torch import Tensor

from itr_study.losses.listnet import ListNetLoss


class SoftLabelsLoss(ListNetLoss):
    """Bring the distribution of scores to that of the labels, in both directions.

        L = mean_i sum_j p_ij log(p_ij / q_ij) + the same over images for every text
        p_i = softmax_j(r_ij / tau_r),  q_i = softmax_j(s_ij / tau)

    A Kullback-Leibler divergence: listnet less the entropy of the labels. So at equal temperatures
    both train alike. It is 0 where scores are as labels. A list without a match counts, too.

    Use: beside a loss on matches, with a small weight, so that texts that fit several images are
        not pushed away: CUSA adds a tenth of it to info_nce.
    See: listnet (the same but for a constant, with other defaults), smooth_ndcg (ranks).

    Args:
        temperature: > 0, in units of scores; tau. CUSA begins at 0.45 and learns it.
        relevance_temperature: > 0, in units of relevance; tau_r. CUSA's 1 is for cosines.
    Source: Huang et al., Cross-modal and uni-modal soft-label alignment for image-text retrieval
        (CUSA), AAAI 2024, the cross-modal part.
    Differs: fixed temperatures; the directions are added, CUSA halves their sum and has labels of
        its own for each. Its part between items of one side is left out: scores do not show it.

    Example:
        >>> import torch
        >>> value = SoftLabelsLoss()(torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0]]))
        >>> round(value.item(), 4)  # log 2 less the entropy of (0.88, 0.12); texts have one image
        0.3278
    """

    name, display_name, version, relevance_scale = "soft_labels", "soft labels", 1, "unit"

    def __init__(self, temperature: float = 0.45, relevance_temperature: float = 0.5) -> None:
        super().__init__(temperature, relevance_temperature)

    def _loss(self, scores: Tensor, relevance: Tensor, match: Tensor) -> Tensor:
        label_logits = relevance.to(scores.dtype) / self.relevance_temperature  # (I, T)
        entropies = (-(label_logits.softmax(dim) * label_logits.log_softmax(dim)).sum(dim).mean()
                     for dim in (1, 0))
        return super()._loss(scores, relevance, match) - sum(entropies)
