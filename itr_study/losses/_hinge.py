"""What the hinge losses share: [margin + rival - match]+ in both directions, and the k largest.

    L = mean over matches (i, t) of  [margin + r_i - s_it]+  +  [margin + r_t - s_it]+

where r_i stands for the non-matching texts of image i and r_t for the non-matching images of
text t. The losses differ only in what they take as rival: the largest, a soft maximum, the mean
of the k largest, the k-th largest.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from itr_study.checks import check_choice, check_number, check_values
from itr_study.losses._batch import negatives, over_matches

REDUCTIONS = ("mean", "sum")


def check_hinge(margin: float, reduction: str) -> None:
    """Raise ValueError unless margin >= 0 and reduction is known."""
    check_number("margin", margin, least=0)
    check_choice("reduction", reduction, REDUCTIONS)


def check_k(k: int) -> None:
    """Raise ValueError unless k is an integer >= 1."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ValueError(f"k must be an integer >= 1, got {k!r}")


def hinge(scores: Tensor, match: Tensor, rival_text: Tensor, rival_image: Tensor,
          margin: float, reduction: str) -> Tensor:
    """() hinge of every match (I, T) against rival_text (I, 1) and rival_image (1, T).

    A rival of -inf (no negative) gives 0. At the kink relu passes no gradient.
    """
    i2t = (margin + rival_text - scores).relu()  # (I, T)
    t2i = (margin + rival_image - scores).relu()  # (I, T)
    return over_matches(i2t + t2i, match, reduction)


def k_largest(scores: Tensor, match: Tensor, k: int, dim: int) -> Tensor:
    """The k largest negatives along dim, sorted down; -inf throughout for a query with none.

    dim 1: (I, k), texts of each image; dim 0: (k, T), images of each text.
    Raises: ValueError where a query with a match has some negatives, but fewer than k.
    """
    counts = (~match).sum(dim)
    asked = match.any(dim) & (counts > 0)
    rows, columns = match.shape

    def complaint(found: list[float]) -> str | None:
        least = int(found[0])
        return None if least >= k else (
            f"k = {k}, but a query has only {least} negatives in this batch of {rows} images and "
            f"{columns} texts: take k <= {least} or larger batches")

    check_values(counts.masked_fill(~asked, max(rows, columns, k)).amin(0, keepdim=True), complaint)
    return negatives(scores, match).topk(min(k, match.shape[dim]), dim).values


def sum_of_hinges(rivals: Tensor, scores: Tensor, match: Tensor, mean: bool = False) -> Tensor:
    """() sum over matches, in both directions, of the sum or mean over rivals of [rival - match]+.

    A rival of -inf is none. A CPU lists the n matches: memory n (I + T), and a tenth of the time
    where a row has about one. Any other device would stop to tell the host how many there are, so
    there the rivals are sorted.
    """
    others = [(~match).sum(dim).clamp(min=1) for dim in (1, 0)] if mean else None  # (I,), (T,)
    if scores.device.type == "cpu":
        image, text = match.nonzero(as_tuple=True)  # (n,) each
        own = scores[image, text]
        sums = [(rivals.index_select(0, image) - own[:, None]).relu().sum(dim=1),  # over (n, T)
                (rivals.index_select(1, text) - own).relu().sum(dim=0)]  # over (I, n)
        others = [others[0][image], others[1][text]] if mean else None
    else:
        sums = [sum_by_sorting(rivals, scores, match),
                sum_by_sorting(rivals.T, scores.T, match.T)]
    if mean:
        sums = [total / number for total, number in zip(sums, others, strict=True)]
    return sums[0].sum() + sums[1].sum()


def sum_by_sorting(rivals: Tensor, scores: Tensor, match: Tensor) -> Tensor:
    """(I,) of every row the sum over its matches and rivals of [rival - match]+, in O(I T) memory:
    the rivals above a score are the last so many. In float64, for differences of long sums."""
    rising, own = rivals.double().contiguous().sort(dim=1).values, scores.double().contiguous()
    passed = torch.searchsorted(rising.detach(), own.detach(), right=True)  # (I, T)
    last = pad(rising.flip(1).cumsum(dim=1).flip(1), (0, 1))  # (I, T + 1) sums from there on
    each = last.gather(1, passed) - (scores.shape[1] - passed) * own  # (I, T)
    return each.where(match, 0.0).sum(dim=1).to(scores.dtype)
