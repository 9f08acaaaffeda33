"""The trainable image encoders that models share: region features to one vector per image."""

import torch
from torch import Tensor, nn

from itr_study.checks import check_choice
from itr_study.models.drop import drop_features, keep_some
from itr_study.models.gpo import GPO


def masked_mean(regions: Tensor, mask: Tensor) -> Tensor:
    """Mean over existing regions. Shape: (I, R, D), mask (I, R) -> (I, D)."""
    kept = mask.unsqueeze(-1).to(regions.dtype)  # (I, R, 1)
    return (regions * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1)


def masked_max(regions: Tensor, mask: Tensor) -> Tensor:
    """Maximum over existing regions. Shape: (I, R, D), mask (I, R) -> (I, D)."""
    return regions.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(dim=1)


def masked_both(regions: Tensor, mask: Tensor) -> Tensor:
    """Mean of the mean and the maximum over regions. Shape: (I, R, D), mask (I, R) -> (I, D)."""
    return (masked_mean(regions, mask) + masked_max(regions, mask)) / 2


# What makes each pool: a function as it is, or a module with weights of its own.
REGION_POOLS = {"mean": lambda: masked_mean, "max": lambda: masked_max, "both": lambda: masked_both,
                "gpo": GPO}


class LinearRegions(nn.Module):
    """Map every region linearly, or by a small network, then pool over regions.

    Args:    region_size: D of the features; size: of the result; pool: "mean", "max", "both", or
             "gpo", which learns how much the largest, the second largest, … value counts;
             dropout: share of input features set to zero in training; region_dropout: share of
             regions left out in training; hidden: units of a layer with ReLU before the linear
             map, None: there is no such layer; hidden_dropout: on these units; alike: the dropped
             features are the same in all regions of an image, as if their mean lacked them.
    Shape:   regions (I, R, D), mask (I, R) -> (I, size), not normalised.
    Source:  VSE++ (Faghri et al., BMVC 2018) has the linear map; pooling over regions by maximum
             is what the listwise paper's baseline does; VSE∞ (Chen et al., CVPR 2021) has "gpo"
             and leaves out regions.
    """

    def __init__(self, region_size: int, size: int, pool: str = "mean", dropout: float = 0.0,
                 region_dropout: float = 0.0, hidden: int | None = None,
                 hidden_dropout: float = 0.0, alike: bool = False):
        super().__init__()
        check_choice("pool", pool, REGION_POOLS)
        self.dropout = nn.Dropout(0.0 if alike else dropout)
        self.alike_dropout = dropout if alike else 0.0
        self.region_dropout = region_dropout
        self.linear = nn.Linear(region_size, size) if hidden is None else nn.Sequential(
            nn.Linear(region_size, hidden), nn.ReLU(), nn.Dropout(hidden_dropout),
            nn.Linear(hidden, size))
        self.pool = REGION_POOLS[pool]()

    def forward(self, regions: Tensor, mask: Tensor) -> Tensor:
        if self.training and self.region_dropout:
            mask = keep_some(mask, self.region_dropout)
        if self.training and self.alike_dropout:
            regions = drop_features(regions, self.alike_dropout)
        return self.pool(self.linear(self.dropout(regions)), mask)
