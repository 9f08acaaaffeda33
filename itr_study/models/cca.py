"""CCA: the old baseline, two linear maps in closed form, nothing trained by steps."""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from itr_study.checks import check_count, check_number
from itr_study.data.batches import Batch, EncodedSplit
from itr_study.models.base import RetrievalModel
from itr_study.models.image import masked_mean

BLOCK = 4096  # rows widened to float64 at a time
LARGEST = 1e150  # of a value: sums of products of larger ones leave float64


class CCA(RetrievalModel):
    """Images and sentence vectors mapped linearly to where they correlate most, by cosine.

    `fit_cca` and `cca` make it; it is no model of MODELS, since it has no steps to train.

    Args:
        image_mean, text_mean: (P,) and (Q,), what is taken off.
        image_map, text_map: (P, D) and (Q, D), the directions.
        correlations: (D,) of the pairs it was fitted on, falling, lowered by the regularisation.
    """

    display_name, source = "CCA", "Hotelling, Biometrika 1936; topk paper, Tables I to III"
    image_mean: Tensor
    image_map: Tensor
    text_mean: Tensor
    text_map: Tensor
    correlations: Tensor

    def __init__(self, image_mean: Tensor, image_map: Tensor, text_mean: Tensor, text_map: Tensor,
                 correlations: Tensor) -> None:
        super().__init__()
        self.register_buffer("image_mean", image_mean)
        self.register_buffer("image_map", image_map)
        self.register_buffer("text_mean", text_mean)
        self.register_buffer("text_map", text_map)
        self.register_buffer("correlations", correlations)

    def encode_images(self, batch: Batch) -> Tensor:
        """Project the mean regions."""
        return self.project(pooled(batch), self.image_mean, self.image_map)

    def encode_texts(self, batch: Batch) -> Tensor:
        """Project the sentence vectors."""
        return self.project(sentences(batch), self.text_mean, self.text_map)

    @property
    def size(self) -> int:
        """D, the number of directions."""
        return len(self.correlations)

    def first(self, size: int) -> "CCA":
        """Return the model of its `size` most correlated directions, as if fitted with so many."""
        check_count("size", size, 1, self.size)
        return CCA(self.image_mean, self.image_map[:, :size], self.text_mean,
                   self.text_map[:, :size], self.correlations[:size])

    def project(self, rows: Tensor, mean: Tensor, directions: Tensor) -> Tensor:
        """Return rows (N, P) as (N, D) of length 1, in float64 up to there."""
        return normalize((rows.double() - mean) @ directions, dim=1).float()


def cca(images: Tensor, texts: Tensor, size: int | None = None, regularisation: float = 0.0) -> CCA:
    """Fit the pairs of directions along which the two views correlate most.

        max corr(X a, Y b):   (Cxx + r I)^-1/2 Cxy (Cyy + s I)^-1/2 = U S V'

    Args:
        images: (N, P), row n is the image of pair n.
        texts: (N, Q).
        size: D; None: all directions that there are.
        regularisation: r and s over the mean variance of a feature of their view, >= 0. Without
            any, directions that hardly vary in the training pairs are blown up. Choose it on dev.
    Raises: ValueError: for fewer than 2 pairs, other shapes, values that are no finite numbers or
        beyond 1e150, and more directions than the views have.
    Source: Hotelling, Biometrika 1936; regularised as in Hardoon et al., Neural Computation 2004.
    Differs: r is relative, so that it means the same for features of any scale. A direction in
        which a view does not vary at all is left out.

    Example: of y = -x every direction is known
        >>> x = torch.tensor([[1.0], [2.0], [4.0]])
        >>> round(cca(x, -x, size=1).correlations.item(), 6)
        1.0
    """
    if size is not None:
        check_count("size", size)
    check_number("regularisation", regularisation, least=0)
    check_pairs(images, texts)
    image_mean, text_mean = (view.mean(dim=0, dtype=torch.float64) for view in (images, texts))
    within = [covariance(view, view, mean, mean)
              for view, mean in ((images, image_mean), (texts, text_mean))]
    whiten_images, whiten_texts = (whitening(one, len(images), regularisation) for one in within)
    most = min(whiten_images.shape[1], whiten_texts.shape[1])
    size = most if size is None else size
    if size > most:
        raise ValueError(f"size must be at most {most}, got {size}: images vary in "
                         f"{whiten_images.shape[1]} directions and texts in "
                         f"{whiten_texts.shape[1]}, and a pair of directions needs one of each")
    across = covariance(images, texts, image_mean, text_mean)
    left, values, right = torch.linalg.svd(whiten_images.T @ across @ whiten_texts,
                                           full_matrices=False)
    return CCA(image_mean, whiten_images @ left[:, :size], text_mean,
               whiten_texts @ right[:size].T, values[:size])


