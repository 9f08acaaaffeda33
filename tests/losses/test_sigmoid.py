"""The sigmoid loss against torch's own binary cross-entropy."""

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from itr_study.losses import LOSSES
from tests.losses.batches import random_batch


@pytest.mark.parametrize("seed", range(6))
def test_equals_binary_cross_entropy(seed):
    scores, relevance = random_batch(seed)
    total = binary_cross_entropy_with_logits(7 * scores - 3, relevance, reduction="sum")
    ours = LOSSES["sigmoid"](scale=7, bias=-3)(scores, relevance)
    torch.testing.assert_close(ours, total / relevance.sum())
