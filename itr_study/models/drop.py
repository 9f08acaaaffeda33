"""Regions and words left out in training, so that a model relies on no single one of them."""

import torch
from torch import Tensor

MOST_DROPPED = 0.9  # of features, regions, words or units: beyond, next to nothing is left


def keep_some(mask: Tensor, share: float) -> Tensor:
    """The mask with about that share of what exists left out, by chance; at least one stays.

    Args:    mask: (N, P) bool, which of P places of N items exist; share: in [0, 1), the chance
             of each to be left out.
    Shape:   (N, P) bool. On a CPU wider padding changes nothing: the first place of every item is
             drawn before the second of any.
    """
    draws = torch.rand(mask.T.shape, device=mask.device).T.masked_fill(~mask, -1)
    last = draws >= draws.amax(dim=1, keepdim=True)
    return mask & ((draws >= share) | last)


def drop_features(vectors: Tensor, share: float) -> Tensor:
    """Vectors (N, K, D) with about that share of the features of each item set to 0, in all its K
    vectors alike, and the others scaled up: what one lacks cannot be read in the next.

    A coin for each of K x D numbers instead is slow, too: of a step of VSE∞ over 49 cells it was 40
    %, since torch tosses some 70 in a microsecond of a CPU.
    """
    kept = torch.rand(len(vectors), 1, vectors.shape[2], device=vectors.device) >= share
    return vectors * (kept.to(vectors.dtype) / (1 - share))


def drop_words(tokens: Tensor, lengths: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Texts with about that share of their words left out: the others move up, in their order.

    Shape:   tokens (T, W) padded with 0, lengths (T,) -> the same; at least one word stays.
    Source:  VSE∞ (Chen et al., CVPR 2021) drops words and regions alike, "size augmentation".
    Differs: its code leaves out 40 % of the chosen words and puts a mask word or another word in
             the place of half and a tenth of them; here all are left out, so that words and regions
             have one rule, and no vector is learnt for a mask that no test text has.
    """
    places = torch.arange(tokens.shape[1], device=tokens.device)
    kept = keep_some(places < lengths[:, None], share)
    order = (~kept).to(torch.uint8).argsort(dim=1, stable=True)  # what is kept, then all else
    left = kept.sum(dim=1)
    return tokens.gather(1, order).masked_fill(places >= left[:, None], 0), left
