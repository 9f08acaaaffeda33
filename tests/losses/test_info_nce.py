"""InfoNCE against torch's own cross-entropy, and its limit at a low temperature."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from itr_study.losses import LOSSES


@pytest.mark.parametrize("seed", range(5))
def test_equals_cross_entropy_on_pairs(seed):
    scores = torch.rand(8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    target = torch.arange(8)
    expected = cross_entropy(scores / 0.1, target) + cross_entropy(scores.T / 0.1, target)
    ours = LOSSES["info_nce"](temperature=0.1)(scores, torch.eye(8).double())
    torch.testing.assert_close(ours, expected)


def test_tends_to_the_hardest_hinge_without_margin():
    scores = torch.rand(8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    labels = torch.eye(8).double()
    hardest = LOSSES["triplet_hardest"](margin=0.0)(scores, labels).item()
    assert hardest > 0
    assert 1e-5 * LOSSES["info_nce"](temperature=1e-5)(scores, labels).item() == pytest.approx(
        hardest, abs=1e-4)
