"""The sigmoid loss of SigLIP."""

from torch import Tensor
from torch.nn.functional import logsigmoid

from itr_study.checks import check_number
from itr_study.losses.base import RankingLoss


class SigmoidLoss(RankingLoss):
    """Ask of every pair whether it is a match; divide by the number n of matches.

        L = -(1/n) sum_it log sigmoid( z_it (scale s_it + bias) ),  z = 1 for a match, else -1

    Use: to compare with info_nce: pairs do not compete, there is no softmax over the batch.
    See: info_nce (the non-matches of a query compete), triplet_sum (a match against each
        non-match).

    Args:
        scale: > 0, per unit of scores; t of Eq. 1, 10 at the start of the paper's training.
        bias: added to the scaled score; b of Eq. 1, -10 at the start: most pairs are no matches.
    Source: Zhai et al., Sigmoid loss for language image pre-training, ICCV 2023, Eq. 1.
    Differs: scale and bias are fixed (losses hold no state), the paper learns both; the bias is
        added as in its Algorithm 1 (Eq. 1 prints the opposite sign); n counts matches, which is the
        batch size for a batch of pairs. A pair whose image and text both have no match is left out.

    Example:
        >>> import torch
        >>> scores, relevance = torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0]])
        >>> value = SigmoidLoss(scale=10, bias=-5)(scores, relevance)
        >>> round(value.item(), 4)  # log 2 for the match, log 2 for the other text
        1.3863
    """

    name, display_name, version, relevance_scale = "sigmoid", "sigmoid", 1, "binary"

    def __init__(self, scale: float = 10.0, bias: float = -10.0) -> None:
        super().__init__()
        check_number("scale", scale, above=0)
        check_number("bias", bias)
        self.scale, self.bias = scale, bias

    def _loss(self, scores: Tensor, relevance: Tensor, match: Tensor) -> Tensor:
        logits = self.scale * scores + self.bias  # (I, T)
        values = -logsigmoid(logits.where(match, -logits))  # (I, T)
        has_match = match.any(dim=1, keepdim=True) | match.any(dim=0, keepdim=True)  # (I, T)
        return values.where(has_match, 0.0).sum() / match.sum().clamp(min=1)
