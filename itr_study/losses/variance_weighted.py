"""DVSE's triplet loss: one hinge a head, weighted by how widely its scores of others spread.

Use:  with a model of several heads (dvse, pvse), beside orthogonality, which keeps heads apart.
See:  triplet_hardest (the same hinge on one score a pair), orthogonality (the other half of DVSE),
      diversity (what PVSE adds).

    L = mean over matches of  sum_k [m + max_u s^k_iu - s^k_it]+ / v_ki + log(v_ki) / 2
        + the same over images for the text;   v_ki = (1 + Std_{u no match} s^k_iu)^2
"""

import torch
from torch import Tensor

from itr_study.checks import check_choice
from itr_study.losses._batch import negatives, over_matches, read_batch
from itr_study.losses._heads import Output, part
from itr_study.losses._hinge import check_hinge
from itr_study.losses.base import RankingLoss

WEIGHTS = ("variance", "equal")
SPREADS = ("cosine", "softmax")


class VarianceWeightedLoss(RankingLoss):
    """Push every head's score of a match above its hardest non-match, where it spreads little.

    Args:
        margin: required gap in units of scores; alpha in Eq. 11.
        weights: "variance", 1 / sigma^2; or "equal", 1 for every head and query, without the
            logarithm: the ablation, and the solid lines of Fig. 4.
        spread: sigma - 1 is the sample standard deviation of the "cosine" of a head with all
            non-matches of a query, or of their "softmax" probabilities over the batch.
        detach: whether sigma is a constant to the gradient.
        reduction: "mean" over matches, or "sum"; over heads it is a sum, as printed.
    Shape: output.head_scores (K, I, T), relevance (I, T); returns () >= 0.
    Raises: ValueError for margin < 0, another choice, a model without head_scores, relevance out
        of range.
    Source: dvse paper Eqs. 8 to 11.
    Differs: Eq. 8 takes the Std of "P(Theta = 0)": of cosines here, as the text says; of softmax
        probabilities it is below 0.001 and weighs nothing. sigma belongs to an image and a head in
        i2t, to a text and a head in t2i; the paper writes sigma_k. Eq. 10 is no identity (log exp x
        is x, not [x]+); the hinge is what is trained. Other texts of the same image are matches.
        sigma is detached: as a weight it should not be learnt smaller. Mean over matches.
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

    name, label, version, labels = "variance_weighted", "Variance-weighted", 1, "binary"
    source, takes = "dvse paper Eqs. 8 to 11", "output"

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
        return self.diagnose(output, relevance)[0]

    def diagnose(self, output: Output,
                 relevance: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss; sigma: its mean over heads and queries of both directions; sigma_std: how much
        it differs between the heads of a query."""
        heads, total, sigmas = part(output, "head_scores", self.name), 0.0, []
        for scores, labels in ((heads, relevance), (heads.transpose(1, 2), relevance.T)):
            match = read_batch(scores[0], labels, self.labels)[1]  # (Q, C) queries, candidates
            hardest = negatives(scores, match).amax(dim=2, keepdim=True)  # (K, Q, 1)
            hinges = (self.margin + hardest - scores).relu()  # (K, Q, C)
            if self.weights == "variance":
                sigma = 1 + self.std(scores, match)  # (K, Q)
                sigmas.append(sigma)
                hinges = (hinges / sigma.square()[..., None] + sigma.log()[..., None])
            total = total + over_matches(hinges.sum(dim=0), match, self.reduction)
        if not sigmas:
            return total, {}
        found = [sigma.detach() for sigma in sigmas]
        return total, {"sigma": torch.cat([s.flatten() for s in found]).mean(),
                       "sigma_std": torch.cat([s.std(dim=0, correction=0) for s in found]).mean()}

    def std(self, scores: Tensor, match: Tensor) -> Tensor:
        """(K, Q) sample standard deviation over the non-matches of each query; 0 for fewer than
        two of them."""
        values = scores.detach() if self.detach else scores
        if self.spread == "softmax":
            values = values.softmax(dim=2)
        count = (~match).sum(dim=1)  # (Q,)
        mean = values.masked_fill(match, 0.0).sum(dim=2) / count.clamp(min=1)
        squares = (values - mean[..., None]).square().masked_fill(match, 0.0).sum(dim=2)
        variance = squares / (count - 1).clamp(min=1)
        none = variance == 0  # the root of 0 has no finite gradient
        return variance.masked_fill(none, 1.0).sqrt().masked_fill(none, 0.0)
