"""The generalised pooling operator: how much the largest, the second largest, … value counts.

Source: VSE∞ (Chen et al., CVPR 2021), §3.2 and §3.3.
"""

import torch
from torch import Tensor, nn

from itr_study.models.recurrent import GRU, at, from_the_end
from itr_study.models.sorting import falling_order

SIZE = 32  # of positional encodings and of states
TEMPERATURE = 0.1  # of the softmax over places


def sorted_pool(regions: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
    """Each feature's values by size, weighted by their place: 1, 0, 0, … gives the maximum, equal
    weights give the mean. Shape: (I, R, D), mask (I, R), weights (I, R), 0 beyond the last place
    that exists -> (I, D)."""
    # what does not exist is last, and has no weight: only the order, without gradient, needs a mask
    order = falling_order(regions.detach().masked_fill(~mask.unsqueeze(-1), -torch.inf))
    ordered = regions.gather(1, order).to(weights.dtype)
    with torch.autocast(regions.device.type, enabled=False):  # weights are exact
        pooled = (weights.unsqueeze(1) @ ordered).squeeze(1)
    return pooled.masked_fill(~mask.any(dim=1, keepdim=True), 0)


def positions(places: int, device: torch.device) -> Tensor:
    """(places, SIZE) sine and cosine in turn, of places from 0; as in the transformer."""
    rates = 10_000 ** (-torch.arange(0, SIZE, 2, device=device) / SIZE)
    angles = torch.arange(places, device=device)[:, None] * rates  # (P, SIZE / 2)
    return torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1)


class GPO(nn.Module):
    """Pool regions by weights of places that are learnt: a small BiGRU reads the places.

    The weights of an image depend on nothing but its number of regions.

    Shape:   regions (I, R, D), mask (I, R) -> (I, D); padding and the order of regions do not
             count.
    Source:  VSE∞ §3.3; sizes and the temperature, which the paper does not give, from its code.
    """

    def __init__(self) -> None:
        super().__init__()
        self.gru = GRU(SIZE, SIZE, bidirectional=True)
        self.linear = nn.Linear(SIZE, 1, bias=False)

    def weights(self, most: int) -> Tensor:
        """(most, most): row n - 1 holds the weights of n places, which sum to 1; 0 beyond."""
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
        """(I, R) weights of the places of each image with the regions (I, R) that exist."""
        return self.weights(mask.shape[1])[(mask.sum(dim=1) - 1).clamp(min=0)]

    def forward(self, regions: Tensor, mask: Tensor) -> Tensor:
        return sorted_pool(regions, mask, self.of_images(mask))

    def shares(self, regions: Tensor, mask: Tensor) -> Tensor:
        """How much each region counts in what is pooled: the weight of its place, which each
        feature orders anew, in the mean over features.

        Shape:   (I, R, D), mask (I, R) -> (I, R), sums to 1 over the regions that exist, 0 at the
                 others; of equal values one comes first.
        """
        order = regions.masked_fill(~mask.unsqueeze(-1), -torch.inf).argsort(dim=1, descending=True)
        weights = self.of_images(mask).to(regions.dtype).unsqueeze(-1).expand(regions.shape)
        shares = torch.zeros_like(regions).scatter(1, order, weights).mean(dim=2)
        return shares.masked_fill(~mask, 0)
