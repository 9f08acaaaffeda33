"""The variance-weighted triplet loss of DVSE."""

import torch
from torch import Tensor

from itr_study.checks import check_choice
from itr_study.losses._batch import Output, negatives, over_matches, part, read_batch
from itr_study.losses._hinge import check_hinge
from itr_study.losses.base import RankingLoss

WEIGHTS = ("variance", "equal")
SPREADS = ("cosine", "softmax")


class VarianceWeightedLoss(RankingLoss):
    """Push every head's score of a match above its hardest non-match, weighted by its spread.

        L = mean over matches (image i, text t) of the sum over heads k of
                [m + max_u s^k_iu - s^k_it]+ / sigma^2 + log sigma      u over texts of other images
            + the same over images for the text;   sigma = 1 + Std of s^k_iu over all texts u but t

    Use: with a model of several heads (dvse, pvse), and orthogonality, which keeps heads apart.
    See: triplet_hardest (the same hinge on one score a pair), orthogonality (the other half of
        DVSE), diversity (what PVSE adds).

    Args:
        margin: required gap in units of scores; alpha in Eq. 11.
        weights: "variance", 1 / sigma^2; or "equal", 1 for every head and query, without the
            logarithm: the ablation, and the solid lines of Fig. 4.
        spread: sigma - 1 is the sample standard deviation of the "cosine" of a head with all
            candidates of a query but the target (its other matches, too: Eq. 7), or of their
            "softmax" probabilities over the batch.
        detach: whether sigma is a constant to the gradient: a weight should not be learnt smaller.
        reduction: "mean" over matches, or "sum"; over heads it is a sum, as printed.
    Shape: output.head_scores (K, I, T), relevance (I, T); returns () >= 0.
    Source: dvse paper Eqs. 8 to 11.
    Differs: Eq. 8 takes the Std of "P(Theta = 0)": of cosines here, as the text has it; of softmax
        probabilities it is below 0.001 and weighs nothing. sigma belongs to a match, a head and a
        direction; the paper writes sigma_k. Eq. 10 is no identity (log exp x is x, not [x]+); the
        hinge is what is trained. Other texts of the same image are matches. Mean over matches.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> scores = torch.tensor([[[0.9, 0.8, 0.6]]])  # one head, one image, its text is the first
        >>> loss = VarianceWeightedLoss(margin=0.2)
        >>> output = SimpleNamespace(scores=scores[0], head_scores=scores)
        >>> value = loss(output, torch.tensor([[1.0, 0.0, 0.0]]))
        >>> round(value.item(), 4)  # Std 0.1414: 0.1 / 1.1414 ** 2 + log(1.1414)
        0.209
    """

    name, display_name, version, relevance_scale = (
        "variance_weighted", "Variance-weighted", 1, "binary")
    takes = "output"

    def __init__(self, margin: float = 0.2, weights: str = "variance", spread: str = "cosine",
                 detach: bool = True, reduction: str = "mean") -> None:
        super().__init__()
        check_hinge(margin, reduction)
        check_choice("weights", weights, WEIGHTS)
        check_choice("spread", spread, SPREADS)
        check_choice("detach", detach, (True, False))
        self.margin, self.reduction, self.detach = margin, reduction, detach
        self.weights, self.spread = weights, spread

    def forward(self, output: Output, relevance: Tensor) -> Tensor:
        """Return the loss () of an output."""
        return self.diagnose(output, relevance)[0]

    def diagnose(self, output: Output, relevance: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss, the mean of sigma over heads and matches, and its Std over heads."""
        heads, sigmas, stds = part(output, "head_scores", self.name), [], []
        total = heads.new_zeros(())
        if not len(heads):
            raise ValueError("head_scores must be (heads, images, texts) of one head at least, got "
                             f"{tuple(heads.shape)}")
        for scores, labels in ((heads, relevance), (heads.transpose(1, 2), relevance.T)):
            match = read_batch(scores[0], labels, self.relevance_scale)[1]  # (Q, C)
            hardest = negatives(scores, match).amax(dim=2, keepdim=True)  # (K, Q, 1)
            hinges = (self.margin + hardest - scores).relu()  # (K, Q, C)
            if self.weights == "variance":
                sigma = 1 + self.std(scores)
                hinges = hinges / sigma.square() + sigma.log()
                sigma = sigma.detach()
                mean = sigma.mean(dim=0)
                # by hand: torch's std over a first axis takes thirty times as long
                std = (sigma - mean).square().mean(dim=0).sqrt()
                sigmas.append(over_matches(mean, match, "mean"))
                stds.append(over_matches(std, match, "mean"))
            total = total + over_matches(hinges.sum(dim=0), match, self.reduction)
        if not sigmas:
            return total, {}
        return total, {"sigma": torch.stack(sigmas).mean(), "sigma_std": torch.stack(stds).mean()}

    def std(self, scores: Tensor) -> Tensor:
        """Return the spread (K, Q, C) over the candidates of a query but the one at each place.

        The sample standard deviation; 0 of fewer than two, or if they are equal but for rounding.
        """
        values = scores.detach() if self.detach else scores
        if self.spread == "softmax":
            values = values.softmax(dim=2)
        count = values.shape[2]
        if count < 3:
            return torch.zeros_like(values)
        off = values - values.mean(dim=2, keepdim=True)
        # the sum of squares around the mean of all, less what one of them has in it
        whole = off.square().sum(dim=2, keepdim=True)
        squares = whole - off.square() * (count / (count - 1))
        none = squares <= 8 * torch.finfo(values.dtype).eps * whole  # the root of 0 has no gradient
        return (squares.masked_fill(none, 1.0) / (count - 2)).sqrt().masked_fill(none, 0.0)
