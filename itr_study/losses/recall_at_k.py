"""A smooth recall at k, optimised directly."""

from collections.abc import Sequence

from torch import Tensor

from itr_study.checks import check_count, check_number
from itr_study.losses._ranks import smooth_rank
from itr_study.losses.base import RankingLoss


class RecallAtKLoss(RankingLoss):
    """Bring the matches of every query among its first k results, for several k.

        L = mean over images i with a match of  (1 - R_i)  +  the same over texts
        R_i = mean over k of  sum_j sigmoid((k - rank_ij) / tau_k) / min(k, n_i),  at most 1
        rank_ij = 1 + sum_{u != j} sigmoid((s_iu - s_ij) / tau),  j over the n_i matches of i

    The measure itself, its two steps made smooth. A match at rank k counts half, so the least value
    is not 0. Memory O(I T).

    Use: as the rival of topk; beside another loss, for a match far from k has hardly a gradient.
    See: topk (a hinge on the k hardest), smooth_ndcg (the same ranks, the whole list).

    Args:
        ks: places that count, each >= 1; R@1, R@5 and R@10 are what the field reports.
        temperature: > 0, in units of scores; tau. Small is close to the true rank.
        rank_temperature: > 0, in ranks; tau_k. Large: matches far below k are pulled, too.
    Source: Patel, Tolias and Matas, Recall@k surrogate loss with large batches and similarity
        mixup, CVPR 2022, and the authors' code.
    Differs: image and text queries; no mixup; one temperature for all k; queries may lack a match.

    Example:
        >>> import torch
        >>> scores, relevance = torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0]])
        >>> value = RecallAtKLoss(ks=(1,))(scores, relevance)
        >>> round(value.item(), 4)  # i2t: rank 1.5, 1 - sigmoid(-0.5); t2i: rank 1, 1 - 1/2
        1.1225
    """

    name, display_name, version, relevance_scale = "recall_at_k", "recall@k", 1, "binary"

    def __init__(self, ks: Sequence[int] = (1, 5, 10), temperature: float = 0.01,
                 rank_temperature: float = 1.0) -> None:
        super().__init__()
        if not isinstance(ks, Sequence) or isinstance(ks, str) or not ks:
            raise ValueError(f"ks must be a list of places, such as [1, 5, 10]; got {ks!r}")
        for k in ks:
            check_count("ks", k)
        check_number("temperature", temperature, above=0)
        check_number("rank_temperature", rank_temperature, above=0)
        self.ks, self.temperature, self.rank_temperature = tuple(ks), temperature, rank_temperature

    def _loss(self, scores: Tensor, relevance: Tensor, match: Tensor) -> Tensor:
        return self.direction(scores, match) + self.direction(scores.T, match.T)

    def direction(self, scores: Tensor, match: Tensor) -> Tensor:
        """Return the loss () of the rows' lists."""
        rank, counts = smooth_rank(scores, self.temperature), match.sum(dim=1)  # (I, T), (I,)
        recall = scores.new_zeros(len(scores))
        for k in self.ks:
            found = ((k - rank) / self.rank_temperature).sigmoid().where(match, 0.0).sum(dim=1)
            recall = recall + (found / counts.clamp(1, k)).clamp(max=1)
        missed = (1 - recall / len(self.ks)).where(counts > 0, 0.0)
        return missed.sum() / (counts > 0).sum().clamp(min=1)
