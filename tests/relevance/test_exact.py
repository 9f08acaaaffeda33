"""Exact labels: the data's values at the right places, clipped below a match."""

import dataclasses
import doctest
import sys

import numpy as np
import pytest

from itr_study.data.batches import EncodedSplit
from itr_study.relevance import RELEVANCE
from tests.relevance.test_registry import small_split

Exact = RELEVANCE["exact"]


def test_example_in_docstring():
    result = doctest.testmod(sys.modules[Exact.__module__])
    assert result.attempted and not result.failed


def test_values_by_loops():
    split = small_split()
    texts = np.array([6, 0, 3, 8])
    relevance = Exact()(split.pair_batch(texts), split)
    for i, image in enumerate(split.image_of_text[texts]):
        for j, text in enumerate(texts):
            expected = min(split.relevance[image, text], 1 - 1e-4)
            if split.image_of_text[text] == image:
                expected = 1
            assert relevance[i, j].item() == pytest.approx(expected, abs=1e-7), (image, text)
    assert relevance[1, 0] < 1  # image 0 and text 6: perfectly described, yet no match


def test_data_without_graded_relevance_is_refused():
    split = small_split()
    bare = EncodedSplit("dev", split.image_of_text, split.regions)
    with pytest.raises(ValueError, match="graded relevance.*'dev'.*scenes"):
        Exact()(bare.pair_batch(np.array([0])), bare)


def test_nan_in_the_data_is_found_by_the_loss():
    from itr_study.losses import LOSSES
    split = small_split()
    graded = split.relevance.copy()
    graded[0, 8] = np.nan
    broken = dataclasses.replace(split, relevance=graded)
    batch = broken.pair_batch(np.array([0, 8]))
    with pytest.raises(ValueError, match="nan"):
        LOSSES["triplet_hardest"]()(batch.match.float(), Exact()(batch, broken))
