"""Models that may train an image network, or its last stages, beside their own weights."""

import torch
from torch import Tensor, nn

from itr_study.data.batches import Batch, InputSpec
from itr_study.encoders.trainable import trainable_image_encoder, trainable_stages
from itr_study.models.base import RetrievalModel


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
