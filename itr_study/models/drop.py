"""Regions and words left out in training, so that a model relies on no single one of them."""

import torch
from torch import Tensor

from itr_study.checks import check_number

MOST_DROPPED = 0.9  # of features, regions, words or units: beyond, next to nothing is left


def check_shares(**shares: float) -> None:
    """Raise ValueError unless all are shares of at most MOST_DROPPED."""
    for name, share in shares.items():
        check_number(name, share, least=0, most=MOST_DROPPED)


def keep_some(mask: Tensor, share: float) -> Tensor:
    """Leave out a share in [0, 1) of what exists in a mask (N, P), by chance; at least one stays.

    On a CPU wider padding changes nothing: the first place of every item is drawn before the second
    of any.
    """
    draws = torch.rand(mask.T.shape, device=mask.device).T.masked_fill(~mask, -1)
    last = draws >= draws.amax(dim=1, keepdim=True)
    return mask & ((draws >= share) | last)


def drop_features(vectors: Tensor, share: float) -> Tensor:
    """Set about that share of the features of each item of (N, K, D) to 0, in all K vectors.

    The others are scaled up. What one vector lacks cannot be read in the next; a coin for each of
    K x D numbers is slow, too: 40 % of a step of VSE∞ over 49 cells.
    """
    kept = torch.rand(len(vectors), 1, vectors.shape[2], device=vectors.device) >= share
    return vectors * (kept.to(vectors.dtype) / (1 - share))


def drop_regions(regions: Tensor, exists: Tensor, share: float,
                 features: float) -> tuple[Tensor, Tensor]:
    """Leave out a share of the regions (I, R, D) that exist (I, R), and one of their features."""
    if share:
        exists = keep_some(exists, share)
    return drop_features(regions, features) if features else regions, exists


def drop_words(tokens: Tensor, lengths: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Leave out about that share of the words of texts: the others move up, in their order.

    Shape: tokens (T, W) padded with 0, lengths (T,) -> the same; at least one word stays.
    Source: VSE∞ (Chen et al., CVPR 2021) drops words and regions, "size augmentation".
    Differs: its code leaves out 40 % of the chosen words and replaces half of them by a mask word
        and a tenth by another word; here all are left out, so that words and regions have one rule,
        and no vector is learnt for a mask that no test text has.
    """
    places = torch.arange(tokens.shape[1], device=tokens.device)
    kept = keep_some(places < lengths[:, None], share)
    order = (~kept).to(torch.uint8).argsort(dim=1, stable=True)  # what is kept, then all else
    left = kept.sum(dim=1)
    return tokens.gather(1, order).masked_fill(places >= left[:, None], 0), left
