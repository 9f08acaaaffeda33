"""Frozen encoders by name: pictures -> region features, texts -> sentence vectors.

To add one: its file, and its name here.
"""

from torch import nn

from itr_study.checks import Registry
from itr_study.encoders.base import ImageNetwork, WeightsError
from itr_study.encoders.efficientnet import Lite0, Lite1, Lite2
from itr_study.encoders.fisher import Fisher, HybridFisher
from itr_study.encoders.glove import GloveMean, word_vectors
from itr_study.encoders.nanodet import NanoDet
from itr_study.encoders.sentences import ClipSentences, MiniLM, trainable_text_encoder
from itr_study.encoders.vision import Clip, Timm, Transformers

__all__ = ["DETECTORS", "IMAGE_ENCODERS", "STAGED", "TEXT_ENCODERS", "WeightsError",
           "trainable_image_encoder", "trainable_stages", "trainable_text_encoder", "word_vectors"]

IMAGE_ENCODERS = Registry("image encoder", (Lite0, Lite1, Lite2, Timm, Transformers, Clip))
TEXT_ENCODERS = Registry("sentence encoder", (MiniLM, Fisher, HybridFisher, GloveMean,
                                              ClipSentences))
# Those that can be cut in the middle: their last stages are fine-tuned over cached maps.
STAGED = Registry("image encoder with stages", (Lite0, Lite1, Lite2))
DETECTORS = Registry("detector", (NanoDet,))


def trainable_image_encoder(name: str) -> ImageNetwork:
    """Load the pretrained network of an encoder with gradients, preprocessing included.

    Args:    name: as in an images spec without kind and views: "lite0", "timm:<name or folder>".
    Shape:   pixels (I, 3, H, W) in 0..255, any dtype -> (I, R, D); D is its `width`. Native H and
             W are `IMAGE_ENCODERS[...].size`; `base.make_views` makes such pixels.
    Raises:  ValueError naming the choices; WeightsError where weights cannot be found.
    """
    encoder, _, argument = name.partition(":")
    return IMAGE_ENCODERS[encoder](argument).trainable()


def trainable_stages(name: str) -> nn.Module:
    """Load the last stages of a pretrained network with gradients, over maps that go into them.

    Args:    name: "lite0:stage7": the network, and the first of its stages that is trained.
    Shape:   maps (I, R, C), as images="lite0:stage7:one" makes them -> (I, R', D); D is its
             `width`.
    Raises:  ValueError naming the choices; WeightsError where weights cannot be found.
    """
    encoder, _, stage = name.partition(":stage")
    return STAGED[encoder]().last_stages(int(stage))
