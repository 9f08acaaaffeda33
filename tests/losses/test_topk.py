"""topk and kth together: their order, their limits, and batches too small for k."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from itr_study.losses import LOSSES
from tests.losses.batches import random_batch


def losses(name, scores, relevance, **arguments):
    return LOSSES[name](**arguments)(scores, relevance).item()


@st.composite
def batches(draw):
    """Square batch of pairs with scores on a coarse grid, so that ties are common."""
    n = draw(st.integers(3, 8))
    steps = draw(st.lists(st.integers(-20, 20), min_size=n * n, max_size=n * n))
    return torch.tensor(steps, dtype=torch.float64).reshape(n, n) / 20, torch.eye(n).double()


@settings(max_examples=60, deadline=None)
@given(batches(), st.integers(1, 7), st.sampled_from([0.0, 0.2]))
def test_kth_below_topk_below_hardest_and_falling_in_k(batch, k, margin):
    k = min(k, len(batch[0]) - 1)
    hardest = losses("triplet_hardest", *batch, margin=margin)
    topk = [losses("topk", *batch, k=i, margin=margin) for i in range(1, k + 1)]
    kth = [losses("kth", *batch, k=i, margin=margin) for i in range(1, k + 1)]
    assert topk[0] == pytest.approx(hardest, abs=1e-12)
    assert kth[0] == pytest.approx(hardest, abs=1e-12)
    assert kth[-1] <= topk[-1] + 1e-12 and topk[-1] <= hardest + 1e-12
    assert all(b <= a + 1e-12 for a, b in zip(topk, topk[1:], strict=False))
    assert all(b <= a + 1e-12 for a, b in zip(kth, kth[1:], strict=False))
    assert losses("triplet_sum", *batch, margin=margin) >= hardest - 1e-12


def test_order_is_strict_somewhere():
    scores, relevance = random_batch(1)
    values = [losses(*x[:1], scores, relevance, **x[1]) for x in
              (("kth", {"k": 3}), ("topk", {"k": 3}), ("triplet_hardest", {}), ("triplet_sum", {}))]
    assert sorted(set(values)) == values


@pytest.mark.parametrize("name", ["topk", "kth"])
def test_gradient_with_k_1_is_that_of_the_hardest(name):
    scores, relevance = random_batch(2)
    gradients = []
    for loss in (LOSSES[name](k=1), LOSSES["triplet_hardest"]()):
        leaf = scores.clone().requires_grad_()
        loss(leaf, relevance).backward()
        gradients.append(leaf.grad)
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("name", ["topk", "kth"])
@pytest.mark.parametrize("shape", [(3, 9), (9, 3)])
def test_k_above_the_negatives_of_a_query_is_refused(name, shape):
    relevance = torch.zeros(shape)
    relevance[torch.arange(9) % shape[0], torch.arange(9) % shape[1]] = 1
    with pytest.raises(ValueError, match="k = 5.*only 2 negatives.*3.*k <= 2 or larger batches"):
        LOSSES[name](k=5)(torch.rand(shape), relevance)
    assert LOSSES[name](k=2)(torch.rand(shape), relevance).isfinite()


@pytest.mark.parametrize("name", ["topk", "kth"])
def test_queries_without_negatives_or_matches_do_not_ask_for_k(name):
    relevance = torch.zeros(2, 8)
    relevance[0] = 1  # image 0 has no negatives, image 1 no match: only texts ask, one negative
    scores = torch.zeros(2, 8)
    assert LOSSES[name](k=1)(scores, relevance).item() == pytest.approx(0.2)
    assert LOSSES[name](k=3)(scores[:1], relevance[:1]).item() == 0
