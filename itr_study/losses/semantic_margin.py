"""SAM, the semantic adaptive margin: a triplet whose margin tells how much less relevant the rival.

    L = mean over matches (i, t) of  mean_u [(1 - r_iu) / tau + s_iu - s_it]+
                                     + the same over the images for the text
"""

from torch import Tensor, nn

from itr_study.checks import check_choice, check_number
from itr_study.losses._batch import negatives, over_matches, read_batch
from itr_study.losses._hinge import REDUCTIONS, sum_of_hinges

NEGATIVES = ("all", "hardest")
LARGEST_MARGIN = 1.0


class SemanticMargin(nn.Module):
    """Push every match above non-matches by a margin that falls with their relevance.

    The term alone: the paper adds it to an ordinary triplet loss. Memory: as `triplet_sum`.

    Args:
        temperature: > 0, units of relevance for one unit of margin; tau. With 3 an irrelevant rival
            has a margin of 1/3. No margin is larger than 1.
        negatives: "all", the mean over all non-matches, or "hardest", the one with the largest
            score.
        reduction: "mean" over matches, or "sum".
    Shape: scores (I, T), relevance (I, T) in [0, 1]; returns () >= 0.
    Raises: ValueError for temperature <= 0, another choice, shapes that differ, relevance out of
        range.
    Source: Biten et al., Is an image worth five sentences? WACV 2022.
    Differs: a match has relevance 1, where the paper takes its CIDEr against the image's captions;
        labels in [0, 1] (CIDEr-D / 10 for the paper's); "all" is the expectation of the random
        negative of the paper, so that the loss draws no random numbers.
    Example:
        >>> import torch
        >>> scores, relevance = torch.tensor([[0.5, 0.4, 0.3]]), torch.tensor([[1.0, 0.4, 0.1]])
        >>> value = SemanticMargin(temperature=3)(scores, relevance)
        >>> round(value.item(), 4)  # (0.2 + 0.4 - 0.5 + 0.3 + 0.3 - 0.5) / 2; one image only
        0.1
    """

    name, label, source, version = "semantic_margin", "SAM", "Biten et al. 2022", 1
    labels = "unit"

    def __init__(self, temperature: float = 3.0, negatives: str = "all",
                 reduction: str = "mean") -> None:
        super().__init__()
        check_number("temperature", temperature, above=0)
        check_choice("negatives", negatives, NEGATIVES)
        check_choice("reduction", reduction, REDUCTIONS)
        self.temperature, self.negatives, self.reduction = temperature, negatives, reduction

    def forward(self, scores: Tensor, relevance: Tensor) -> Tensor:
        scores, match = read_batch(scores, relevance, self.labels)
        margin = ((1 - relevance.to(scores.dtype)) / self.temperature).clamp(max=LARGEST_MARGIN)
        if self.negatives == "all":
            return self.all(scores, margin, match)
        return self.hardest(scores, margin, match) + self.hardest(scores.T, margin.T, match.T)

    def all(self, scores: Tensor, margin: Tensor, match: Tensor) -> Tensor:
        """() mean hinge against all non-matches of each query."""
        total = sum_of_hinges(negatives(scores + margin, match), scores, match, mean=True)
        return total if self.reduction == "sum" else total / match.sum().clamp(min=1)

    def hardest(self, scores: Tensor, margin: Tensor, match: Tensor) -> Tensor:
        """() hinge against the non-match with the largest score of each row."""
        largest, at = negatives(scores, match).max(dim=1, keepdim=True)
        hinges = (margin.gather(1, at) + largest - scores).relu()  # (I, T)
        return over_matches(hinges, match, self.reduction)
