"""Smooth-NDCG: both ways of summing, large batches, the limit of small tau, diagnostics."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from itr_study.losses import LOSSES, _cells, _ranks
from itr_study.losses._ranks import Pairs, smooth_rank
from tests.oracles.smooth_ndcg import list_ndcg, oracle

WAYS = {"pairs": Pairs, "cells": _cells}
EXACT = {torch.float32: 3e-6, torch.float64: 1e-11}  # relative


def batch(images, texts, spread=0.15, seed=0):
    """float64 scores like those of a model, and relevance that is not symmetric."""
    g = torch.Generator().manual_seed(seed)
    scores = spread * torch.randn(images, texts, generator=g, dtype=torch.float64)
    relevance = torch.rand(images, texts, generator=g, dtype=torch.float64).clamp(max=0.99)
    for i in range(min(images, texts)):
        relevance[i, i] = 1
    return scores, relevance


def broadcast_rank(scores, temperature):
    """The definition, with all differences at once."""
    ahead = ((scores[:, None, :] - scores[:, :, None]) / temperature).sigmoid()
    return 1 + ahead.masked_fill(torch.eye(scores.shape[1], dtype=torch.bool), 0).sum(dim=2)


@pytest.mark.parametrize("dtype", EXACT)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("temperature", [0.004, 0.01, 0.03, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("shape", [(9, 1), (5, 90), (40, 33)])
def test_ranks_and_their_gradient_in_both_ways(way, temperature, shape, dtype, monkeypatch):
    monkeypatch.setattr(_cells, "AT_ONCE", 100)  # a few rows at a time
    monkeypatch.setattr(_ranks, "AT_ONCE", 5000)
    scores = batch(*shape)[0].to(dtype)
    leaf = scores.double().clone().requires_grad_()
    expected = broadcast_rank(leaf, temperature)
    grad = torch.rand(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected.backward(grad)
    found = WAYS[way].ranks(scores, temperature)
    torch.testing.assert_close(found.double(), expected.detach(), rtol=EXACT[dtype], atol=0)
    pulled = WAYS[way].pull_back(scores, temperature, grad.to(dtype))
    scale = max(leaf.grad.abs().max().item(), 0.25 / temperature)  # of single terms
    assert (pulled.double() - leaf.grad).abs().max() <= 2 * EXACT[dtype] * scale


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scores", [[[0.5] * 50], [[-1.0, 1.0]], [[-1.0, -0.015625, 0.0, 0.015625]],
                                    [[1e-9, -1e-9, 0.0]]])
def test_ties_and_edges_of_cells(way, scores):
    scores = torch.tensor(scores)
    torch.testing.assert_close(WAYS[way].ranks(scores, 0.01).double(),
                               broadcast_rank(scores.double(), 0.01), rtol=1e-6, atol=0)


def test_which_way_is_taken():
    wide, narrow = batch(4, 300, 1.0)[0], batch(4, 300, 0.05)[0]
    assert _cells.suit(narrow.float(), 0.01) and not _cells.suit(wide.float(), 0.001)
    for bad in (torch.nan, torch.inf):
        narrow[0, 0] = bad
        assert not _cells.suit(narrow, 0.01)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 40),
       st.sampled_from([0.003, 0.01, 0.05, 0.5]), st.sampled_from([0.0, 0.01, 0.3]))
def test_value_equals_the_oracle(seed, images, texts, temperature, spread):
    scores, relevance = batch(images, texts, spread, seed)
    expected = oracle(scores.tolist(), relevance.tolist(), temperature)
    loss = LOSSES["smooth_ndcg"](temperature)
    assert loss(scores, relevance).item() == pytest.approx(expected, abs=1e-10)
    single = oracle(scores.float().double().tolist(), relevance.tolist(), temperature)
    assert loss(scores.float(), relevance.float()).item() == pytest.approx(single, abs=2e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("images", "texts", "temperature"), [(3, 60, 0.1), (6, 5, 0.01)])
def test_gradient_of_the_loss(seed, images, texts, temperature):
    scores, relevance = batch(images, texts, 0.1, seed)
    loss = LOSSES["smooth_ndcg"](temperature)
    assert _cells.suit(scores, temperature) == (texts == 60)
    scores.requires_grad_()
    assert torch.autograd.gradcheck(lambda s: loss(s, relevance), (scores,))
    (exact,) = torch.autograd.grad(loss(scores, relevance), scores)
    single = scores.detach().float().requires_grad_()
    (found,) = torch.autograd.grad(loss(single, relevance.float()), single)
    at_single = scores.detach().float().double().requires_grad_()
    (exact,) = torch.autograd.grad(loss(at_single, relevance), at_single)
    assert (found - exact).abs().max() <= 1e-5 * exact.abs().max()


def test_inside_autocast_with_a_large_batch():
    """Sums of cells are matrix products, which autocast would do in bfloat16."""
    scores, relevance = batch(32, 150, 0.05)
    scores, relevance = scores.bfloat16(), relevance.float()
    assert _cells.suit(scores.float(), 0.02)
    leaves, loss = [], LOSSES["smooth_ndcg"](0.02)
    for enabled in (True, False):
        leaf = scores.float().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            value = loss(leaf, relevance)
            value.backward()
        leaves.append((value.detach(), leaf.grad))
    for found, expected in zip(*leaves, strict=True):
        assert found.dtype == torch.float32 and torch.equal(found, expected)


def test_texts_use_the_transpose():
    """Relevance of image i and text j is not that of image j and text i."""
    scores, relevance = batch(30, 30)
    texts = LOSSES["smooth_ndcg"]().direction(scores.T, relevance.T).item()
    lists = [1 - list_ndcg(scores[:, t].tolist(), relevance[:, t].tolist(), 0.01)
             for t in range(30)]
    assert texts == pytest.approx(sum(lists) / 30)
    wrong = LOSSES["smooth_ndcg"]().direction(scores.T, relevance).item()
    assert abs(texts - wrong) > 1e-3


def test_perfect_and_worst_order():
    relevance = torch.linspace(0, 1, 20, dtype=torch.float64)[None]
    loss = LOSSES["smooth_ndcg"](1e-4)
    assert loss.direction(relevance, relevance).item() == pytest.approx(0, abs=1e-9)
    assert loss.direction(-relevance, relevance).item() > 0.2
    tied = torch.tensor([[1.0, 1.0, 0.5]]).double()
    order = torch.tensor([[0.9, 0.8, 0.1]]).double()
    assert loss.direction(order, tied).item() == pytest.approx(0, abs=1e-9)  # reachable with ties


@pytest.mark.parametrize("spread", [0.0, 0.15])
def test_equal_relevance_is_finite(spread):
    scores, _ = batch(6, 8, spread)
    for level in (1.0, 0.5, 0.0):
        leaf = scores.clone().requires_grad_()
        value = LOSSES["smooth_ndcg"]()(leaf, torch.full_like(scores, level))
        value.backward()
        assert value.isfinite() and leaf.grad.isfinite().all()
        assert (value == 0) == (level == 0)


def test_lists_without_gains_add_0_but_count():
    scores = torch.tensor([[0.5, 0.5], [0.2, 0.4]])
    one = LOSSES["smooth_ndcg"]().direction(scores[:1], torch.tensor([[1.0, 0]]))
    two = LOSSES["smooth_ndcg"]().direction(scores, torch.tensor([[1.0, 0], [0, 0]]))
    assert two.item() == pytest.approx(one.item() / 2)
    tiny = torch.tensor([[1e-45, 0.0]])  # a gain too small for float32 to divide by
    assert LOSSES["smooth_ndcg"]().direction(scores[:1], tiny).isfinite()


@pytest.mark.parametrize("kept", [0, 2**40])
@pytest.mark.parametrize("shape", [(5, 90), (40, 33), (1, 1)])
def test_pairs_kept_for_the_gradient_or_computed_again(kept, shape, monkeypatch):
    monkeypatch.setattr(_ranks, "KEPT", kept)
    monkeypatch.setattr(_cells, "suit", lambda scores, temperature: False)
    scores = batch(*shape)[0]
    weights = torch.rand(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    leaves = [scores.clone().requires_grad_() for _ in range(2)]
    for leaf, rank in zip(leaves, (smooth_rank, broadcast_rank), strict=True):
        (rank(leaf, 0.01) * weights).sum().backward()
    torch.testing.assert_close(smooth_rank(scores, 0.01), broadcast_rank(scores, 0.01))
    torch.testing.assert_close(leaves[0].grad, leaves[1].grad)


def test_a_diagnosis_holds_the_value_and_its_gradient():
    scores, relevance = batch(12, 20)
    loss = LOSSES["smooth_ndcg"](reduction="sum")
    leaves = [scores.clone().requires_grad_() for _ in range(2)]
    values = [loss(leaves[0], relevance), loss.diagnose(leaves[1], relevance)[0]]
    for value in values:
        value.backward()
    assert values[0].item() == values[1].item()
    torch.testing.assert_close(leaves[0].grad, leaves[1].grad)


def test_diagnostics():
    loss = LOSSES["smooth_ndcg"](temperature=1e-5)
    scores, relevance = batch(9, 14)
    near = loss.diagnose(scores, relevance)[1]
    assert list(near) == ["ndcg", "smooth_ndcg", "error"] and near["error"].item() < 1e-6
    assert near["ndcg"].item() == pytest.approx(near["smooth_ndcg"].item())
    value = LOSSES["smooth_ndcg"](0.1)(scores, relevance).item()
    far = LOSSES["smooth_ndcg"](0.1).diagnose(scores, relevance)[1]
    assert far["ndcg"].item() == near["ndcg"].item()
    assert 2 - 2 * far["smooth_ndcg"].item() == pytest.approx(value)
    assert far["error"].item() > abs(far["smooth_ndcg"].item() - far["ndcg"].item()) - 1e-9 > 1e-3


def test_true_ndcg_of_ties_shares_the_best_rank():
    """Ranks 1, 1, 3 of relevance 1, 0, 1/2."""
    scores, relevance = torch.tensor([[0.7, 0.7, 0.1]]), torch.tensor([[1.0, 0.0, 0.5]])
    found = LOSSES["smooth_ndcg"]().diagnose(scores, relevance)[1]["ndcg"].item()
    i2t = (1 + (2**0.5 - 1) / 2) / (1 + (2**0.5 - 1) / 1.5849625)
    assert found == pytest.approx((i2t + 1) / 2)  # a text has one image: 1, and nothing for text 1


def test_approx_ndcg_is_smooth_ndcg_with_another_steepness():
    scores, relevance = batch(20, 25)
    leaves = [scores.clone().requires_grad_() for _ in range(2)]
    smooth = LOSSES["smooth_ndcg"](temperature=0.05)(leaves[0], relevance)
    approx = LOSSES["approx_ndcg"](alpha=20)(leaves[1], relevance)
    assert approx.item() == pytest.approx(smooth.item() - 2)
    smooth.backward()
    approx.backward()
    torch.testing.assert_close(leaves[0].grad, leaves[1].grad)


def test_listnet_is_least_where_scores_are_the_cosines_of_the_labels():
    _, relevance = batch(7, 9)
    scores = (2 * relevance - 1).requires_grad_()
    LOSSES["listnet"]()(scores, relevance).backward()
    assert scores.grad.abs().max() < 1e-12


def test_soft_labels_are_listnet_less_the_entropy_of_the_labels():
    scores, relevance = batch(7, 9)
    leaves = [scores.clone().requires_grad_() for _ in range(2)]
    values = [LOSSES[name](0.2, 0.1)(leaf, relevance)
              for name, leaf in zip(("soft_labels", "listnet"), leaves, strict=True)]
    entropy = sum(torch.distributions.Categorical(logits=labels / 0.1).entropy().mean()
                  for labels in (relevance, relevance.T))
    assert values[0].item() == pytest.approx(values[1].item() - entropy.item())
    for value in values:
        value.backward()
    torch.testing.assert_close(leaves[0].grad, leaves[1].grad)


@pytest.mark.parametrize("k", [1, 3, 100])
def test_recall_at_k_tends_to_recall(k):
    """Of one match each; k + 1/2 in place of k would give a match at rank k all, not half."""
    scores, _ = batch(20, 20)
    loss, match = LOSSES["recall_at_k"]((k,), 1e-6, 1e-3), torch.eye(20).double()
    at = [(1 + (scores > scores.diag()[:, None]).sum(dim=1)),
          (1 + (scores > scores.diag()).sum(dim=0))]
    missed = sum(1 - ((ranks < k).double() + 0.5 * (ranks == k)).mean() for ranks in at)
    assert loss(scores, match).item() == pytest.approx(missed.item(), abs=1e-9)


def test_smooth_rank_is_differentiable_once():
    scores = batch(2, 3)[0].requires_grad_()
    (grad,) = torch.autograd.grad(smooth_rank(scores, 0.1).square().sum(), scores,
                                  create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()
