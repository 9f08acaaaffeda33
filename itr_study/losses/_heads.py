"""What losses on outputs share: the fields of a model's output that they need, checked."""

from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import normalize


class Output(Protocol):
    """What a model returns (`models.base.ModelOutput`): its scores (I, T), and by name the tensors
    that a loss asks for, None or absent where a model has none."""

    scores: Tensor


def part(output: Output, name: str, loss: str) -> Tensor:
    """A field of the output, in float32 (float64 stays).

    Raises:  ValueError where the model gives none, naming the models that do.
    """
    found = vars(output).get(name)
    if found is None:
        models = ("'pvse'" if name == "text_residuals" else "'two_branch' or 'pvse'"
                  if name == "text_subembeddings" else "'dvse' or 'pvse'")
        raise ValueError(f"{loss} needs {name} in the output of the model, and this one gives "
                         f"none; take a model that does, such as {models}")
    return found if found.dtype == torch.float64 else found.float()


def head_cosines(vectors: Tensor) -> Tensor:
    """(N, K, K) cosines between the K vectors of each of N items; 0 on the diagonal, and for a
    vector of 0.

    Shape:   (N, K, D).
    """
    unit = normalize(vectors, dim=2)
    cosines = unit @ unit.transpose(1, 2)
    return cosines.masked_fill(torch.eye(vectors.shape[1], dtype=torch.bool,
                                         device=vectors.device), 0.0)