def fit_cca(split: EncodedSplit, size: int | None = None, regularisation: float = 0.0) -> CCA:
    """Fit `cca` to the mean region and the sentence vector of every training pair.

    An image counts once for each of its texts. ValueError as `cca`, and for a split without these.
    """
    images = torch.cat([pooled(split.image_batch(np.arange(split.n_images)[start:start + BLOCK]))
                        for start in range(0, split.n_images, BLOCK)])
    texts = sentences(split.text_batch(np.arange(split.n_texts)))
    return cca(images[torch.from_numpy(split.image_of_text)], texts, size, regularisation)


def pooled(batch: Batch) -> Tensor:
    """Return the mean region (I, P) of every image."""
    if batch.regions is None or batch.region_mask is None or not batch.regions.shape[-1]:
        raise ValueError("cca needs region features, and this batch has none; encode the data "
                         "with images='lite0:pooled:flip' or the like")
    return masked_mean(batch.regions, batch.region_mask)


def sentences(batch: Batch) -> Tensor:
    """Return the sentence vectors (T, Q)."""
    if batch.sentences is None:
        raise ValueError("cca needs sentence vectors, and this batch has none; encode the data "
                         "with sentences='fisher' or 'glove-mean'")
    return batch.sentences


def check_pairs(images: Tensor, texts: Tensor) -> None:
    """Raise ValueError unless these are matrices of 2 pairs or more, with finite products."""
    shapes = tuple(images.shape), tuple(texts.shape)
    if [len(shape) for shape in shapes] != [2, 2] or shapes[0][0] != shapes[1][0]:
        raise ValueError("images and texts must be matrices with a row for each pair, got "
                         f"{shapes[0]} and {shapes[1]}; repeat an image for each of its texts")
    if len(images) < 2 or 0 in shapes[0] + shapes[1]:
        raise ValueError(f"cca needs at least 2 pairs and a feature of each, got {shapes[0]} and "
                         f"{shapes[1]}: of fewer nothing varies")
    for name, view in (("images", images), ("texts", texts)):
        finite = view.isfinite().all(dim=1)
        if not finite.all():
            raise ValueError(f"{name} must be finite numbers, row {int(finite.int().argmin())} is "
                             f"not ({int((~finite).sum())} rows of {len(view)}); leave out these "
                             "pairs, or encode them again")
        if (most := view.abs().max().item()) > LARGEST:
            raise ValueError(f"{name} must lie within +-{LARGEST:g}, got a value of size {most:g}; "
                             "divide this view by its largest value: its scale does not matter")


def covariance(a: Tensor, b: Tensor, a_mean: Tensor, b_mean: Tensor) -> Tensor:
    """Return the mean product (P, Q) float64 of views (N, P) and (N, Q) around their means."""
    total = a_mean.new_zeros(len(a_mean), len(b_mean))
    for some, other in zip(a.split(BLOCK), b.split(BLOCK), strict=True):
        total = total + (some.double() - a_mean).T @ (other.double() - b_mean)
    return total / len(a)


def whitening(variances: Tensor, rows: int, regularisation: float) -> Tensor:
    """Return directions (P, rank) in which a view varies, over their standard deviation.

    variances: (P, P) of `rows` rows; their mean is the unit of the regularisation.
    """
    values, directions = torch.linalg.eigh(variances)
    noise = values[-1].clamp(min=0) * max(rows, len(values)) * torch.finfo(values.dtype).eps
    varies = values > noise
    scale = values[varies] + regularisation * values.mean()
    return directions[:, varies] / scale.sqrt()
