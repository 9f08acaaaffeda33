"""Cosines of given vectors, and the checks that such vectors need."""

import warnings

import numpy as np
import torch
from torch import Tensor

SCALES = ("unit", "cosine")
BLOCK = 4096  # rows checked at a time: vectors may be a memory map larger than the RAM


def check_vectors(what: str, vectors: object, rows: int, width: int | None = None) -> None:
    """Raise ValueError unless vectors are (rows, width), floating point and finite.

    Args:    what: their name in the message; width: None where any will do.
    """
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or vectors.dtype.kind != "f":
        got = (f"{vectors.dtype} {vectors.shape}" if isinstance(vectors, np.ndarray)
               else type(vectors).__name__)
        raise ValueError(f"{what} must be floating point vectors (rows, D), got {got}")
    if len(vectors) != rows:
        raise ValueError(f"{what} must have {rows} rows, got {len(vectors)}: they are of other "
                         "data, encode them again")
    if vectors.shape[1] != (width or vectors.shape[1]) or not vectors.shape[1]:
        raise ValueError(f"{what} must be {width or 'at least 1'} wide, got {vectors.shape[1]}: "
                         "they are of another encoder, encode them again")
    for start in range(0, rows, BLOCK):
        part = vectors[start:start + BLOCK]
        bad = np.flatnonzero(~np.isfinite(part).all(axis=1))
        if len(bad):
            raise ValueError(f"{what} must be finite, found nan or inf first in row "
                             f"{start + bad[0]}")


def inverse_lengths(vectors: np.ndarray) -> np.ndarray:
    """(N,) 1 / length; 0 for a vector of zeros, whose cosine with anything is taken as 0."""
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    return np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(A, B) float32 cosines of all pairs of rows."""
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    values = a @ b.T
    values *= inverse_lengths(a)[:, None]
    values *= inverse_lengths(b)
    return np.clip(values, -1, 1, out=values)


def row_cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(N,) float32 cosines of row n with row n."""
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    values = np.einsum("nd,nd->n", a, b) * inverse_lengths(a) * inverse_lengths(b)
    return np.clip(values, -1, 1)


def tensor_cosines(a: Tensor, b: Tensor) -> Tensor:
    """`cosines` of tensors, on their device."""
    a, b = a.float(), b.float()
    values = a @ b.T
    for side, lengths in ((a, (-1, 1)), (b, (1, -1))):
        inverse = torch.linalg.vector_norm(side, dim=1).reciprocal_().nan_to_num_(posinf=0)
        values *= inverse.view(lengths)
    return values.clamp_(-1, 1)


def readable(array: np.ndarray) -> bool:
    """Whether torch can share an array's memory: of its types, in this machine's byte order."""
    return (array.dtype.isnative and array.dtype.itemsize <= 8
            and all(stride >= 0 for stride in array.strides))


class Arrays:
    """Arrays of a split that live on the devices of its batches: moved there once."""

    def __init__(self, *arrays: np.ndarray) -> None:
        self._arrays = [array if readable(array) else np.ascontiguousarray(array, np.float32)
                        for array in arrays]
        self._on_device: dict[torch.device, list[Tensor]] = {}

    def on(self, device: torch.device) -> list[Tensor]:
        """The arrays on a device; on a CPU they share their memory, perhaps a map of a file."""
        if device not in self._on_device:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "The given NumPy array is not writable")
                tensors = [torch.from_numpy(array) for array in self._arrays]
            self._on_device[device] = [tensor.to(device) for tensor in tensors]
        return self._on_device[device]


def rescale(cosine: np.ndarray | Tensor, scale: str) -> np.ndarray | Tensor:
    """The cosine itself, or (1 + cosine) / 2 on [0, 1] (listwise Eq. 8)."""
    return cosine if scale == "cosine" else (1 + cosine) / 2
