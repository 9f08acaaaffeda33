"""What a model is, and what it returns."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from itr_study.checks import check_called, check_count, kept_arguments
from itr_study.data.batches import Batch

# What an encoder returns: one tensor or a tuple of tensors, first axis = items, so that
# evaluation can cut and join codes without knowing the model.
Code = Tensor | tuple[Tensor, ...]
METHODS = {"encode_images": ("batch",), "encode_texts": ("batch",), "score": ("images", "texts")}


@dataclass(frozen=True)
class ModelOutput:
    """Scores (I, T), higher = more alike; the rest if a model has it, K = 1 for one vector.

    Attention that depends on the pair is not here: `attend` gives it of pairs that are asked for.
    """

    scores: Tensor
    head_scores: Tensor | None = None  # (K, I, T)
    subembeddings: Tensor | None = None  # (I, K, D), what is compared, of length 1
    residuals: Tensor | None = None  # (I, K, D), what each head adds to the whole
    mask: Tensor | None = None  # (I, K), 1 if a head counts
    attention: Tensor | None = None  # (I, K, R), returned, not stored
    text_subembeddings: Tensor | None = None  # (T, K, D)
    text_residuals: Tensor | None = None  # (T, K, D)
    # in training with a loss that `joins`: of each text, and of all texts of its image, joined
    text_vectors: Tensor | None = None  # (T, D)
    joined_vectors: Tensor | None = None  # (T, D)
    joined_scores: Tensor | None = None  # (I, T)


class RetrievalModel(nn.Module, ABC):
    """Images and texts are encoded each by themselves, then every pair is scored.

    A class of its own gives the two encoders, and `score` if it is not the cosine; a tensor (I, T)
    will do. (`fit` and `evaluate` take any nn.Module with the three methods.) A registered model is
    built as MODELS[name](inputs: InputSpec, **arguments).

    Arguments of several models:
        inputs: sizes of what the data has.
        size: D of the embedding.
        text: the text encoder, "gru" or "bigru", the mean of both directions.
        word_size: of learnt word vectors; given ones keep their own.
        text_size: of the state of the text encoder, mapped linearly to D; None: D, not mapped.
        dropout: on word vectors.
        image_dropout: share of features left out in training, the same of all regions of an image.
        region_dropout, word_dropout: shares of regions and words left out in training.

    Attributes:
        name: in MODELS and configs.
        display_name: in a plot.
        source: paper and section.
        version: part of a run's id, raised whenever its numbers change.
        has_heads: whether it has several vectors of an image, and `score` gives head_scores.
        compares_pairs: whether it compares every pair by itself, which is no product of two
            vectors: minutes for a usual test split, so that a run keeps its scores.

    Raises: ValueError: when built, without the inputs that the model reads in the data (regions,
        tokens or sentence vectors), and for arguments out of range.
    """

    name: str
    display_name: str
    source: str
    version: int
    has_heads = False
    compares_pairs = False

    def extra_repr(self) -> str:
        """Show the arguments."""
        return kept_arguments(self)

    @abstractmethod
    def encode_images(self, batch: Batch) -> Code:
        """Encode the batch's images, (I, D) of length 1 for the cosine."""

    @abstractmethod
    def encode_texts(self, batch: Batch) -> Code:
        """Encode the batch's texts, (T, D) of length 1 for the cosine."""

    def score(self, images: Any, texts: Any) -> ModelOutput:
        """Score every image (I, D) with every text (T, D), both of length 1, by the cosine."""
        return ModelOutput(images @ texts.T, subembeddings=images.unsqueeze(1),
                           text_subembeddings=texts.unsqueeze(1))

    def forward(self, batch: Batch) -> ModelOutput:
        """Score the batch's images with its texts."""
        return scored(self, self.encode_images(batch), self.encode_texts(batch))


