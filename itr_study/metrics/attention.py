"""Sub-embeddings of images: their cosines with each other, and where heads look.

A map gives every region of an image a weight; the weights of a head add up to 1. Two maps are
called attention: the softmax with which a head pools the regions, and the paper's rank map, which
sorts the regions by cosine with the head's sub-embedding.
"""

import numpy as np
import torch

from itr_study.metrics.ranks import as_doubles
from itr_study.metrics.scores import Matrix

RASTER = 224  # pixels a side of a map that is drawn over a picture
NEAR = 1e-3  # by how much the weights of a map may miss 1: a softmax in bfloat16 does by less


def region_cosines(vectors: Matrix, regions: Matrix) -> np.ndarray:
    """Cosine of every sub-embedding with every region of its image: (I, K, R) float64.

    Args:
        vectors: (I, K, D).
        regions: (I, R, D), projected into the same space. A zero vector, such as a padded region,
            has cosine 0 with all.
    Raises: ValueError for NaN and infinite numbers, shapes that differ.
    """
    heads, places = as_doubles(vectors, "vectors"), as_doubles(regions, "regions")
    if heads.ndim != 3 or places.ndim != 3 or 0 in heads.shape + places.shape \
            or heads.shape[::2] != places.shape[::2]:
        raise ValueError("vectors must be (n_images, K, D) and regions (n_images, R, D); got "
                         f"{heads.shape} and {places.shape}")
    check_finite("vectors", heads)
    check_finite("regions", places)
    return unit(heads) @ unit(places).swapaxes(1, 2)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors (..., D) to length 1; zero vectors stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def check_finite(what: str, vectors: np.ndarray) -> None:
    """Raise ValueError naming the first of vectors (I, N, D) that is not finite."""
    bad = ~np.isfinite(vectors).all(axis=-1)
    if bad.any():
        image, row = np.argwhere(bad)[0]
        raise ValueError(f"{what} must be finite numbers; found another in image {image}, row "
                         f"{row} (from 0)")


def head_correlation(vectors: Matrix, mask: Matrix | None = None,
                     signed: bool = False) -> np.ndarray:
    """Cosine of every sub-embedding of an image with every other: (I, K, K) float64.

    1 off the diagonal: two heads say the same (collapse); 0: nothing in common. A zero vector, and
    a head that is switched off, has 0 with all, itself included.

    Args:
        vectors: (I, K, D) of any length, K at least 2. The paper's constraint looks at those before
            the residual connection; those that are matched share its global vector.
        mask: (I, K), 0 for a head that is switched off; None: all are on.
        signed: the cosine itself, not its absolute value, by which opposite vectors say the same.
    Raises: ValueError for K = 1, NaN and infinite numbers, shapes that differ, a mask of other
        values than 0 and 1.
    Source: dvse, Fig. 6 and Eq. 4.
    Differs: cosines, not correlation coefficients: Eq. 4 does not subtract a mean.
    Example: the first two point to opposite sides, the third is at right angles to both
        >>> heads = np.array([[[2.0, 0.0], [-1.0, 0.0], [0.0, 3.0]]])
        >>> head_correlation(heads)[0].tolist()
        [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        >>> head_correlation(heads, signed=True)[0, 0].tolist()
        [1.0, -1.0, 0.0]
    """
    values = as_doubles(vectors, "vectors")
    if values.ndim != 3 or 0 in values.shape:
        raise ValueError(f"vectors must be (n_images, K, D), got {values.shape}")
    if values.shape[1] == 1:
        raise ValueError("one sub-embedding has no other to be compared with; give K >= 2")
    check_finite("vectors", values)
    on, given = heads_on(mask, values.shape[:2]), torch.from_numpy(values)
    largest = given.abs().amax(dim=-1, keepdim=True)  # first, so that no square overflows
    scaled = given / torch.where(largest > 0, largest, 1.0)
    length = scaled.norm(dim=-1, keepdim=True)
    units = scaled / torch.where(length > 0, length, 1.0) * torch.from_numpy(on)[..., None]
    cosines = (units @ units.mT).clamp(-1, 1).numpy()
    return cosines if signed else np.abs(cosines)


