"""The structure within a view, of DSPE."""

import torch
from torch import Tensor

from itr_study.checks import check_number
from itr_study.losses._batch import Output, part
from itr_study.losses._hinge import check_hinge, sum_of_hinges
from itr_study.losses.base import RankingLoss


class StructureLoss(RankingLoss):
    """Keep neighbours of a view closer than all others of that view, by a margin.

        L = images x mean [margin + d(x_i, x_j) - d(x_i, x_k)]+  +  texts x the same of texts,
        j a neighbour of i, k none;  neighbours: images that share a text, texts that share an image

    Use: with a ranking loss, and batches that hold several texts of an image
        (settings.texts_per_image): of 128 texts drawn from 30,000 about one pair shares an image.
        Alone it compares no image with any text.
    See: triplet_sum (the same hinge between images and texts), mmd (spreads both views alike).

    Args:
        margin: between distances, >= 0; m of Eq. 6. Vectors of length 1 are 0 to 2 apart.
        images, texts: weights of the two views, >= 0; lambda_2 and lambda_3 over the weight of the
            cross-view loss.
        reduction: "mean" over the triplets of a view, or "sum".
    Shape: output.subembeddings (I, K, D), output.text_subembeddings (T, K', D), of length 1, K = 1
        for models with one vector; returns () >= 0; 0 if no text and no image has a neighbour.
    Source: Wang et al., DSPE, CVPR 2016, Eqs. 4 to 6, the last two terms; topk paper, Table IV.
    Differs: the mean over all triplets of a batch, each view with the same weight (the paper sums
        over the most violated of those it samples). An item is no neighbour of itself; an image
        drawn twice is one of its copy. Of several vectors head k is compared with head k, and the
        mean taken over heads. Of two equal vectors the distance has no gradient; it is 0 here.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> texts = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]], [[0.6, 0.8]]])  # two of one image
        >>> output = SimpleNamespace(scores=torch.zeros(2, 3), subembeddings=texts[:2],
        ...                          text_subembeddings=texts)
        >>> match = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        >>> value = StructureLoss(margin=0.1)(output, match)  # d: 1.4142, 0.8944, 0.6325
        >>> round(value.item(), 4)  # (0.1 + 1.4142 - 0.8944 + 0.1 + 1.4142 - 0.6325) / 2
        0.7508
    """

    name, display_name, version, relevance_scale = "structure", "Structure", 1, "binary"
    takes = "output"

    def __init__(self, margin: float = 0.1, images: float = 1.0, texts: float = 1.0,
                 reduction: str = "mean") -> None:
        super().__init__()
        check_hinge(margin, reduction)
        check_number("images", images, least=0)
        check_number("texts", texts, least=0)
        self.margin, self.images, self.texts = margin, images, texts
        self.reduction = reduction

    def _loss(self, output: Output, relevance: Tensor, match: Tensor) -> Tensor:
        match = match.float()  # (I, T)
        texts = part(output, "text_subembeddings", self.name)  # fewer models have them: asked first
        images = part(output, "subembeddings", self.name)
        if (len(images), len(texts)) != match.shape:
            raise ValueError("structure needs vectors of every image and every text, "
                             f"{tuple(match.shape)} by the labels, got {len(images)} and "
                             f"{len(texts)}; let score give subembeddings of the whole batch")
        return (self.images * self.within(images, match @ match.T > 0)
                + self.texts * self.within(texts, match.T @ match > 0))

    def within(self, vectors: Tensor, related: Tensor) -> Tensor:
        """Return the loss () of a view: vectors (N, K, D), related (N, N), which share a match."""
        neighbour = related & ~torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
        heads = vectors.transpose(0, 1)
        close = -torch.cdist(heads, heads, compute_mode="donot_use_mm_for_euclid_dist")  # (K, N, N)
        # distances are the same both ways, so that the sum over rows and columns is twice that of
        # all triplets
        sums = [sum_of_hinges((head + self.margin).masked_fill(related, -torch.inf), head,
                              neighbour) for head in close]
        total = torch.stack(sums).sum() / (2 * len(close))
        if self.reduction == "sum":
            return total
        return total / (neighbour.sum(dim=1) * (~related).sum(dim=1)).sum().clamp(min=1)
