"""Which regions raise the score of a pair: the gradient at what a model is given of an image."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from itr_study.data.batches import Batch
from itr_study.evaluation.evaluate import evaluating
from itr_study.models.base import Code, scored
from itr_study.models.network import TunesNetwork


def regions_of(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """What a model pools or looks at: regions (I, R, D) as they come, or the last map of the
    network that is fine-tuned, and which of them exist (I, R).

    Raises:  ValueError for a model that reads pixels by a network that is not known here.
    """
    if isinstance(model, TunesNetwork):
        return model.regions_of(batch)
    if batch.pixels is None:
        return batch.regions, batch.region_mask
    raise ValueError(f"{type(model).__name__} reads pixels, and it is known of vsepp and "
                     "vse_infinity alone what they make of them; take a run with features, such "
                     'as images="lite0:grid:one"')


def region_gradient(model: nn.Module, batch: Batch, text: Code) -> Tensor:
    """How much each region of an image adds to its score with a text: the sum over features of
    each feature times the gradient of the score at it; of any sign, 0 where no region is.

    Args:    batch: of one image, on the model's device; text: the code of one text, there too.
    Shape:   (R,).
    Source:  Grad-CAM (Selvaraju et al., ICCV 2017, Eqs. 1 and 2): the score in the place of that
             of a class, and regions in that of a map's cells where those are what comes in.
    Differs: each place is weighed by its own gradient, not by the mean of all places, as HiResCAM
             does (Draelos and Carin, 2020): a maximum over regions has a gradient only where it
             stands. Where a model takes the mean over places, both are one. Whoever draws it cuts
             off what is below zero, as Grad-CAM does.
    Raises:  ValueError for a model whose score has no gradient at its regions, or one that is not
             finite.
    """
    regions, exists, slope = _slope(model, batch, text)
    name = type(model).__name__
    if slope is None:
        raise ValueError(f"the score of {name} has no gradient at its regions, so that nothing "
                         "tells which of them raise it; take a model that torch computes from "
                         "batch.regions")
    found = (slope * regions)[0].sum(dim=1).masked_fill(~exists[0], 0)
    if not found.isfinite().all():
        raise ValueError(f"the gradient of the score of {name} is NaN or infinite: the model has "
                         "diverged; take an earlier epoch, or another run")
    return found


def has_gradient(model: nn.Module, batch: Batch, text: Code) -> bool:
    """Whether there is a `region_gradient` of this model."""
    return _slope(model, batch, text)[2] is not None


def _slope(model: nn.Module, batch: Batch, text: Code) -> tuple[Tensor, Tensor, Tensor | None]:
    """Regions (1, R, D), which exist (1, R), and the gradient of the score at them, if any."""
    with evaluating(model):
        regions, exists = regions_of(model, batch)
        leaf = regions.detach().clone().requires_grad_()
        with torch.enable_grad():
            total = scored(model, _encoded(model, batch, leaf), text).scores.sum()
        slope = torch.autograd.grad(total, leaf, allow_unused=True)[0] \
            if total.requires_grad else None
    return leaf.detach(), exists, slope


def _encoded(model: nn.Module, batch: Batch, regions: Tensor) -> Code:
    """The code of the image as if the model had been given these regions."""
    if not isinstance(model, TunesNetwork) or model.network is None:
        return model.encode_images(replace(batch, regions=regions))
    hook = model.network.register_forward_hook(lambda *_: regions)  # in the place of its map
    try:
        return model.encode_images(batch)
    finally:
        hook.remove()