def mean_correlation(vectors: Matrix, mask: Matrix | None = None, signed: bool = False) -> float:
    """Mean of `head_correlation` off the diagonal, over the pairs of an image, then over images.

    Pairs with a head that is switched off are left out, and images of which fewer than two are on:
    as zeros they would lower the mean, and a mask would look like less correlation.

    Args, Raises: as `head_correlation`; no image with two heads that are on.
    Source: K (K - 1) times this, of one image without a mask, is the sum in dvse, Eq. 4.
    Example: without the third head the two others are left, which say the same
        >>> heads = np.array([[[2.0, 0.0], [-1.0, 0.0], [0.0, 3.0]]])
        >>> mean_correlation(heads), mean_correlation(heads, mask=np.array([[1, 1, 0]]))
        (0.3333333333333333, 1.0)
    """
    cosines = head_correlation(vectors, mask, signed)
    on = heads_on(mask, cosines.shape[:2])
    pairs = on[:, :, None] & on[:, None, :] & ~np.eye(on.shape[1], dtype=bool)
    counts = pairs.sum(axis=(1, 2))
    if not counts.any():
        raise ValueError("no image has two heads that are switched on, so there is no pair; look "
                         "at the mask")
    means = (cosines * pairs).sum(axis=(1, 2))[counts > 0] / counts[counts > 0]
    return float(means.mean())


def heads_on(mask: Matrix | None, shape: tuple[int, ...]) -> np.ndarray:
    """Convert a mask of zeros and ones to bool (I, K); all are on without one."""
    values = np.ones(shape) if mask is None else as_doubles(mask, "mask")
    if values.shape != shape or not np.isin(values, (0, 1)).all():
        raise ValueError(f"mask must be {shape} of zeros and ones, a value a head; got "
                         f"{values.shape}, {values.min()} to {values.max()}")
    return values == 1


def rank_map(cosines: Matrix, mask: Matrix | None = None) -> np.ndarray:
    """Weight of every region by its place when regions are sorted by cosine: (..., R) float64.

    a_i = rho (R - r_i)^2 for R regions that exist: r_i is 0 for the largest cosine, so that the
    smallest still has rho = 6 / (R (R + 1) (2 R + 1)), by which the weights add up to 1. Equally
    peaked whatever the cosines are: the first of 49 regions has 6 %, a softmax may give it all.

    Args:
        cosines: (..., R); read only where the mask is true. Equal ones share their places.
        mask: (..., R) bool, or what broadcasts to it, false at padded regions, which get 0; None:
            all exist.
    Raises: ValueError for NaN, a mask that leaves no region.
    Source: dvse, Sec. IV-E-1, with what a pixel gets: the sum over the regions that cover it.
    Differs: the paper states neither rho nor whether ranks begin at 0 or 1, and nothing of ties.
    Example: squares of 3, 2 and 1, over their sum 14; then two that tie share 9 + 4
        >>> rank_map(np.array([0.1, 0.9, 0.5])) * 14
        array([1., 9., 4.])
        >>> rank_map(np.array([0.9, 0.9, 0.5, 7.0]), np.array([True, True, True, False])) * 14
        array([6.5, 6.5, 1. , 0. ])
    """
    values = as_doubles(cosines, "cosines")
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
    """Sum 1^2 + 2^2 + ... + n^2."""
    return n * (n + 1) * (2 * n + 1) // 6


def uniform_map(mask: Matrix) -> np.ndarray:
    """Give every region (I, R) that exists the same weight, as a map of one head: (I, 1, R)."""
    exists = as_mask(mask, tuple(mask.shape))
    return (exists / exists.sum(axis=-1, keepdims=True))[:, None, :]


