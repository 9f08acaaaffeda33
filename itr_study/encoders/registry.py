"""The encoders by name. To add one: its file, and its name here."""

from itr_study.checks import Registry
from itr_study.encoders.efficientnet import Lite0, Lite1, Lite2
from itr_study.encoders.fisher import Fisher
from itr_study.encoders.glove import GloveMean
from itr_study.encoders.nanodet import NanoDet
from itr_study.encoders.sentences import MiniLM
from itr_study.encoders.vision import Timm, Transformers

IMAGE_ENCODERS = Registry("image encoder", (Lite0, Lite1, Lite2, Timm, Transformers))
TEXT_ENCODERS = Registry("sentence encoder", (MiniLM, Fisher, GloveMean))
# Those that can be cut in the middle: their last stages are fine-tuned over cached maps.
STAGED = Registry("image encoder with stages", (Lite0, Lite1, Lite2))
DETECTORS = Registry("detector", (NanoDet,))
