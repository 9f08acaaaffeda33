"""SPICE of captions as relevance, by its own Java program."""

import math

from itr_study.encoders.weights import required_package
from itr_study.relevance._java import JavaSource, Tool


class Spice(JavaSource):
    """Relevance of text j to image i: SPICE of text j with the captions of image i.

    It parses every text: for judged pairs (`pairs`), not for every step of training.

    Args:
        pooling: "max" or "mean" over the captions of image i taken one by one, or "pair", the one
            drawn with it in a training batch.
    Shape: called with (batch, split) returns (I, T) float32 in [0, 1] on the batch's device.
    Raises: ValueError where the package pycocoevalcap, Java, or the parser's models are missing,
        with the remedy.
    Source: Anderson et al., SPICE, ECCV 2016; bcls, Table II.
    Differs: SPICE joins the scene graphs of all references; here each caption is a reference of
        its own. Texts without any object score 0. Matches exactly 1, all others at most 1 - 1e-4.
    """

    name, version, module = "spice", 1, "pycocoevalcap.spice.spice"

    def start(self) -> Tool:
        try:
            return required_package(self.module, "pycocoevalcap", "spice").Spice()
        except OSError as error:
            raise ValueError("spice downloads the models of Stanford CoreNLP 3.6.0 on first use, "
                             f"and that failed ({error}); run it once with a connection, or put "
                             "stanford-corenlp-3.6.0.jar and its -models.jar into spice/lib of "
                             "the package pycocoevalcap") from error

    def read(self, score: dict) -> float:
        value = float(score["All"]["f"])
        return 0.0 if math.isnan(value) else value
