"""Reading padded sequences both ways, each to its own end: padding never changes a state."""

import torch
from torch import Tensor, nn


def both_ways(gru: nn.GRU, steps: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """States (N, P, D) of both directions of a GRU over (N, P, ·): place p of the second is the
    state after the p + 1 last steps of a sequence."""
    onward, back = gru.all_weights
    turned = at(from_the_end(lengths, steps.shape[1]), steps)
    return run_gru(steps, onward, gru.hidden_size), run_gru(turned, back, gru.hidden_size)


def run_gru(steps: Tensor, weights: list[Tensor], size: int) -> Tensor:
    """(N, P, size) states of one direction from left to right, from a first state of 0."""
    first = steps.new_zeros(1, len(steps), size)
    return torch.gru(steps, first, weights, has_biases=True, num_layers=1, dropout=0.0,
                     train=False, bidirectional=False, batch_first=True)[0]


def from_the_end(lengths: Tensor, width: int) -> Tensor:
    """(N, P) places that read each sequence from its last step to its first; 0 beyond."""
    return (lengths[:, None] - 1 - torch.arange(width, device=lengths.device)).clamp(min=0)


def at(places: Tensor, states: Tensor) -> Tensor:
    """States (N, P, D) at places (N,) or (N, Q) of each sequence: (N, D) or (N, Q, D)."""
    rows = torch.arange(len(states), device=states.device)
    return states[rows.view(-1, *[1] * (places.ndim - 1)), places]
