"""Region features of several encoders as one array, joined along D."""

from collections.abc import Sequence

import numpy as np

IN_MEMORY = 1 << 30  # bytes: what is smaller is held in RAM, what is larger stays on the disk


class JoinedRegions:
    """Arrays (I, V, R, D1), (I, V, R, D2), ... read as one (I, V, R, D1 + D2 + ...).

    Joins on access, so that memory maps larger than the RAM stay on the disk. Takes any index
    that leaves the last axis alone.
    """

    def __init__(self, parts: Sequence[np.ndarray]) -> None:
        self.parts = tuple(parts)
        self.shape = (*self.parts[0].shape[:-1], sum(part.shape[-1] for part in self.parts))
        self.ndim = len(self.shape)
        self.dtype = np.result_type(*self.parts)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: object) -> np.ndarray:
        if isinstance(index, tuple) and len(index) >= self.ndim:
            raise IndexError("the last axis of joined features cannot be indexed; index what "
                             "comes back instead")
        return np.concatenate([part[index] for part in self.parts], axis=-1)


def join_regions(parts: Sequence[np.ndarray]) -> np.ndarray | JoinedRegions:
    """One array (I, V, R, D) of all parts; in RAM below 1 GiB, else left on the disk.

    Raises:  ValueError where the parts differ in I, V or R.
    """
    shapes = {part.shape[:-1] for part in parts}
    if len(shapes) > 1:
        listed = ", ".join(str(part.shape) for part in parts)
        raise ValueError("parts of images must have the same views and regions to be joined along "
                         f"D; got (I, V, R, D) = {listed}; give them the same kind and views")
    if sum(part.size * part.dtype.itemsize for part in parts) < IN_MEMORY:
        return np.concatenate([np.asarray(part) for part in parts], axis=-1)
    return parts[0] if len(parts) == 1 else JoinedRegions(parts)
