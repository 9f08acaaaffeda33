"""The trainable image encoders that models share: region features to one vector per image."""

import torch
from torch import Tensor, nn

from itr_study.checks import check_choice


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


REGION_POOLS = {"mean": masked_mean, "max": masked_max, "both": masked_both}


class LinearRegions(nn.Module):
    """Map every region linearly, then pool over regions.

    Args:    region_size: D of the features; size: of the result; pool: "mean", "max" or "both";
             dropout: share of input features set to zero in training.
    Shape:   regions (I, R, D), mask (I, R) -> (I, size), not normalised.
    Source:  VSE++ (Faghri et al., BMVC 2018) has the linear map; pooling over regions by maximum
             is what the listwise paper's baseline does.
    """

    def __init__(self, region_size: int, size: int, pool: str = "mean", dropout: float = 0.0):
        super().__init__()
        check_choice("pool", pool, REGION_POOLS)
        self.pool = REGION_POOLS[pool]
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(region_size, size)

    def forward(self, regions: Tensor, mask: Tensor) -> Tensor:
        return self.pool(self.linear(self.dropout(regions)), mask)
