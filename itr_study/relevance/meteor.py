"""METEOR of captions as relevance, by its own Java program."""

from itr_study.encoders.weights import required_package
from itr_study.relevance._java import JavaSource, Tool


class Meteor(JavaSource):
    """Relevance of text j to image i: METEOR 1.5 of text j with the captions of image i.

    Some hundred pairs a second: for judged pairs (`pairs`), not for every step of training.

    Args:
        pooling: "max" over the captions of image i (METEOR's own way with several references),
            "mean", or "pair", the one drawn with it in a training batch.
    Shape: called with (batch, split) returns (I, T) float32 in [0, 1] on the batch's device.
    Raises: ValueError where the package pycocoevalcap or Java is missing, with the remedy.
    Source: Denkowski & Lavie, Meteor Universal, WMT 2014; bcls, Table II.
    Differs: words of `tokenize`; matches exactly 1, all others at most 1 - 1e-4.
    """

    name, version, module = "meteor", 1, "pycocoevalcap.meteor.meteor"

    def start(self) -> Tool:
        return required_package(self.module, "pycocoevalcap", "meteor").Meteor()

    def read(self, score: float) -> float:
        return float(score)