def shuffled_map(maps: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Shuffle the weights (I, K, R) of each head among the regions (I, R) that exist.

    Every head by itself: as peaked as before, whatever the regions show.
    """
    exists = np.broadcast_to(as_mask(mask, (len(maps), maps.shape[-1]))[:, None], maps.shape)
    # both orders have the regions that exist first, so the weights of these are dealt among them
    before = np.argsort(~exists, axis=-1, kind="stable")
    after = np.argsort(np.where(exists, rng.random(maps.shape), np.inf), axis=-1, kind="stable")
    dealt = np.zeros(maps.shape)
    np.put_along_axis(dealt, after, np.take_along_axis(maps, before, -1), -1)
    return dealt


def focus(maps: Matrix, shown: np.ndarray) -> np.ndarray:
    """Share of a map that falls on the object that gets most; mean over heads: (I,).

    1: every head looks at one object and nowhere else, whichever it is.

    Args:
        maps: (I, K, R) weights of each head, at least 0, that add up to 1 over the regions.
        shown: (I, R, O) how much of each region is on each object, in [0, 1], 0 for objects that
            an image does not have. Where boxes overlap a region may be on several.
    Raises: ValueError for shapes that differ, NaN, weights that are no map, values out of range, an
        image none of whose regions shows an object.
    Example: of the first head 0.7 falls on object 0, in two regions; of the second 0.6 on object 1
        >>> maps = np.array([[[0.5, 0.2, 0.3], [0.1, 0.3, 0.6]]])
        >>> shown = np.array([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
        >>> focus(maps, shown).round(4), coverage(maps, shown)
        (array([0.65]), array([1.]))
    """
    return object_mass(maps, shown).max(axis=-1).mean(axis=-1)


def coverage(maps: Matrix, shown: np.ndarray) -> np.ndarray:
    """How many different objects the heads of an image look at, of as many as K heads could: (I,).

    A head looks at the object that gets most of its map (of equal ones the first), at none where
    nothing falls on an object. Divided by min(K, objects that a region of the image shows): 1 for
    one head that looks at any, 1 / min(K, objects) for collapsed heads.

    Args, Raises, Example: as `focus`.
    """
    mass = object_mass(maps, shown)
    heads, objects = mass.shape[1:]
    looked = (mass.argmax(axis=-1)[..., None] == np.arange(objects)) & (mass > 0)
    visible = (np.asarray(shown) > 0).any(axis=1).sum(axis=-1)
    return looked.any(axis=1).sum(axis=-1) / np.minimum(heads, visible)


def object_mass(maps: Matrix, shown: np.ndarray) -> np.ndarray:
    """Sum how much of each head's map falls on each object (I, K, O), as `focus` reads them."""
    weights, shown = as_doubles(maps, "maps"), as_doubles(shown, "shown")
    if weights.ndim != 3 or shown.ndim != 3 or 0 in weights.shape + shown.shape \
            or weights.shape[::2] != shown.shape[:2]:
        raise ValueError("maps must be (n_images, K, R) and shown (n_images, R, objects); got "
                         f"{weights.shape} and {shown.shape}")
    if not ((shown >= 0) & (shown <= 1)).all():
        raise ValueError("shown must lie in [0, 1]: how much of a region lies on an object")
    wrong = ~is_map(weights)
    if wrong.any():
        image, head = np.argwhere(wrong)[0]
        one = weights[image, head]
        raise ValueError("the weights of a map must be at least 0 and add up to 1, NaN is an "
                         f"error; those of image {image}, head {head} give {one.sum():.4g} "
                         f"(smallest {one.min():.4g})")
    blind = ~(shown > 0).any(axis=(1, 2))
    if blind.any():
        raise ValueError(f"no region of image {np.argmax(blind)} shows an object, and of "
                         f"{blind.sum()} in all; leave them out")
    return weights @ shown


def is_map(weights: np.ndarray) -> np.ndarray:
    """Whether weights (..., R) are at least 0 and add up to 1: (...)."""
    return (np.abs(weights.sum(axis=-1) - 1) <= NEAR) & (weights >= 0).all(axis=-1)


def pixel_map(weights: np.ndarray, boxes: np.ndarray, size: int = RASTER) -> np.ndarray:
    """Sum the weights (R,) of the regions whose box (R, 4) holds a pixel's centre: (size, size).

    Regions without a place (NaN) cover no pixel.

    Example: the left half has 0.7, and the whole picture 0.3 more
        >>> pixel_map(np.array([0.7, 0.3]), np.array([[0, 0, 0.5, 1], [0, 0, 1, 1]]), 2).tolist()
        [[1.0, 0.3], [1.0, 0.3]]
    """
    centre = (np.arange(size) + 0.5) / size
    left, top, right, bottom = np.asarray(boxes, dtype=float).T[..., None]
    across = (centre >= left) & (centre < right)  # (R, size); false where NaN
    down = (centre >= top) & (centre < bottom)
    return (np.asarray(weights, dtype=float)[:, None] * down).T @ across.astype(float)


def as_mask(mask: Matrix | None, shape: tuple[int, ...]) -> np.ndarray:
    """Convert a mask of the regions that exist to bool of this shape; all exist without one."""
    if mask is None:
        return np.ones(shape, bool)
    values = np.asarray(mask.detach().cpu() if isinstance(mask, torch.Tensor) else mask)
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
