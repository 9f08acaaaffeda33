"""Where a head looks: maps over regions, and what of them falls on which object.

A map gives every region of an image a weight; the weights of a head add up to 1. Two maps bear the
name of attention: the softmax with which a head pools the regions, and the paper's rank map, which
asks to which regions its sub-embedding is most alike.
"""

import numpy as np
import torch
from torch import Tensor

from itr_study.metrics.ranks import wide

RASTER = 224  # pixels a side of a map that is drawn over a picture
NEAR = 1e-3  # by how much the weights of a map may miss 1: a softmax in bfloat16 does by less


def region_cosines(vectors: np.ndarray | Tensor, regions: np.ndarray | Tensor) -> np.ndarray:
    """Cosine of every sub-embedding with every region of its image: (I, K, R) float64.

    Args:    vectors: (I, K, D); regions: (I, R, D), projected into the same space. A zero vector,
             such as a padded region, has cosine 0 with all.
    Raises:  ValueError for NaN and infinite numbers, shapes that differ.
    """
    vectors, regions = (wide(torch.as_tensor(x).detach()).cpu().double().numpy()
                        for x in (vectors, regions))
    if vectors.ndim != 3 or regions.ndim != 3 or 0 in vectors.shape + regions.shape \
            or vectors.shape[::2] != regions.shape[::2]:
        raise ValueError("vectors must be (n_images, K, D) and regions (n_images, R, D); got "
                         f"{vectors.shape} and {regions.shape}")
    for what, values in (("vectors", vectors), ("regions", regions)):
        if not np.isfinite(values).all():
            image = np.argwhere(~np.isfinite(values))[0, 0]
            raise ValueError(f"{what} must be finite numbers; found another in image {image}")
    lengths = [np.linalg.norm(x, axis=-1, keepdims=True) for x in (vectors, regions)]
    heads, places = (x / np.where(length > 0, length, 1)
                     for x, length in zip((vectors, regions), lengths, strict=True))
    return heads @ places.swapaxes(1, 2)


def rank_map(cosines: np.ndarray | Tensor, mask: np.ndarray | Tensor | None = None) -> np.ndarray:
    """Weight of every region by its place when regions are sorted by cosine: (..., R) float64.

    a_i = rho (R - r_i)^2: r_i is 0 for the most alike, so that the least alike keeps rho and not
    nothing; rho = 6 / (R (R + 1) (2 R + 1)), so that the weights add up to 1; R counts the regions
    that exist. The map is equally peaked for every head, whatever the cosines are: the first of 49
    regions has 6 %, a softmax may give it all.

    Args:
        cosines: (..., R); read only where the mask is true. Equal ones share their places.
        mask: (..., R) bool, or what broadcasts to it, false at padded regions, which get 0; None =
            all exist.
    Raises: ValueError for NaN, a mask that leaves no region.
    Source: dvse, Sec. IV-E-1, with what a pixel gets: the sum over the regions that cover it.
    Differs: the paper states neither rho nor whether ranks begin at 0 or 1; of ties it says
        nothing.
    Example: squares of 3, 2 and 1, over their sum 14; then two that tie share 9 + 4
        >>> rank_map(np.array([0.1, 0.9, 0.5])) * 14
        array([1., 9., 4.])
        >>> rank_map(np.array([0.9, 0.9, 0.5, 7.0]), np.array([True, True, True, False])) * 14
        array([6.5, 6.5, 1. , 0. ])
    """
    values = np.asarray(wide(torch.as_tensor(cosines).detach()).cpu().double())
    if values.ndim == 0 or 0 in values.shape:
        raise ValueError(f"cosines must be (..., R), at least one; got {values.shape}")
    exists = as_mask(mask, values.shape)
    if np.isnan(values[exists]).any():
        raise ValueError("cosines must not be NaN; found one at "
                         f"{tuple(np.argwhere(np.isnan(values) & exists)[0].tolist())}")
    values = np.where(exists, values, -np.inf)  # below every region that exists
    above = (values[..., None, :] > values[..., None]).sum(axis=-1)  # r_i, of the first of a tie
    tied = ((values[..., None, :] == values[..., None]) & exists[..., None, :]).sum(axis=-1)
    count = exists.sum(axis=-1, keepdims=True)
    places = squares(count - above) - squares(count - above - tied)
    return np.where(exists, places / (np.maximum(tied, 1) * squares(count)), 0.0)


def squares(n: np.ndarray) -> np.ndarray:
    """1^2 + 2^2 + ... + n^2."""
    return n * (n + 1) * (2 * n + 1) // 6


def uniform_map(mask: np.ndarray | Tensor) -> np.ndarray:
    """The same weight for every region (I, R) that exists, as a map of one head: (I, 1, R)."""
    exists = as_mask(mask, tuple(mask.shape))
    return (exists / exists.sum(axis=-1, keepdims=True))[:, None, :]


