"""The trainable image encoders that models share: region features to one vector per image."""

import torch
from torch import Tensor, nn

from itr_study.checks import check_choice
from itr_study.data.batches import Batch, InputSpec
from itr_study.encoders.trainable import trainable_image_encoder, trainable_stages
from itr_study.models.base import RetrievalModel
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


# Models that may train an image network, or its last stages, beside their own weights.

class TunesNetwork(RetrievalModel):
    """A model whose regions are features as they come, or those of a `network` that it trains:
    the whole of it over pixels, or its last stages over the maps that go into them.

    Its rate is set by learning_rate_factors, {"network": 0.1} or the like.
    """

    network: nn.Module | None  # None: features are frozen

    def take_network(self, inputs: InputSpec) -> int:
        """Load the network that the data asks for, if any; the size D of the regions.

        Raises:  ValueError where the data has no regions; WeightsError.
        """
        check_regions(self.name, inputs, tunes=True)
        self.network = None
        if inputs.pixels:
            self.network = trainable_image_encoder(inputs.pixels)
        elif inputs.stages:
            self.network = trainable_stages(inputs.stages)
        return inputs.region_size if self.network is None else self.network.width

    def regions_of(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What is mapped and pooled: regions (I, R, D), and which of them exist (I, R)."""
        if self.network is None:
            return batch.regions, batch.region_mask
        regions = self.network(batch.regions if batch.pixels is None else batch.pixels)
        return regions, torch.ones(regions.shape[:2], dtype=torch.bool, device=regions.device)


def check_regions(name: str, inputs: InputSpec, tunes: bool = False) -> None:
    """Raise ValueError unless the data has the regions that a model reads.

    Args:    name: of the model; tunes: whether it can train an image network.
    """
    if asked := inputs.pixels or inputs.stages:
        if not tunes:
            raise ValueError(f"{name} reads features of a frozen network, and images=... asks for "
                             f"one that is fine-tuned ({asked}); take vsepp or vse_infinity, or "
                             'images="lite0:grid:one" or the like')
    elif not inputs.region_size:
        raise ValueError(f"{name} needs region features; set images=... in the run's config")
