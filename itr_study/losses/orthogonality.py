"""The orthogonality term of DVSE."""

from torch import Tensor

from itr_study.checks import check_choice, check_number
from itr_study.losses._batch import Output, head_cosines, part, read_batch
from itr_study.losses.base import RankingLoss

OVER = ("sum", "mean", "pair")


class OrthogonalityLoss(RankingLoss):
    """Keep the residuals of an image's heads at right angles, up to a bound.

        L = mean over images of [ sum_{a != b} m_a m_b |cos(v̂_a, v̂_b)| - bound ]+

    Use: with a ranking loss, for a model of several heads; alone it retrieves nothing.
    See: diversity (PVSE's way to the same end), variance_weighted (the other half of DVSE).

    Args:
        bound: what correlation is free, >= 0; beta in Eq. 4.
        masked: whether pairs of heads count only if the model's mask has both on (L_dc); else all
            do (L_ort).
        over: the bound is taken off the "sum" over all ordered pairs, as printed; off their "mean";
            or off every "pair", and then the mean.
    Shape: output.residuals (I, K, D), output.mask (I, K); returns () >= 0; 0 for one head.
    Source: dvse paper Eq. 4 (masked), and L_ort of its Sec. IV-C.
    Differs: residuals have length 1 here: the paper's bound of 0.4 means a correlation, and it does
        not say that its v̂ are normalised. "Norm" of a number is its absolute value. Mean over
        images, which the paper leaves open. The mask gets no gradient (it is rounded, of a frozen
        w2). Printed, 0.4 for 30 ordered pairs asks for a mean |cos| of 0.013, while random
        directions have 0.025 at D = 1024: nearly strict, against the paper's words; hence `over`.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> heads = torch.tensor([[[1.0, 0.0], [3.0, 4.0]]])  # one image, two heads: cosine 0.6
        >>> output = SimpleNamespace(scores=torch.zeros(1, 1), residuals=heads,
        ...                          mask=torch.ones(1, 2))
        >>> round(OrthogonalityLoss(bound=0.4)(output, torch.eye(1)).item(), 4)  # 2 x 0.6 - 0.4
        0.8
    """

    name, display_name, version, relevance_scale = "orthogonality", "Orthogonality", 1, "binary"
    takes = "output"

    def __init__(self, bound: float = 0.4, masked: bool = True, over: str = "sum") -> None:
        super().__init__()
        check_number("bound", bound, least=0)
        check_choice("masked", masked, (True, False))
        check_choice("over", over, OVER)
        self.bound, self.masked, self.over = bound, masked, over

    def forward(self, output: Output, relevance: Tensor) -> Tensor:
        """Return the loss () of an output."""
        return self.diagnose(output, relevance)[0]

    def diagnose(self, output: Output, relevance: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss and numbers of the heads.

        correlation: mean |cosine| over pairs of heads, masked or not; mask_rate: the share of heads
        that are on; mask_std: how much that differs between images, by head.
        """
        read_batch(output.scores, relevance, self.relevance_scale)  # only checked
        cosines = head_cosines(part(output, "residuals", self.name)).abs()  # (I, K, K)
        heads = cosines.shape[1]
        mask = cosines.new_ones(cosines.shape[:2])
        if self.masked or vars(output).get("mask") is not None:
            mask = part(output, "mask", self.name).detach()
        if mask.shape != cosines.shape[:2]:
            raise ValueError(f"mask must be (images, heads) = {tuple(cosines.shape[:2])}, got "
                             f"{tuple(mask.shape)}")
        on = mask if self.masked else mask.new_ones(mask.shape)
        both = on[:, :, None] * on[:, None, :] - (on * on).diag_embed()  # (I, K, K), 0 for a = b
        loss = self.reduced(cosines * both, both).mean()
        pairs = max(heads * (heads - 1), 1)
        numbers = {"correlation": cosines.detach().sum(dim=(1, 2)).mean() / pairs}
        if heads:
            numbers |= {"mask_rate": mask.mean(), "mask_std": mask.std(dim=0, correction=0).mean()}
        return loss, numbers

    def reduced(self, correlation: Tensor, both: Tensor) -> Tensor:
        """Return (I,) of correlations (I, K, K) that are 0 if a pair does not count."""
        pairs = both.sum(dim=(1, 2)).clamp(min=1)
        if self.over == "pair":
            return (correlation - self.bound).relu().sum(dim=(1, 2)) / pairs
        total = correlation.sum(dim=(1, 2))
        return ((total / pairs if self.over == "mean" else total) - self.bound).relu()
