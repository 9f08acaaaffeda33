"""SAM, the semantic adaptive margin."""

from torch import Tensor

from itr_study.checks import check_choice, check_number
from itr_study.losses._batch import negatives, over_matches
from itr_study.losses._hinge import REDUCTIONS, sum_of_hinges
from itr_study.losses.base import RankingLoss

NEGATIVES = ("all", "hardest")
LARGEST_MARGIN = 1.0


class SemanticMarginLoss(RankingLoss):
    """Push every match above non-matches by a margin that falls with their relevance.

        L = mean over matches (i, t) of  mean_u [(1 - r_iu) / tau + s_iu - s_it]+
                                         + the same over the images for the text

    Use: with an ordinary triplet loss, as in the paper, on labels in [0, 1] (CIDEr there).
    See: triplet_sum (one margin for all; as much memory), triplet_hardest (its usual companion
        here), ladder (levels of relevance, a margin each).

    Args:
        temperature: > 0, units of relevance for one unit of margin; tau. With 3 an irrelevant
            negative has a margin of 1/3. No margin is larger than 1.
        negatives: "all", the mean over all non-matches, or "hardest", the one with the largest
            score.
        reduction: "mean" over matches, or "sum".
    Source: Biten et al., Is an image worth five sentences? WACV 2022.
    Differs: a match has relevance 1, not its CIDEr against the image's captions; labels in [0, 1]
        (CIDEr-D / 10 for the paper's); "all" is the expectation of the random negative of the
        paper, so that the loss draws no random numbers.

    Example:
        >>> import torch
        >>> scores, relevance = torch.tensor([[0.5, 0.4, 0.3]]), torch.tensor([[1.0, 0.4, 0.1]])
        >>> value = SemanticMarginLoss(temperature=3)(scores, relevance)
        >>> round(value.item(), 4)  # (0.2 + 0.4 - 0.5 + 0.3 + 0.3 - 0.5) / 2; one image only
        0.1
    """

    name, display_name, version, relevance_scale = "semantic_margin", "Semantic margin", 1, "unit"

    def __init__(self, temperature: float = 3.0, negatives: str = "all",
                 reduction: str = "mean") -> None:
        super().__init__()
        check_number("temperature", temperature, above=0)
        check_choice("negatives", negatives, NEGATIVES)
        check_choice("reduction", reduction, REDUCTIONS)
        self.temperature, self.negatives, self.reduction = temperature, negatives, reduction

    def _loss(self, scores: Tensor, relevance: Tensor, match: Tensor) -> Tensor:
        margin = ((1 - relevance.to(scores.dtype)) / self.temperature).clamp(max=LARGEST_MARGIN)
        if self.negatives == "all":
            return self.all(scores, margin, match)
        return self.hardest(scores, margin, match) + self.hardest(scores.T, margin.T, match.T)

    def all(self, scores: Tensor, margin: Tensor, match: Tensor) -> Tensor:
        """Return the mean hinge () against all non-matches of each query."""
        raised = negatives(scores + margin, match)  # (I, T), -inf at matches
        total = sum_of_hinges(raised, scores, match, mean=True)
        return total if self.reduction == "sum" else total / match.sum().clamp(min=1)

    def hardest(self, scores: Tensor, margin: Tensor, match: Tensor) -> Tensor:
        """Return the hinge () against the non-match with the largest score of each row."""
        hardest, column = negatives(scores, match).max(dim=1, keepdim=True)  # (I, 1) each
        hinges = (margin.gather(1, column) + hardest - scores).relu()  # (I, T)
        return over_matches(hinges, match, self.reduction)
