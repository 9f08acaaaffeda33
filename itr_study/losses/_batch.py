"""What every loss on scores does first and last: check the batch, average over the matches."""

import torch
from torch import Tensor

from itr_study.checks import MATCH, check_relevance, check_scores


def read_batch(scores: Tensor, relevance: Tensor, labels: str) -> tuple[Tensor, Tensor]:
    """Scores (I, T) in float32 (float64 stays) and the match mask (I, T) bool, both checked.

    Half precision is widened because its spacing near a cosine of 1 (0.004 in bfloat16) is of
    the size of the differences that a ranking loss is about.
    """
    check_scores(scores, relevance)
    check_relevance(relevance, labels)
    return scores if scores.dtype == torch.float64 else scores.float(), relevance >= MATCH


def negatives(scores: Tensor, match: Tensor) -> Tensor:
    """(I, T) scores of the non-matches; -inf at matches, so that a maximum passes over them."""
    return scores.masked_fill(match, -torch.inf)


def log_sum_exp(logits: Tensor, match: Tensor, dim: int) -> Tensor:
    """Log-sum-exp of the non-matches along dim, kept as size 1; -inf where there are none.

    Where all are -inf the gradient of logsumexp is NaN, but filling the matches stops it there.
    """
    return negatives(logits, match).logsumexp(dim, keepdim=True)


def over_matches(values: Tensor, match: Tensor, reduction: str) -> Tensor:
    """Mean or sum of values (I, T) over the matches; 0 where there is no match."""
    total = values.where(match, 0.0).sum()
    return total if reduction == "sum" else total / match.sum().clamp(min=1)
