"""METEOR and SPICE of captions as relevance, by their own Java programs."""

import math
import shutil
import subprocess
from abc import abstractmethod
from typing import Any

import numpy as np

from itr_study.data.vocabulary import tokenize
from itr_study.encoders.weights import required_package
from itr_study.relevance._captions import CaptionSource

PAIRS = 1000  # sent to the program at a time


class JavaSource(CaptionSource):
    """Relevance of text j to image i: the tool's score of text j with the captions of image i.

    Each caption is a reference of its own; texts are given to the tool as words (`tokenize`). Some
    hundred pairs a second, or far fewer: for judged pairs (`pairs`), not for every step of
    training.

    Raises: ValueError, with the remedy, if the package pycocoevalcap, Java or models are missing.
    Differs: matches exactly 1, all others at most 1 - 1e-4.
    """

    scale, vectors_needed = "unit", ("texts",)
    module: str  # of pycocoevalcap

    def __init__(self, pooling: str = "max") -> None:
        super().__init__(pooling)
        self._tool: Any = None

    @abstractmethod
    def start(self) -> Any:
        """Return the running tool, a scorer of pycocoevalcap with its method compute_score."""

    @abstractmethod
    def read(self, score: Any) -> float:
        """Return the number in [0, 1] in the tool's answer for one pair."""

    def check(self, vectors: np.ndarray, texts: int) -> None:
        """Raise ValueError unless these are strings."""
        if not isinstance(vectors, np.ndarray) or not all(isinstance(t, str) for t in vectors):
            raise ValueError('split.label_vectors["texts"] must be a numpy array of strings: '
                             'encode with label_vectors=("texts",)')

    def alike(self, captions: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """Score all pairs."""
        values = self.alike_pairs(np.repeat(captions, len(texts)), np.tile(texts, len(captions)))
        return values.reshape(len(captions), len(texts))

    def alike_pairs(self, captions: np.ndarray, texts: np.ndarray) -> np.ndarray:
        """Score pair by pair."""
        words = {text: " ".join(tokenize(text)) for text in {*captions, *texts}}
        values = np.zeros(len(texts), np.float32)  # a text without any word is like nothing
        with_words = [n for n in range(len(texts)) if words[captions[n]] and words[texts[n]]]
        for start in range(0, len(with_words), PAIRS):
            part = with_words[start:start + PAIRS]
            values[part] = self.scores({n: [words[captions[n]]] for n in part},
                                       {n: [words[texts[n]]] for n in part})
        if not (np.isfinite(values).all() and values.min(initial=0) >= 0
                and values.max(initial=0) <= 1 + 1e-6):
            raise ValueError(f"{self.name} gave scores outside [0, 1], from {values.min()} to "
                             f"{values.max()}")
        return np.minimum(values, 1)

    def scores(self, references: dict[int, list[str]],
               candidates: dict[int, list[str]]) -> list[float]:
        """Return the tool's score of each pair; ValueError if its Java program fails."""
        tool = self.tool()
        try:
            _, scores = tool.compute_score(references, candidates)
            if len(scores) == len(references):
                return [self.read(score) for score in scores]
            reason = f"{len(scores)} answers to {len(references)} pairs"
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            reason = str(error)
        raise ValueError(f"the Java program of {self.name} failed ({reason}); see what it printed. "
                         "METEOR takes 2 GB of memory; SPICE 8 GB, and it was written for Java 8")

    def tool(self) -> Any:
        """Return the tool, started on first use; ValueError with the remedy if it cannot be."""
        if self._tool is None:
            required_package(self.module, "pycocoevalcap", f'labels "{self.name}"')
            if shutil.which("java") is None:
                raise ValueError(f'labels "{self.name}" run a Java program, and no `java` is on '
                                 "the PATH; install a Java runtime, such as openjdk 8 or later")
            self._tool = self.start()
        return self._tool


class Meteor(JavaSource):
    """Relevance of text j to image i: METEOR 1.5 of text j with the captions of image i.

    Source: Denkowski & Lavie, Meteor Universal, WMT 2014 (several references: "max"); bcls, Table
        II.
    """

    name, version, module = "meteor", 1, "pycocoevalcap.meteor.meteor"

    def start(self) -> Any:
        """Return METEOR."""
        return required_package(self.module, "pycocoevalcap", "meteor").Meteor()

    def read(self, score: float) -> float:
        """Return the score."""
        return float(score)


class Spice(JavaSource):
    """Relevance of text j to image i: SPICE of text j with the captions of image i.

    Source: Anderson et al., SPICE, ECCV 2016; bcls, Table II.
    Differs: SPICE joins the scene graphs of all references; here each caption is a reference of its
        own. Texts without any object score 0.
    """

    name, version, module = "spice", 1, "pycocoevalcap.spice.spice"

    def start(self) -> Any:
        """Return SPICE."""
        try:
            return required_package(self.module, "pycocoevalcap", "spice").Spice()
        except OSError as error:
            raise ValueError("spice downloads the models of Stanford CoreNLP 3.6.0 on first use, "
                             f"and that failed ({error}); run it once with a connection, or put "
                             "stanford-corenlp-3.6.0.jar and its -models.jar into spice/lib of "
                             "the package pycocoevalcap") from error

    def read(self, score: dict) -> float:
        """Return the F-score, 0 for NaN."""
        value = float(score["All"]["f"])
        return 0.0 if math.isnan(value) else value
