"""InfoNCE, the contrastive loss of CLIP."""

from torch import Tensor
from torch.nn.functional import logsigmoid

from itr_study.checks import check_number
from itr_study.losses._batch import log_sum_exp, over_matches
from itr_study.losses.base import RankingLoss


class InfoNCELoss(RankingLoss):
    """Classify every match among its non-matches by a softmax, in both directions.

        L = mean over matches (i, t) of  -log( e_it / (e_it + sum_u e_iu) ) - the same over images
        e_it = exp(s_it / tau),  u over the non-matches of i

    Use: as the contrastive baseline: no margin; all negatives push, those with large scores most,
        the more so the smaller the temperature; CLIP starts at 0.07 and learns it, down to 0.01.
    See: sigmoid (every pair on its own, no softmax), triplet_soft (the same smooth maximum, with a
        margin), listnet (a softmax too, against graded labels).

    Args:
        temperature: > 0, in units of scores; tau.
    Source: van den Oord et al., Representation learning with contrastive predictive coding, 2018
        (InfoNCE); Radford et al., CLIP, ICML 2021 (both directions over a batch).
    Differs: a fixed temperature (losses hold no state), which CLIP learns; the directions are
        added, CLIP halves their sum; each of several matches of a query is classified on its own,
        the others left out of its denominator.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[0.5, 0.5, 0.5]])
        >>> value = InfoNCELoss(temperature=0.1)(scores, torch.tensor([[1.0, 0, 0]]))
        >>> round(value.item(), 4)  # log 3 for the image; the text has no other image
        1.0986
    """

    name, display_name, version, relevance_scale = "info_nce", "InfoNCE", 1, "binary"

    def __init__(self, temperature: float = 0.07) -> None:
        super().__init__()
        check_number("temperature", temperature, above=0)
        self.temperature = temperature

    def _loss(self, scores: Tensor, relevance: Tensor, match: Tensor) -> Tensor:
        logits = scores / self.temperature  # (I, T)
        # -log(a / (a + b)) = -log sigmoid(log a - log b): no exponential of a score is formed
        i2t = -logsigmoid(logits - log_sum_exp(logits, match, dim=1))  # (I, T)
        t2i = -logsigmoid(logits - log_sum_exp(logits, match, dim=0))  # (I, T)
        return over_matches(i2t + t2i, match, "mean")
