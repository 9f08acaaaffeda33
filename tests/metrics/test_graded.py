"""The walk over scores beside graded relevance: what is wrong is named by its place in all."""

import numpy as np
import pytest

from itr_study.metrics import Scores, graded, ndcg
from tests.metrics.graded_sets import graded as truth_of


@pytest.mark.parametrize("direction", ["both", "i2t", "t2i"])
def test_a_nan_is_named_by_its_place_whatever_the_block(monkeypatch, direction):
    """Of one matrix, and of either of two; in the third block of images, the third of texts."""
    monkeypatch.setattr(graded, "BLOCK", 14)  # two images, or two texts, at a time
    truth = truth_of(np.eye(7))
    bad = np.zeros((7, 7))
    bad[5, 4] = np.nan
    scores = {"both": bad, "i2t": Scores(bad, np.zeros((7, 7))),
              "t2i": Scores(np.zeros((7, 7)), bad)}[direction]
    with pytest.raises(ValueError, match="NaN; found one at image 5, text 4"):
        ndcg(scores, truth)