def shuffled_map(maps: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The weights (I, K, R) of each head dealt anew to the regions (I, R) that exist, for every
    head by itself: as peaked as before, with no eye for what the regions show."""
    exists = np.broadcast_to(as_mask(mask, (len(maps), maps.shape[-1]))[:, None], maps.shape)
    # both orders have the regions that exist first, so the weights of these are dealt among them
    before = np.argsort(~exists, axis=-1, kind="stable")
    after = np.argsort(np.where(exists, rng.random(maps.shape), np.inf), axis=-1, kind="stable")
    dealt = np.zeros(maps.shape)
    np.put_along_axis(dealt, after, np.take_along_axis(maps, before, -1), -1)
    return dealt


def focus(maps: np.ndarray | Tensor, shown: np.ndarray) -> np.ndarray:
    """Share of a map that falls on one object, on that which gets most; mean over heads: (I,).

    1: every head looks at one object and nowhere else. It says nothing of which.

    Args:
        maps: (I, K, R) weights of each head, at least 0, that add up to 1 over the regions.
        shown: (I, R, O) how much of each region lies on each object, in [0, 1], 0 for objects that
            an image does not have. Where boxes overlap a region may lie on several.
    Raises: ValueError for shapes that differ, NaN, weights that are no map, values out of range, an
        image none of whose regions shows an object.
    Example: of the first head 0.7 falls on object 0, in two regions; of the second 0.6 on object 1
        >>> maps = np.array([[[0.5, 0.2, 0.3], [0.1, 0.3, 0.6]]])
        >>> shown = np.array([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
        >>> focus(maps, shown).round(4), coverage(maps, shown)
        (array([0.65]), array([1.]))
    """
    return object_mass(maps, shown).max(axis=-1).mean(axis=-1)


def coverage(maps: np.ndarray | Tensor, shown: np.ndarray) -> np.ndarray:
    """How many different objects the heads of an image look at, of as many as K heads could: (I,).

    A head looks at the object that gets most of its map (of equal ones the first), however little
    that is; at none where all of it falls beside the objects. The number of different ones is
    divided by min(K, objects that a region of the image shows). In [0, 1]; 1 for one head that
    looks at any. Collapsed heads have 1 / min(K, objects).

    Args, Raises, Example: as `focus`.
    """
    mass = object_mass(maps, shown)
    heads, objects = mass.shape[1:]
    looked = (mass.argmax(axis=-1)[..., None] == np.arange(objects)) & (mass > 0)
    visible = (np.asarray(shown) > 0).any(axis=1).sum(axis=-1)
    return looked.any(axis=1).sum(axis=-1) / np.minimum(heads, visible)


def pixel_map(weights: np.ndarray, boxes: np.ndarray, size: int = RASTER) -> np.ndarray:
    """Sum of the weights (R,) of the regions that cover each pixel, (size, size): of those whose
    box (R, 4) holds its centre. Regions that lie nowhere (NaN) cover none.

    Example: the left half has 0.7, and the whole picture 0.3 more
        >>> pixel_map(np.array([0.7, 0.3]), np.array([[0, 0, 0.5, 1], [0, 0, 1, 1]]), 2).tolist()
        [[1.0, 0.3], [1.0, 0.3]]
    """
    centre = (np.arange(size) + 0.5) / size
    left, top, right, bottom = np.asarray(boxes, dtype=float).T[..., None]
    across = (centre >= left) & (centre < right)  # (R, size); false beside NaN
    down = (centre >= top) & (centre < bottom)
    return (np.asarray(weights, dtype=float)[:, None] * down).T @ across.astype(float)


def object_mass(maps: np.ndarray | Tensor, shown: np.ndarray) -> np.ndarray:
    """(I, K, O) how much of each head's map falls on each object; Args, Raises: as `focus`."""
    maps = np.asarray(wide(torch.as_tensor(maps).detach()).cpu().double())
    shown = np.asarray(shown, dtype=float)
    if maps.ndim != 3 or shown.ndim != 3 or 0 in maps.shape + shown.shape \
            or maps.shape[::2] != shown.shape[:2]:
        raise ValueError("maps must be (n_images, K, R) and shown (n_images, R, objects); got "
                         f"{maps.shape} and {shown.shape}")
    if not ((shown >= 0) & (shown <= 1)).all():
        raise ValueError("shown must lie in [0, 1]: how much of a region lies on an object")
    wrong = ~((np.abs(maps.sum(axis=-1) - 1) <= NEAR) & (maps >= 0).all(axis=-1))
    if wrong.any():
        image, head = np.argwhere(wrong)[0]
        raise ValueError("the weights of a map must be at least 0 and add up to 1, NaN is an "
                         f"error; those of image {image}, head {head} give "
                         f"{maps[image, head].sum():.4g} (smallest {maps[image, head].min():.4g})")
    blind = ~(shown > 0).any(axis=(1, 2))
    if blind.any():
        raise ValueError(f"no region of image {np.argmax(blind)} shows an object, and of "
                         f"{blind.sum()} in all; leave them out")
    return maps @ shown


def as_mask(mask: np.ndarray | Tensor | None, shape: tuple[int, ...]) -> np.ndarray:
    """Which regions exist, bool of this shape; all of them without a mask.

    Raises: ValueError for another shape, for other values than true and false, and where an image
        has no region.
    """
    if mask is None:
        return np.ones(shape, bool)
    values = np.asarray(torch.as_tensor(mask).detach().cpu())
    if values.dtype != bool:
        raise ValueError(f"mask must be bool, true where a region exists; got {values.dtype}")
    try:
        exists = np.broadcast_to(values, shape)
    except ValueError as error:
        raise ValueError(f"mask must be {shape}, or broadcast to it; got {values.shape}") from error
    if not exists.any(axis=-1).all():
        place = np.argwhere(~exists.any(axis=-1))[:1].ravel().tolist()
        raise ValueError(f"the mask leaves no region at {place}; an image has at least one")
    return exists
