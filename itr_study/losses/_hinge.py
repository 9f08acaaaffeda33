"""What the hinge losses share: [margin + negative - match]+ in both directions.

    L = mean over matches (i, t) of  [margin + n_i - s_it]+  +  [margin + n_t - s_it]+

n_i is a score of image i with non-matching texts, n_t one of text t with non-matching images: the
largest, a soft maximum, the mean of the k largest, the k-th largest; or the sum over all.
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


def hinge(scores: Tensor, match: Tensor, negative_text: Tensor, negative_image: Tensor,
          margin: float, reduction: str) -> Tensor:
    """Return the hinge () of every match (I, T) against negatives (I, 1) and (1, T).

    -inf means no negative and gives 0. At the kink relu passes no gradient.
    """
    i2t = (margin + negative_text - scores).relu()  # (I, T)
    t2i = (margin + negative_image - scores).relu()  # (I, T)
    return over_matches(i2t + t2i, match, reduction)


def k_largest(scores: Tensor, match: Tensor, k: int, dim: int) -> Tensor:
    """Return the k largest negatives along dim, falling; all -inf for a query with none.

    dim 1: (I, k), texts of each image; dim 0: (k, T), images of each text. ValueError if a query
    with a match has some negatives, but fewer than k.
    """
    counts = (~match).sum(dim)
    needed = match.any(dim) & (counts > 0)
    rows, columns = match.shape

    def complaint(values: list[float]) -> str | None:
        least = int(values[0])
        return None if least >= k else (
            f"k = {k}, but a query has only {least} negatives in this batch of {rows} images and "
            f"{columns} texts: take k <= {least} or larger batches")

    fewest = counts.masked_fill(~needed, max(rows, columns, k)).amin(0, keepdim=True)
    check_values(fewest, complaint)
    return negatives(scores, match).topk(min(k, match.shape[dim]), dim).values


def sum_of_hinges(raised: Tensor, scores: Tensor, match: Tensor, mean: bool = False) -> Tensor:
    """Sum [margin + n - s]+ over matches and directions; over negatives n sum or mean.

    raised: (I, T) scores of the negatives plus margin, -inf at matches. A CPU lists the n matches:
    memory n (I + T), and a tenth of the time if a row has about one. Any other device would stop to
    tell the host how many there are, so there the negatives are sorted.
    """
    counts = [(~match).sum(dim).clamp(min=1) for dim in (1, 0)] if mean else []  # (I,), (T,)
    if scores.device.type == "cpu":
        image, text = match.nonzero(as_tuple=True)  # (n,) each
        own = scores[image, text]
        sums = [(raised.index_select(0, image) - own[:, None]).relu().sum(dim=1),  # over (n, T)
                (raised.index_select(1, text) - own).relu().sum(dim=0)]  # over (I, n)
        counts = [count[of] for count, of in zip(counts, (image, text), strict=False)]
    else:
        sums = [sum_by_sorting(raised, scores, match), sum_by_sorting(raised.T, scores.T, match.T)]
    if mean:
        sums = [total / count for total, count in zip(sums, counts, strict=True)]
    return sums[0].sum() + sums[1].sum()


def sum_by_sorting(raised: Tensor, scores: Tensor, match: Tensor) -> Tensor:
    """Return the sums (I,) over the matches and negatives of every row, in O(I T) memory.

    Sorted, those above a score are the last so many. In float64, for differences of long sums.
    """
    rising, own = raised.double().contiguous().sort(dim=1).values, scores.double().contiguous()
    below = torch.searchsorted(rising.detach(), own.detach(), right=True)  # (I, T) how many
    sums = pad(rising.flip(1).cumsum(dim=1).flip(1), (0, 1))  # (I, T + 1) of each and those above
    hinges = sums.gather(1, below) - (scores.shape[1] - below) * own  # (I, T)
    return hinges.where(match, 0.0).sum(dim=1).to(scores.dtype)
