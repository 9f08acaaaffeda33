"""Reading padded sequences both ways, each to its own end: padding never changes a state."""

from contextlib import nullcontext

import torch
from torch import Tensor, nn


class GRU(nn.GRU):
    """torch's GRU of one layer over (N, P, width), read one direction at a time.

    One call for both would begin the second at the padding, and packed sequences, which would not,
    stop a card to tell the host their lengths.

    Args:    width: of the steps; size: D of a state; bidirectional: whether there is a second one.
    """

    def __init__(self, width: int, size: int, bidirectional: bool = False):
        super().__init__(width, size, batch_first=True, bidirectional=bidirectional)

    def flatten_parameters(self) -> None:
        """Lay the weights of each direction into one piece of memory: cuDNN would copy them there
        at every call. torch calls this when the net is made or moved."""
        all_of_them = self._flat_weights, self._flat_weights_names, self.bidirectional
        weights, names, both = all_of_them
        for start in range(0, len(weights), len(weights) // (1 + both)):
            part = slice(start, start + len(weights) // (1 + both))
            self._flat_weights, self._flat_weights_names = weights[part], names[part]
            self.bidirectional = False
            super().flatten_parameters()
        self._flat_weights, self._flat_weights_names, self.bidirectional = all_of_them

    def onward(self, steps: Tensor) -> Tensor:
        """(N, P, D) states from left to right, from a first state of 0."""
        return self._states(steps, self.all_weights[0])

    def back(self, steps: Tensor, lengths: Tensor) -> Tensor:
        """(N, P, D) states from the end of each sequence: that of place p is the state after its
        p + 1 last steps."""
        turned = at(from_the_end(lengths, steps.shape[1]), steps)
        return self._states(turned, self.all_weights[1])

    def _states(self, steps: Tensor, weights: list[Tensor]) -> Tensor:
        """States of one direction, in float32 where bfloat16 is asked for on a card: cuDNN's
        autocast knows float16 alone, where small gradients are 0.

        Not `self.training`: cuDNN keeps what a gradient needs only of a call that trains, and in
        evaluation, too, somebody may ask for one.
        """
        kind = steps.device.type
        in_full = nullcontext() if kind == "cpu" else torch.autocast(kind, enabled=False)
        with in_full:
            steps = steps if kind == "cpu" else steps.to(weights[0].dtype)
            first = steps.new_zeros(1, len(steps), self.hidden_size)
            return torch.gru(steps, first, weights, has_biases=True, num_layers=1, dropout=0.0,
                             train=torch.is_grad_enabled(), bidirectional=False,
                             batch_first=True)[0]


def from_the_end(lengths: Tensor, width: int) -> Tensor:
    """(N, P) places that read each sequence from its last step to its first; 0 beyond."""
    return (lengths[:, None] - 1 - torch.arange(width, device=lengths.device)).clamp(min=0)


def at(places: Tensor, states: Tensor) -> Tensor:
    """States (N, P, D) at places (N,) or (N, Q) of each sequence: (N, D) or (N, Q, D)."""
    rows = torch.arange(len(states), device=states.device)
    return states[rows.view(-1, *[1] * (places.ndim - 1)), places]
