"""What a model is, and what it returns."""

from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import torch
from torch import Tensor, nn

from itr_study.data.batches import Batch

# What an encoder returns: one tensor or a tuple of tensors, first axis = items, so that
# evaluation can cut and join codes without knowing the model.
Code = Tensor | tuple[Tensor, ...]


@dataclass(frozen=True)
class ModelOutput:
    """scores (I, T), higher = more alike; the rest where a model has it."""

    scores: Tensor
    head_scores: Tensor | None = None  # (K, I, T)
    subembeddings: Tensor | None = None  # (I, K, D)
    mask: Tensor | None = None  # (I, K)
    attention: Tensor | None = None  # returned, not stored


class Model(Protocol):
    """An nn.Module with these three; `forward(batch)` composes them into a ModelOutput.

    A registered model is built as MODELS[name](inputs: InputSpec, **arguments).
    """

    def encode_images(self, batch: Batch) -> Code: ...

    def encode_texts(self, batch: Batch) -> Code: ...

    def score(self, images: Code, texts: Code) -> ModelOutput: ...


def device_of(model: nn.Module) -> torch.device:
    """The device of a model's first parameter or buffer; the CPU where it has none."""
    first = next(chain(model.parameters(), model.buffers()), None)
    return torch.device("cpu") if first is None else first.device
