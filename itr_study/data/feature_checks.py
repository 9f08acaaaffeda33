"""Checks of a file of precomputed features: format, shape, finite values, repeated rows."""

import hashlib
from pathlib import Path

import numpy as np

from itr_study.data.base import DataError, Problem
from itr_study.data.check_cache import CheckCache
from itr_study.progress import progress

BLOCK = 256  # images read at a time


def open_features(path: Path) -> np.ndarray:
    """Memory map (rows, D) or (rows, R, D) of a .npy file of floats; pickles are never read.

    Raises:  DataError: another format, a pickle, a truncated file, another shape or type.
    """
    try:
        features = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise DataError(f"{path.name} cannot be read as an .npy file of numbers ({error}); pickled "
                        "objects are never read: save it again with numpy.save") from error
    if not isinstance(features, np.ndarray):
        raise DataError(f"{path.name} is an archive of arrays, expected one array of numpy.save")
    if features.ndim not in (2, 3) or 0 in features.shape:
        raise DataError(f"{path.name}: wrong feature shape {features.shape}, expected (images, D) "
                        "or (images, regions, D), nothing empty")
    if features.dtype.kind != "f":
        raise DataError(f"{path.name}: features must be floating point, got {features.dtype}")
    return features


def feature_problem(path: Path, features: np.ndarray, step: int, cache: Path | None
                    ) -> Problem | None:
    """NaN, infinite values, or rows that should repeat the one before and do not.

    Args:    step: how many rows each image has (1, or as many as captions), all equal.
    """
    memory = CheckCache(cache, f"features{step}", path.parent)
    stat = path.stat()
    if memory.knows(path.name, stat):
        return None
    starts = range(0, len(features), BLOCK * step)
    for start in progress(starts, f"check {path.name}"):
        block = np.asarray(features[start:start + BLOCK * step])
        bad = np.flatnonzero(~np.isfinite(block).all(axis=tuple(range(1, block.ndim))))
        if len(bad):
            return Problem("NaN or infinite features", path.name,
                           f"first in row {start + bad[0]}")
        groups = block.reshape(-1, step, *block.shape[1:])
        differ = np.flatnonzero((groups != groups[:, :1]).reshape(len(groups), -1).any(axis=1))
        if step > 1 and len(differ):
            return Problem("rows are not repeated", path.name,
                           f"rows {start + differ[0] * step} to "
                           f"{start + differ[0] * step + step - 1} should be equal")
    memory.remember(path.name, stat)
    memory.save()
    return None


def sample_digest(features: np.ndarray, rows: int = 64) -> str:
    """16 hex digits over shape, type and some rows: tells apart features of the same size."""
    index = np.unique(np.linspace(0, len(features) - 1, rows).astype(np.int64))
    digest = hashlib.sha256(f"{features.shape}{features.dtype}".encode())
    digest.update(np.ascontiguousarray(features[index]).tobytes())
    return digest.hexdigest()[:16]
