"""The diversity term of PVSE."""

import torch
from torch import Tensor

from itr_study.losses._batch import Output, head_cosines, part
from itr_study.losses.base import RankingLoss


class DiversityLoss(RankingLoss):
    """Keep the residuals of an item's K heads apart: the Frobenius norm of their cosines.

        L = mean over images of || C - diag C || / K^2 + the same over texts
        C: cosines of residuals

    Use: with a ranking loss, for pvse; its weight is small (0.1 and less).
    See: orthogonality (DVSE's, with a bound and a mask), mmd (PVSE's other term).
    Shape: output.residuals (I, K, D), and output.text_residuals (T, K, D) if the model has them;
        returns () >= 0; 0 for one head.
    Source: Song and Soleymani, PVSE, CVPR 2019, Eq. 5 and the authors' code (the K^2).
    Differs: dvse with one embedding of a text has no second part. If all cosines are 0
        the gradient is 0; the root has none there.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> heads = torch.tensor([[[1.0, 0.0], [3.0, 4.0]]])  # cosine 0.6, twice
        >>> output = SimpleNamespace(scores=torch.zeros(1, 1), residuals=heads,
        ...                          text_residuals=None)
        >>> round(DiversityLoss()(output, torch.eye(1)).item(), 4)  # sqrt(2 x 0.36) / 4
        0.2121
    """

    name, display_name, version, relevance_scale = "diversity", "Diversity", 1, "binary"
    takes = "output"

    def _loss(self, output: Output, relevance: Tensor, match: Tensor) -> Tensor:
        total = self.spread(part(output, "residuals", self.name))
        if vars(output).get("text_residuals") is not None:
            total = total + self.spread(part(output, "text_residuals", self.name))
        return total

    def spread(self, residuals: Tensor) -> Tensor:
        """Return the loss () of residuals (N, K, D)."""
        squares = head_cosines(residuals).square().sum(dim=(1, 2))
        none = squares == 0
        norms = squares.masked_fill(none, 1.0).sqrt().masked_fill(none, 0.0)
        return torch.mean(norms) / max(residuals.shape[1], 1) ** 2
