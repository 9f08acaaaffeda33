"""Trainable image encoders that models share: region features to one vector per image."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from itr_study.checks import check_choice
from itr_study.data.batches import Batch, InputSpec
from itr_study.encoders import trainable_image_encoder, trainable_stages
from itr_study.models.base import RetrievalModel, fields
from itr_study.models.drop import drop_regions
from itr_study.models.gpo import GPO


def masked_mean(regions: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over existing regions. Shape: (I, R, D), mask (I, R) -> (I, D)."""
    kept = mask.unsqueeze(-1).to(regions.dtype)  # (I, R, 1)
    return (regions * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1)


def masked_max(regions: Tensor, mask: Tensor) -> Tensor:
    """Return the maximum over existing regions. Shape: (I, R, D), mask (I, R) -> (I, D)."""
    return regions.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(dim=1)


def masked_both(regions: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of the mean and the maximum. Shape: (I, R, D), mask (I, R) -> (I, D)."""
    return (masked_mean(regions, mask) + masked_max(regions, mask)) / 2


def unit(vectors: Tensor) -> Tensor:
    """Return vectors (..., D) of length 1, in float32 at least."""
    return normalize(vectors.to(torch.promote_types(vectors.dtype, torch.float32)), dim=-1)


def absent(exists: Tensor, dtype: torch.dtype) -> Tensor:
    """Return what to add before a softmax over places (N, P): minus infinity without a place.

    0 throughout for an item without any, whose weights would be NaN.
    """
    some = exists | ~exists.any(dim=1, keepdim=True)
    return torch.zeros(some.shape, dtype=dtype, device=some.device).masked_fill(~some, -torch.inf)


# What makes each pool: a function as it is, or a module with weights of its own.
REGION_POOLS: dict[str, Callable[[], Callable[[Tensor, Tensor], Tensor]]] = {
    "mean": lambda: masked_mean, "max": lambda: masked_max, "both": lambda: masked_both, "gpo": GPO}


class LinearRegions(nn.Module):
    """Map every region linearly, or by a small network, then pool over regions.

    Arguments are those of `VSEPP`; `alike` is its dropout_alike.

    Shape: regions (I, R, D), mask (I, R) -> (I, size), not normalised.
    Source: VSE++ (Faghri et al., BMVC 2018) has the linear map, the listwise paper's baseline the
        maximum over regions; VSE∞ (Chen et al., CVPR 2021) has "gpo" and leaves out regions.
    """

    def __init__(self, region_size: int, size: int, pool: str = "mean", dropout: float = 0.0,
                 region_dropout: float = 0.0, hidden: int | None = None,
                 hidden_dropout: float = 0.0, alike: bool = False) -> None:
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
        """Map and pool."""
        if self.training:
            regions, mask = drop_regions(regions, mask, self.region_dropout, self.alike_dropout)
        return self.pool(self.linear(self.dropout(regions)), mask)


class TunesNetwork(RetrievalModel):
    """A model of given features, or of those of a `network` that it trains.

    The whole of it over pixels, or its last stages over the maps that go into them. Its rate is set
    by learning_rate_factors, {"network": 0.1} or the like.
    """

    network: Any  # None: features are frozen

    def take_network(self, inputs: InputSpec) -> int:
        """Load the network that the data asks for, if any; return the size D of the regions."""
        check_regions(self.name, inputs, tunes=True)
        self.network = None
        if inputs.pixels:
            self.network = trainable_image_encoder(inputs.pixels)
        elif inputs.stages:
            self.network = trainable_stages(inputs.stages)
        return inputs.region_size if self.network is None else self.network.width

    def regions_of(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the regions (I, R, D) to map and pool, and which of them exist (I, R)."""
        if self.network is None:
            regions, exists = fields(batch, "regions", "region_mask")
            return regions, exists
        regions = self.network(batch.regions if batch.pixels is None else batch.pixels)
        return regions, torch.ones(regions.shape[:2], dtype=torch.bool, device=regions.device)


def check_regions(name: str, inputs: InputSpec, tunes: bool = False) -> None:
    """Raise ValueError unless the data has regions for a model, which may tune a network."""
    if asked := inputs.pixels or inputs.stages:
        if not tunes:
            raise ValueError(f"{name} reads features of a frozen network, and images=... asks for "
                             f"one that is fine-tuned ({asked}); take vsepp or vse_infinity, or "
                             'images="lite0:grid:one" or the like')
    elif not inputs.region_size:
        raise ValueError(f"{name} needs region features; set images=... in the run's config")
