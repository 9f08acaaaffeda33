"""What every label source must do, on training batches and on rectangular ones."""

import pkgutil

import numpy as np
import pytest
import torch

import itr_study.relevance
from itr_study.data.batches import EncodedSplit
from itr_study.relevance import RELEVANCE

FLOOR = {"binary": 0, "unit": 0, "cosine": -1}


def small_split():
    """Four images, nine texts, graded relevance that is 1 for some pairs that do not match."""
    owner = np.array([0, 0, 1, 1, 1, 2, 3, 3, 2])
    graded = np.random.default_rng(0).random((4, 9))
    graded[0, 6] = 1
    return EncodedSplit("train", owner, np.zeros((4, 1, 1, 2), np.float32), relevance=graded)


def batches(split):
    """A training batch with an image drawn twice, and one of pairs without repetition."""
    return [split.pair_batch(np.array([6, 0, 1, 8])), split.pair_batch(np.array([2, 5]))]


def test_every_file_is_registered():
    files = {m.name for m in pkgutil.iter_modules(itr_study.relevance.__path__)}
    assert {name for name in files if not name.startswith("_")} == set(RELEVANCE)


@pytest.mark.parametrize("name", RELEVANCE)
def test_source_tells_what_it_is(name):
    source = RELEVANCE[name]
    assert source.name == name and type(source.version) is int
    assert source.scale in FLOOR


@pytest.mark.parametrize("name", RELEVANCE)
def test_one_for_matches_and_only_for_them(name):
    split, source = small_split(), RELEVANCE[name]()
    for batch in batches(split):
        relevance = source(batch, split)
        assert relevance.shape == batch.match.shape and relevance.dtype == torch.float32
        assert (relevance[batch.match] == 1).all()
        rest = relevance[~batch.match]
        assert (rest <= 1 - 1e-4).all() and (rest >= FLOOR[source.scale]).all()
