"""What the hinge losses share: [margin + rival - match]+ in both directions, and the k largest.

    L = mean over matches (i, t) of  [margin + r_i - s_it]+  +  [margin + r_t - s_it]+

where r_i stands for the non-matching texts of image i and r_t for the non-matching images of
text t. The losses differ only in what they take as rival: the largest, a soft maximum, the mean
of the k largest, the k-th largest.
"""

from torch import Tensor

from itr_study.checks import check_choice, check_number
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
    if (asked & (counts < k)).any():
        rows, columns = match.shape
        least = int(counts[asked].min())
        raise ValueError(f"k = {k}, but a query has only {least} negatives in this batch of "
                         f"{rows} images and {columns} texts: take k <= {least} or larger batches")
    return negatives(scores, match).topk(min(k, match.shape[dim]), dim).values
