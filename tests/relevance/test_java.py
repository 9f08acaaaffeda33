"""METEOR and SPICE: a runner in their place, what is said where they are absent, and METEOR."""

import importlib.util
import shutil
import subprocess

import numpy as np
import pytest

from itr_study.encoders.base import WeightsError
from itr_study.relevance import RELEVANCE, meteor
from tests.relevance.test_registry import OverlapSpice, OverlapTool, batches, small_split

Meteor, Spice = RELEVANCE["meteor"], RELEVANCE["spice"]


def running(source, tool):
    source.tool = lambda: tool
    return source


@pytest.mark.parametrize(("source", "tool"), [(Meteor, OverlapTool), (Spice, OverlapSpice)])
def test_every_caption_is_a_reference_of_its_own(source, tool, monkeypatch):
    monkeypatch.setattr(meteor, "PAIRS", 7)
    split = small_split()
    whole = running(source("max"), tool()).block(split, slice(None))
    # text 4 "a dog runs" with "a dog runs", "the dog runs on grass" of image 0; a match of image 1
    assert whole[0, 4] == np.float32(1 - 1e-4) and whole[1, 4] == 1
    assert whole[0, 6] == pytest.approx(2 / 7)  # "men sit on grass": on, grass of 7 words
    assert whole[0, 7] == 0 and whole[3, 7] == 1  # a text without words
    mean = running(source("mean"), tool())
    assert mean.block(split, slice(0, 1))[0, 6] == pytest.approx((0 + 2 / 7) / 2)
    assert mean.pairs(split, np.array([0]), np.array([6])) == pytest.approx(1 / 7)


def test_the_package_and_java_are_asked_for(monkeypatch):
    split = small_split()
    monkeypatch.setattr("itr_study.encoders.weights.importlib.import_module", missing)
    with pytest.raises(WeightsError, match='labels "meteor" needs.*pip install pycocoevalcap'):
        Meteor()(batches(split)[0], split)
    monkeypatch.setattr(meteor, "required_package", lambda *a: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ValueError, match="no `java` is on the PATH; install"):
        Spice()(batches(split)[0], split)


def missing(name):
    raise ModuleNotFoundError(f"No module named {name!r}", name="pycocoevalcap")


class Failing:
    def __init__(self, error=None, scores=()):
        self.error, self.scores = error, scores

    def compute_score(self, gts, res):
        if self.error:
            raise self.error
        return 0.0, self.scores


@pytest.mark.parametrize(("tool", "message"), [
    (Failing(BrokenPipeError("gone")), "Java program of meteor failed .gone"),
    (Failing(ValueError("could not convert string to float: b''")), "failed .could not convert"),
    (Failing(subprocess.CalledProcessError(1, "java")), "failed .*exit status 1"),
    (Failing(scores=[0.5]), "1 answers to"),
])
def test_a_program_that_fails_is_told(tool, message):
    split = small_split()
    with pytest.raises(ValueError, match=message):
        running(Meteor(), tool)(batches(split)[0], split)


def test_scores_off_the_scale_are_refused():
    split = small_split()
    twice = OverlapTool()
    twice.said = lambda score: 2.0
    with pytest.raises(ValueError, match=r"outside \[0, 1\]"):
        running(Meteor(), twice)(batches(split)[0], split)


def test_models_that_cannot_be_downloaded(monkeypatch):
    class Module:
        @staticmethod
        def Spice():
            raise OSError("no route to host")

    monkeypatch.setattr("itr_study.relevance.meteor.required_package", lambda *a: Module)
    with pytest.raises(ValueError, match="CoreNLP.*no route to host"):
        Spice().start()


def test_real_meteor():
    if importlib.util.find_spec("pycocoevalcap") is None or shutil.which("java") is None:
        pytest.skip("METEOR itself: pip install pycocoevalcap, and a Java runtime")
    split = small_split()
    whole = Meteor().block(split, slice(0, 2))
    assert whole[0, 4] == np.float32(1 - 1e-4)  # the same words: METEOR says 1
    assert 0 < whole[0, 6] < 0.5 and whole[0, 6] < whole[0, 4]