def scored(model: nn.Module, images: Code, texts: Code) -> ModelOutput:
    """Score codes of I images and T texts by `model.score`; ValueError unless it gives (I, T)."""
    score: Any = model.score
    output, name = score(images, texts), type(model).__name__
    if isinstance(output, Tensor):
        output = ModelOutput(output)
    if not isinstance(output, ModelOutput):
        raise ValueError(f"score of {name} must return a tensor (images, texts) or a ModelOutput, "
                         f"got a {type(output).__name__}")
    shape = tuple(len(code if isinstance(code, Tensor) else code[0]) for code in (images, texts))
    scores = output.scores
    if not isinstance(scores, Tensor) or scores.shape != shape or not scores.is_floating_point():
        raise ValueError(f"score of {name} must give (images, texts) = {shape}, got "
                         f"{described(scores)}; in floating point")
    return output


def described(found: object) -> str:
    """Say what an object of a user's gave, for an error: shape and type of a tensor."""
    return (f"{tuple(found.shape)} of {found.dtype}" if isinstance(found, Tensor) else
            f"a {type(found).__name__}")


def encoded(model: nn.Module, encode: Callable[[Batch], Code], batch: Batch, rows: int) -> Code:
    """Return the code that a method of the model gives; ValueError unless it has so many rows."""
    name = type(model).__name__
    try:
        code = encode(batch)
    except RuntimeError as error:
        other = next((weight.dtype for weight in model.parameters() if weight.is_floating_point()
                      and weight.dtype != torch.float32), None)
        if other is None or "type" not in str(error):
            raise
        raise ValueError(f"{name} has weights of {other}, and batches are float32: call "
                         'model.float(), and for half precision in training take '
                         'Settings(precision="bfloat16")') from error
    if isinstance(code, Tensor) and code.shape[:1] == (rows,) and code.is_floating_point():
        return code
    parts = list(tensors_of(code))
    if all(isinstance(part, Tensor) and part.shape[:1] == (rows,) and not part.is_complex()
           for part in parts) and any(map(torch.is_floating_point, parts)):
        return code
    method = getattr(encode, "__name__", "an encoder")
    raise ValueError(f"{method} of {name} must return a floating-point tensor of {rows} "
                     "rows, one for each item, or a tuple with such tensors; got "
                     f"{', '.join(map(described, parts))}")


def tensors_of(code: object) -> Iterator[Any]:
    """Yield what a tuple holds, and what is no tuple itself."""
    if isinstance(code, tuple) and code:
        for part in code:
            yield from tensors_of(part)
    else:
        yield code


def has_heads(model: nn.Module) -> bool:
    """Whether a model declares several vectors of an image."""
    return isinstance(model, RetrievalModel) and model.has_heads


def compares_pairs(model: nn.Module) -> bool:
    """Whether a model declares that it compares every pair by itself."""
    return isinstance(model, RetrievalModel) and model.compares_pairs


def check_model(model: nn.Module) -> None:
    """Raise ValueError unless it is a module with the methods that `fit` and `evaluate` call."""
    name = type(model).__name__
    missing = [method for method in METHODS if not hasattr(model, method)]
    if missing:
        raise ValueError(f"{name} has no {', '.join(missing)}; a model has encode_images(batch) "
                         "and encode_texts(batch), which give a row for each item, and score("
                         "images, texts), which gives (images, texts)")
    if not isinstance(model, nn.Module):
        raise ValueError(f"model must be a torch.nn.Module, built: model = MyModel(...); got "
                         f"{model!r}")
    own: Any = model
    for method, arguments in zip((own.encode_images, own.encode_texts, own.score),
                                 METHODS.items(), strict=True):
        check_called(f"{arguments[0]} of {name}", method, *arguments[1])


def check_counts(**counts: int | None) -> None:
    """Raise ValueError unless all are whole numbers of at least 1; None is left out."""
    for name, count in counts.items():
        if count is not None:
            check_count(name, count)


def fields(batch: Batch, *names: str) -> list[Tensor]:
    """Return fields of a batch; ValueError if it lacks one."""
    found = [vars(batch)[name] for name in names]
    if any(field is None for field in found):
        raise ValueError(f"this model reads {' and '.join(names)}, which the batch lacks; encode "
                         "the data as in the run's config")
    return found


def device_of(model: nn.Module) -> torch.device:
    """Return the device of a model's first parameter or buffer; the CPU if it has none."""
    first = next(chain(model.parameters(), model.buffers()), None)
    return torch.device("cpu") if first is None else first.device
