"""The generalised pooling operator: how much the largest, the second largest, … value counts.

Source: VSE∞ (Chen et al., CVPR 2021), §3.2 and §3.3.
"""

from functools import cache

import torch
from torch import Tensor, nn

from itr_study.models.text import GRU, at, from_the_end

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
