"""Ladder loss of CVSE++."""

from collections.abc import Sequence

import torch
from torch import Tensor

from itr_study.checks import check_choice, check_number
from itr_study.losses._batch import negatives
from itr_study.losses._hinge import REDUCTIONS, hinge
from itr_study.losses.base import RankingLoss


class LadderLoss(RankingLoss):
    """Push matches above the rest, and at each rung all more relevant above all less relevant.

        L = triplet_hardest with margin alpha_0
            + sum_l beta_l mean_i [alpha_l + max_{r_ik<theta_l} s_ik - min_{r_ij>=theta_l} s_ij]+
            + the rungs of the texts

    A query adds 0 to a rung that has nothing above or nothing below. One without a match adds 0 to
    the triplet; its rungs count as those of any other.

    Use: on cosine labels, if a few coarse levels of relevance will do. They depend on the labels:
        look at their distribution before choosing thresholds.
    See: triplet_hardest (its first term), kendall_window (many levels, no margins), semantic_margin
        (relevance sets the margin).

    Args:
        thresholds: relevance of each rung, falling, each in (-1, 1); theta. The authors' 0.63 is
            for cosines of averaged word vectors.
        margins: of the triplet, then of each rung, >= 0, in units of scores; alpha.
        weights: of each rung, >= 0; beta.
        reduction: "mean" over matches (triplet) and over queries (rungs), or "sum".
    Source: Zhou et al., Ladder loss for coherent visual-semantic embedding, AAAI 2020, with the
        hard contrastive sampling of CVSE++; the defaults are those of the authors' code.
    Differs: means, not sums over the batch; matches are above every rung whatever their label. In
        the authors' code items of the other side take part in the extremes with a score of 0 or 1.

    Example:
        >>> import torch
        >>> scores, relevance = torch.tensor([[0.9, 0.2, 0.5]]), torch.tensor([[1.0, 0.7, 0.3]])
        >>> value = LadderLoss()(scores, relevance)
        >>> round(value.item(), 4)  # the triplet is met; rung: 0.25 (0.01 + 0.5 - 0.2)
        0.0775
    """

    name, display_name, version, relevance_scale = "ladder", "Ladder", 1, "cosine"

    def __init__(self, thresholds: Sequence[float] = (0.63,),
                 margins: Sequence[float] = (0.2, 0.01), weights: Sequence[float] = (0.25,),
                 reduction: str = "mean") -> None:
        super().__init__()
        given = {"thresholds": thresholds, "margins": margins, "weights": weights}
        for name, values in given.items():
            if not isinstance(values, Sequence) or isinstance(values, str):
                raise ValueError(f"{name} must be a list of numbers, got {values!r}; for one "
                                 f"number: {name}=[{values}]")
            for value in values:
                check_number(name, value, **{"above": -1, "most": 1} if name == "thresholds" else
                             {"least": 0})
        self.thresholds, self.margins, self.weights = map(tuple, given.values())
        if len(margins) != len(thresholds) + 1 or len(weights) != len(thresholds):
            raise ValueError("a ladder needs a weight for each of its thresholds, and one margin "
                             f"more; got {len(thresholds)} thresholds, {len(margins)} margins and "
                             f"{len(weights)} weights")
        if list(self.thresholds) != sorted(set(self.thresholds), reverse=True):
            raise ValueError(f"thresholds must fall, got {self.thresholds}")
        check_choice("reduction", reduction, REDUCTIONS)
        self.reduction = reduction

    def _loss(self, scores: Tensor, relevance: Tensor, match: Tensor) -> Tensor:
        others = negatives(scores, match)  # (I, T), -inf at matches
        total = hinge(scores, match, others.amax(dim=1, keepdim=True),
                      others.amax(dim=0, keepdim=True), self.margins[0], self.reduction)
        for threshold, margin, weight in zip(self.thresholds, self.margins[1:], self.weights,
                                             strict=True):
            above = match | (relevance >= threshold)
            total = total + weight * (self.rung(scores, above, margin, dim=1)
                                      + self.rung(scores, above, margin, dim=0))
        return total

    def rung(self, scores: Tensor, above: Tensor, margin: float, dim: int) -> Tensor:
        """Return the hinge () of the largest score below and the least above, along dim."""
        least_above = scores.masked_fill(~above, torch.inf).amin(dim)
        largest_below = scores.masked_fill(above, -torch.inf).amax(dim)
        hinges = (margin + largest_below - least_above).relu()
        return hinges.sum() if self.reduction == "sum" else hinges.mean()
