"""Image networks with gradients, for models that fine-tune them."""

from torch import nn

from itr_study.encoders.base import ImageNetwork
from itr_study.encoders.registry import IMAGE_ENCODERS, STAGED


def trainable_image_encoder(name: str) -> ImageNetwork:
    """The pretrained network of an encoder with gradients, preprocessing included.

    Args:    name: as in an images spec without kind and views: "lite0", "timm:<name or folder>".
    Shape:   pixels (I, 3, H, W) in 0..255, any dtype -> (I, R, D); D is its `width`. Native H and
             W are `IMAGE_ENCODERS[...].size`; `views.make_views` makes such pixels.
    Raises:  ValueError naming the choices; WeightsError where weights cannot be found.
    """
    encoder, _, argument = name.partition(":")
    return IMAGE_ENCODERS[encoder](argument).trainable()


def trainable_stages(name: str) -> nn.Module:
    """The last stages of a pretrained network with gradients, over the maps that go into them.

    Args:    name: "lite0:stage7": the network, and the first of its stages that is trained.
    Shape:   maps (I, R, C), as images="lite0:stage7:one" makes them -> (I, R', D); D is its
             `width`.
    Raises:  ValueError naming the choices; WeightsError where weights cannot be found.
    """
    encoder, _, stage = name.partition(":stage")
    return STAGED[encoder]().last_stages(int(stage))
