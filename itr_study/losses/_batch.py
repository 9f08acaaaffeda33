"""Read a batch, average over its matches, and read fields of a model's output."""

from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import normalize

from itr_study.checks import MATCH, check_relevance, check_scores


def read_relevance(scores: Tensor, given: object, scale: str | None) -> object:
    """Make relevance (I, T) of ids, or of nothing; anything else is returned as it is.

    Args:
        scores: (I, T).
        given: None if image i belongs to text i alone; ids (N,) of the N pairs of square scores,
            equal for a match; or a pair of ids, (I,) and (T,).
        scale: of the relevance that the loss takes.
    Returns: 1 for a match and 0 otherwise, float32; bool for the scale "binary".

    Raises:
        ValueError: for the scale "cosine", scores that are not square, and ids of another shape or
            not whole numbers.
    """
    if given is None:
        check_scores(scores, scores)
        if scores.shape[0] != scores.shape[1]:
            raise ValueError(f"scores {tuple(scores.shape)} are not square, so that image i is not "
                             "the image of text i: give relevance (n_images, n_texts), or the ids "
                             "(image_ids, text_ids), equal for a match")
        given = torch.arange(len(scores), device=scores.device)
    if isinstance(given, Tensor) and given.ndim == 1:
        given = given, given
    given = tuple(given) if isinstance(given, list) and all(map(torch.is_tensor, given)) else given
    if not isinstance(given, tuple):
        return given
    if scale == "cosine":
        raise ValueError("this loss takes graded relevance in [-1, 1], not matches alone: give "
                         "relevance (n_images, n_texts), 1 for a match and for the others such as "
                         "the cosine of sentence vectors")
    for ids in given:
        if not isinstance(ids, Tensor) or ids.is_floating_point() or ids.dtype == torch.bool:
            raise ValueError("ids must be tensors of whole numbers, got "
                             f"{ids.dtype if isinstance(ids, Tensor) else type(ids).__name__}")
    if tuple(map(tuple, (ids.shape for ids in given))) != tuple((n,) for n in scores.shape):
        raise ValueError(f"ids must be one for each image and one for each text of scores "
                         f"{tuple(scores.shape)}; got {[tuple(ids.shape) for ids in given]}; for "
                         "scores that are not square give (image_ids, text_ids)")
    match = given[0][:, None] == given[1]
    return match if scale == "binary" else match.float()


def read_batch(scores: Tensor, relevance: Tensor, scale: str | None) -> tuple[Tensor, Tensor]:
    """Return scores (I, T) in float32 (float64 stays) and the match mask (I, T), checked.

    Half precision is widened: its spacing near a cosine of 1 (0.004 in bfloat16) is of the size of
    the differences that a ranking loss is about.
    """
    check_scores(scores, relevance)
    check_relevance(relevance, scale or "")
    return scores if scores.dtype == torch.float64 else scores.float(), relevance >= MATCH


def negatives(scores: Tensor, match: Tensor) -> Tensor:
    """Return scores (I, T) with -inf at matches, so that a maximum passes over them."""
    return scores.masked_fill(match, -torch.inf)


def log_sum_exp(logits: Tensor, match: Tensor, dim: int) -> Tensor:
    """Return log-sum-exp of the non-matches along dim, kept as size 1; -inf for none.

    If all are -inf the gradient of logsumexp is NaN; filling the matches stops it there.
    """
    return negatives(logits, match).logsumexp(dim, keepdim=True)


def over_matches(values: Tensor, match: Tensor, reduction: str) -> Tensor:
    """Return the mean or sum of values (I, T) over the matches; 0 without a match."""
    total = values.where(match, 0.0).sum()
    return total if reduction == "sum" else total / match.sum().clamp(min=1)


class Output(Protocol):
    """An output of a model: scores (I, T), and other tensors by name or None."""

    scores: Tensor


def part(output: Output, name: str, loss: str) -> Tensor:
    """Return a field of the output in float32 at least; without it ValueError names models."""
    found = vars(output).get(name)
    if found is None:
        models = {"text_subembeddings": "'two_branch', 'pvse' or 'dvse' with text_heads=2",
                  "joined_scores": "'vsepp' or 'dvse', and let `fit` train it, which joins texts"}
        raise ValueError(f"{loss} needs {name} in the output of the model, and this one has none; "
                         "take a model that does, such as " + models.get(name, "'dvse' or 'pvse'"))
    return found if found.dtype == torch.float64 else found.float()


def head_cosines(vectors: Tensor) -> Tensor:
    """Return cosines (N, K, K) between K vectors (N, K, D) of an item, 0 on the diagonal."""
    unit = normalize(vectors, dim=2)
    cosines = unit @ unit.transpose(1, 2)
    return cosines.masked_fill(torch.eye(vectors.shape[1], dtype=torch.bool,
                                         device=vectors.device), 0.0)
