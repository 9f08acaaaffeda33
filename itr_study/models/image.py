"""Trainable image encoders that models share: region features to one vector per image."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from itr_study.checks import check_choice
from itr_study.data.batches import Batch, InputSpec
from itr_study.encoders import trainable_image_encoder, trainable_stages
from itr_study.models.base import RetrievalModel, fields
from itr_study.models.drop import drop_regions
from itr_study.models.text import GRU, at, from_the_end


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


# The generalised pooling operator: how much the largest, the second largest, … value counts.
# Source: VSE∞ (Chen et al., CVPR 2021), §3.2 and §3.3.

# Bytes of a value: the integer of as many bits, one with room for a place beside it, and the bits.
KEYS = {2: (torch.int16, torch.int32, 16), 4: (torch.int32, torch.int64, 32)}


def falling_order(values: Tensor) -> Tensor:
    """Return places (N, P, D) int64 of values, the largest of each item and feature first.

    On a CPU by a merge exchange network (Batcher, AFIPS 1968; Knuth, TAOCP vol. 3, Algorithm
    5.2.2M) of minima and maxima over whole (N, D) slices: of 49 places in a fifth of the time of a
    sort in bfloat16, in half of it in float32. Of equal values the later place comes first. NaN
    comes first or last, by its sign.
    """
    if values.device.type != "cpu" or values.element_size() not in KEYS or values.shape[1] > 32_767:
        return values.argsort(dim=1, descending=True)
    bits, wide, shift = KEYS[values.element_size()]
    whole = values.detach().transpose(0, 1).contiguous().view(bits)  # (P, N, D)
    # as integers floats are in order, but those below 0 turned around
    whole = whole ^ ((whole >> (shift - 1)) & torch.iinfo(bits).max)
    places = torch.arange(len(whole)).view(-1, 1, 1)
    keys = whole.to(wide).bitwise_left_shift_(shift).bitwise_or_(places)  # by value, then by place
    rows = list(keys.unbind(0))
    spare = torch.empty_like(rows[0])
    for upper, lower in comparators(len(rows)):
        torch.maximum(rows[upper], rows[lower], out=spare)
        torch.minimum(rows[upper], rows[lower], out=rows[lower])
        rows[upper], spare = spare, rows[upper]
    return torch.stack(rows, dim=1).bitwise_and_((1 << shift) - 1).long()


@cache
def comparators(places: int) -> list[tuple[int, int]]:
    """Return pairs of places to compare, in turn, so that any values are in order afterwards."""
    pairs: list[tuple[int, int]] = []
    top = 1 << max(places - 1, 0).bit_length() >> 1
    step = top
    while step:
        reach, odd, apart = top, 0, step
        while True:
            pairs += [(i, i + apart) for i in range(places - apart) if i & step == odd]
            if reach == step:
                break
            apart, reach, odd = reach - step, reach // 2, step
        step //= 2
    return pairs


SIZE = 32  # of positional encodings and of states
TEMPERATURE = 0.1  # of the softmax over places


def sorted_pool(regions: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
    """Return each feature's values by size, weighted by their place.

    1, 0, 0, … gives the maximum, equal weights give the mean. Shape: (I, R, D), mask (I, R),
    weights (I, R), 0 beyond the last place that exists -> (I, D).
    """
    # what does not exist is last, and has no weight: only the order, without gradient, needs a mask
    order = falling_order(regions.detach().masked_fill(~mask.unsqueeze(-1), -torch.inf))
    ordered = regions.gather(1, order).to(weights.dtype)
    with torch.autocast(regions.device.type, enabled=False):  # weights are exact
        pooled = (weights.unsqueeze(1) @ ordered).squeeze(1)
    return pooled.masked_fill(~mask.any(dim=1, keepdim=True), 0)


def positions(places: int, device: torch.device) -> Tensor:
    """Return (places, SIZE) sine and cosine in turn, of places from 0; as in the transformer."""
    rates = 10_000 ** (-torch.arange(0, SIZE, 2, device=device) / SIZE)
    angles = torch.arange(places, device=device)[:, None] * rates  # (P, SIZE / 2)
    return torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1)


class GPO(nn.Module):
    """Pool regions by learnt weights of the largest, second largest, … value: a BiGRU of places.

    The weights of an image depend on nothing but its number of regions.

    Shape: regions (I, R, D), mask (I, R) -> (I, D), whatever the padding and the order of regions.
    Source: VSE∞ §3.2, §3.3; sizes and the temperature, which the paper does not give, from its
        code.
    """

    def __init__(self) -> None:
        super().__init__()
        self.gru = GRU(SIZE, SIZE, bidirectional=True)
        self.linear = nn.Linear(SIZE, 1, bias=False)

    def weights(self, most: int) -> Tensor:
        """Return (most, most): row n - 1 holds weights of n places, which sum to 1; 0 beyond."""
        like = self.linear.weight
        counts = torch.arange(1, most + 1, device=like.device)
        steps = positions(most, like.device).to(like.dtype)
        with torch.autocast(like.device.type, enabled=False):  # rounding would count tenfold
            before = self.gru.onward(steps[None])  # read onward, all numbers begin alike
            after = self.gru.back(steps.expand(most, -1, -1), counts)
            after = at(from_the_end(counts, most), after)
            states = (before + after) / 2  # (n, P, SIZE)
            scores = self.linear(states).squeeze(-1) / TEMPERATURE
        return scores.masked_fill(counts > counts[:, None], -torch.inf).softmax(dim=1)

    def of_images(self, mask: Tensor) -> Tensor:
        """Return weights (I, R) of the places of each image with the regions (I, R) that exist."""
        return self.weights(mask.shape[1])[(mask.sum(dim=1) - 1).clamp(min=0)]

    def forward(self, regions: Tensor, mask: Tensor) -> Tensor:
        """Pool the regions."""
        return sorted_pool(regions, mask, self.of_images(mask))

    def shares(self, regions: Tensor, mask: Tensor) -> Tensor:
        """Return how much each region counts: the weight of its place, in the mean over features.

        Shape: (I, R, D), mask (I, R) -> (I, R), sums to 1 over the regions that exist, 0 at the
            others; of equal values one comes first.
        """
        order = regions.masked_fill(~mask.unsqueeze(-1), -torch.inf).argsort(dim=1, descending=True)
        weights = self.of_images(mask).to(regions.dtype).unsqueeze(-1).expand(regions.shape)
        shares = torch.zeros_like(regions).scatter(1, order, weights).mean(dim=2)
        return shares.masked_fill(~mask, 0)


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
    if not isinstance(inputs, InputSpec):
        raise ValueError(f'itr.MODELS["{name}"] takes data.inputs, of data = itr.encode_dataset'
                         f"(dataset); got {type(inputs).__name__}")
    if asked := inputs.pixels or inputs.stages:
        if not tunes:
            raise ValueError(f"{name} reads features of a frozen network, and images=... asks for "
                             f"one that is fine-tuned ({asked}); take vsepp or vse_infinity, or "
                             'images="lite0:grid:one" or the like')
    elif not inputs.region_size:
        raise ValueError(f"{name} needs region features; set images=... in the run's config")
