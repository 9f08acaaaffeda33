"""Do the sub-embeddings of an image say the same? Their cosines with each other (dvse Fig. 6)."""

import numpy as np
import torch
from torch import Tensor

from itr_study.metrics.ranks import wide


def head_correlation(vectors: np.ndarray | Tensor, mask: np.ndarray | Tensor | None = None,
                     signed: bool = False) -> np.ndarray:
    """Cosine of every sub-embedding of an image with every other: (I, K, K) float64.

    1 off the diagonal: two heads say the same (collapse); 0: nothing in common.

    Args:
        vectors: (I, K, D) of any length, K at least 2. The paper's constraint looks at those before
            the residual connection; those that are matched share its global vector, which alone
            makes them alike.
        mask: (I, K), 0 for a head that is switched off; None = all are on.
        signed: the cosine itself, in [-1, 1], in the place of its absolute value. Opposite vectors
            say the same by the constraint (Eq. 4), which takes the absolute value.
    Notes: a zero vector, and a head that is switched off, has 0 with all, itself included.
    Raises: ValueError for K = 1, NaN and infinite numbers, shapes that differ, a mask of other
        values than 0 and 1.
    Source: dvse, Fig. 6 and Eq. 4.
    Differs: cosines, not correlation coefficients: Eq. 4 does not subtract a mean.
    Example: the first two point to opposite sides, the third stands at right angles to both
        >>> heads = np.array([[[2.0, 0.0], [-1.0, 0.0], [0.0, 3.0]]])
        >>> head_correlation(heads)[0].tolist()
        [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        >>> head_correlation(heads, signed=True)[0, 0].tolist()
        [1.0, -1.0, 0.0]
    """
    vectors = wide(torch.as_tensor(vectors).detach()).cpu().double()
    if vectors.ndim != 3 or 0 in vectors.shape:
        raise ValueError(f"vectors must be (n_images, K, D), got {tuple(vectors.shape)}")
    if vectors.shape[1] == 1:
        raise ValueError("one sub-embedding has no other to be compared with; give K >= 2")
    bad = ~torch.isfinite(vectors).all(dim=-1)
    if bad.any():
        image, head = bad.nonzero()[0].tolist()
        raise ValueError("vectors must be finite numbers; found another in image "
                         f"{image}, sub-embedding {head}")
    on = heads_on(mask, tuple(vectors.shape[:2]))
    largest = vectors.abs().amax(dim=-1, keepdim=True)  # first, so that no square overflows
    scaled = vectors / torch.where(largest > 0, largest, 1.0)
    length = scaled.norm(dim=-1, keepdim=True)
    unit = scaled / torch.where(length > 0, length, 1.0) * torch.from_numpy(on)[..., None]
    cosines = (unit @ unit.mT).clamp(-1, 1).numpy()
    return cosines if signed else np.abs(cosines)


def mean_correlation(vectors: np.ndarray | Tensor, mask: np.ndarray | Tensor | None = None,
                     signed: bool = False) -> float:
    """Mean of `head_correlation` off the diagonal, over the pairs of an image, then over images.

    Args: as `head_correlation`; pairs with a head that is switched off are left out, and with them
        images of which fewer than two are on. (As zeros they would lower the mean, and a mask
        would look like less correlation.)
    Raises: as `head_correlation`, and where no image has two heads that are on.
    Source: K (K - 1) times this, of one image without a mask, is the sum in dvse, Eq. 4.
    Example:
        >>> heads = np.array([[[2.0, 0.0], [-1.0, 0.0], [0.0, 3.0]]])
        >>> mean_correlation(heads), mean_correlation(heads, mask=np.array([[1, 1, 0]]))
        (0.3333333333333333, 1.0)
    """
    cosines = head_correlation(vectors, mask, signed)
    images, heads = cosines.shape[:2]
    on = heads_on(mask, (images, heads))
    pairs = on[:, :, None] & on[:, None, :] & ~np.eye(heads, dtype=bool)
    counts = pairs.sum(axis=(1, 2))
    if not counts.any():
        raise ValueError("no image has two heads that are switched on, so there is no pair; look "
                         "at the mask")
    means = (cosines * pairs).sum(axis=(1, 2))[counts > 0] / counts[counts > 0]
    return float(means.mean())


def heads_on(mask: np.ndarray | Tensor | None, shape: tuple[int, int]) -> np.ndarray:
    """(I, K) bool of a mask of zeros and ones; all are on without one."""
    if mask is None:
        return np.ones(shape, bool)
    values = np.asarray(torch.as_tensor(mask).detach().cpu().float())
    if values.shape != shape or not np.isin(values, (0, 1)).all():
        raise ValueError(f"mask must be {shape} of zeros and ones, a value a head; got "
                         f"{values.shape}, {values.min()} to {values.max()}")
    return values == 1
