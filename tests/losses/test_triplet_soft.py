"""The soft maximum of triplet_soft lies where its docstring says, and tends to the hardest."""

from math import log

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from itr_study.losses import LOSSES
from itr_study.losses._batch import log_sum_exp, negatives
from tests.losses.batches import random_batch


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1.0, 10.0, 50.0, 500.0]))
def test_bounds_of_the_soft_maximum(seed, scale):
    scores, relevance = random_batch(seed)
    match = relevance == 1
    for dim in (0, 1):
        largest = negatives(scores, match).amax(dim, keepdim=True)
        n = (~match).sum(dim, keepdim=True)
        soft = log_sum_exp(scale * scores, match, dim) / scale
        assert (soft >= largest - 1e-12).all()
        assert (soft <= largest + n.log() / scale + 1e-12).all()


@pytest.mark.parametrize("seed", range(10))
def test_loss_is_bounded_by_the_hardest_and_tends_to_it(seed):
    scores, relevance = random_batch(seed)
    hardest = LOSSES["triplet_hardest"]()(scores, relevance).item()
    n = max(scores.shape)
    for scale in (50.0, 1e6):
        soft = LOSSES["triplet_soft"](scale=scale)(scores, relevance).item()
        assert hardest - 1e-12 <= soft <= hardest + 2 * log(n) / scale


def test_bound_is_reached_by_equal_negatives():
    loss = LOSSES["triplet_soft"](margin=0.0, scale=50)
    value = loss(torch.zeros(1, 128).double(), torch.eye(1, 128).double()).item()
    assert value == pytest.approx(log(127) / 50) and round(value, 3) == 0.097
