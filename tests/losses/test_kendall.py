"""Kendall losses: equal in value and gradient to forms that list every pair; edges of windows."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from itr_study.losses import LOSSES, kendall
from itr_study.losses.kendall_window import window_edges
from tests.oracles.kendall_window import windows

TOLERANCE = 1e-6


def batch(seed, images, texts, grid=None):
    """float64 scores and cosine labels; with a grid, both full of ties."""
    g = torch.Generator().manual_seed(seed)
    scores, relevance = (2 * torch.rand(2, images, texts, generator=g, dtype=torch.float64) - 1)
    if grid:
        scores, relevance = (scores * grid).round() / grid, (relevance * grid).round() / grid
    relevance = relevance.clamp(max=0.99)
    relevance.diagonal().fill_(1)
    return scores, relevance


def hinges(scores):
    """(I, T, T) [s_k - s_j]+ at [., j, k]."""
    return (scores[:, None, :] - scores[:, :, None]).relu()


def pairs_of(relevance, relaxation):
    apart = relevance[:, :, None] - relevance[:, None, :]
    return ((apart > 0) & (apart >= relaxation - TOLERANCE)).double()


def pairs_of_windows(relevance, relaxation, stride):
    """(I, T, T) in how many windows j is positive and k negative."""
    total = torch.zeros(*relevance.shape, relevance.shape[1], dtype=torch.float64)
    for edge in windows(relaxation, stride):
        positive = (relevance >= edge + relaxation - TOLERANCE) | (relevance == 1)
        total += positive[:, :, None] & (relevance < edge - TOLERANCE)[:, None, :]
    return total


def listed(scores, relevance, weigh):
    """Mean of the hinges of both directions, every pair in a list."""
    value = 0.0
    for s, r in ((scores, relevance), (scores.T, relevance.T)):
        weight = weigh(r)
        value = value + (hinges(s) * weight).sum() / weight.sum().clamp(min=1)
    return value


def window_tensor(scores, relevance, relaxation, stride):
    """SW-HS with one mask (I, T, M) for each side."""
    edges = torch.tensor(windows(relaxation, stride), dtype=torch.float64)
    value = 0.0
    for s, r in ((scores, relevance), (scores.T, relevance.T)):
        negative = r[:, :, None] < edges - TOLERANCE
        positive = (r[:, :, None] >= edges + relaxation - TOLERANCE) | (r == 1)[:, :, None]
        largest = s[:, :, None].masked_fill(~negative, -torch.inf).amax(dim=1)
        least = s[:, :, None].masked_fill(~positive, torch.inf).amin(dim=1)
        value = value + (largest - least).relu().mean()
    return value


def same(ours, slow, scores, relevance):
    """Assert equal value and gradient."""
    results = []
    for loss in (ours, slow):
        leaf = scores.clone().requires_grad_()
        value = loss(leaf, relevance)
        value.backward()
        results.append((value.detach(), leaf.grad))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


CASES = st.tuples(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 30),
                  st.sampled_from([None, 3, 10]))


@settings(max_examples=30, deadline=None)
@given(CASES, st.sampled_from([0, 0.1, 0.2, 0.5, 1.9]))
def test_kendall_equals_the_listed_pairs(case, relaxation):
    same(LOSSES["kendall"](relaxation), lambda s, r: listed(
        s, r, lambda labels: pairs_of(labels, relaxation)), *batch(*case))


@settings(max_examples=30, deadline=None)
@given(CASES, st.sampled_from([(0.2, 0.1), (0, 0.25), (0.5, 0.35), (0.3, 1.7), (1.5, 0.1)]))
def test_windows_equal_the_listed_windows(case, size):
    scores, relevance = batch(*case)
    soft = LOSSES["kendall_window"](False, *size)
    same(soft, lambda s, r: listed(s, r, lambda labels: pairs_of_windows(labels, *size)),
         scores, relevance)
    hard = LOSSES["kendall_window"](True, *size)
    distinct = case[3] is None  # of equal extremes each may take the gradient
    if distinct:
        same(hard, lambda s, r: window_tensor(s, r, *size), scores, relevance)
    torch.testing.assert_close(hard(scores, relevance), window_tensor(scores, relevance, *size))


@pytest.mark.parametrize(("images", "texts"), [(2, 300), (40, 130)])
def test_kendall_of_long_lists(images, texts, monkeypatch):
    """More than one block of places, and of rows."""
    monkeypatch.setattr(kendall, "AT_ONCE", 2500)
    monkeypatch.setattr(kendall, "HELD", 4200)
    scores, relevance = batch(0, images, texts)
    same(LOSSES["kendall"](), lambda s, r: listed(s, r, lambda x: pairs_of(x, 0.2)),
         scores, relevance)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 200))
def test_smaller_in_both(seed, rows, items):
    g = torch.Generator().manual_seed(seed)
    place = torch.stack([torch.randperm(items, generator=g) for _ in range(rows)])
    bounds = torch.randint(0, items + 1, (2, rows, items), generator=g)
    found = kendall.smaller_in_both(place, bounds)
    columns = torch.arange(items)
    for query, bound in enumerate(bounds):
        before = columns[None, None, :] < bound[:, :, None]
        smaller = place[:, None, :] < place[:, :, None]
        assert torch.equal(found[query], (before & smaller).sum(dim=2))


@pytest.mark.parametrize(("relaxation", "stride", "expected"), [
    (0.2, 0.1, 18), (0.2, 0.3, 6), (0.5, 0.6, 3), (0.0, 2.0, 1), (0.1, 1.9, 1), (0.3, 0.1, 17)])
def test_number_of_windows(relaxation, stride, expected):
    """(2 - alpha) / beta, and one more where it is not whole; the last is 1 - alpha."""
    edges = window_edges(relaxation, stride)
    assert len(edges) == expected
    assert edges == pytest.approx(windows(relaxation, stride))
    assert edges[-1] == pytest.approx(1 - relaxation) and edges[0] > -1


@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_labels_on_the_edge_of_a_window(hard, dtype):
    """0.4 is not below a window at 0.4 and 0.6 is positive in it, also when rounded to float32."""
    loss = LOSSES["kendall_window"](hard, 0.2, 0.1)
    scores = torch.tensor([[0.1, 0.5]], dtype=dtype)
    for low in range(-9, 8):  # labels 0.2 apart lie at an edge of every window, in none inside
        labels = torch.tensor([[(low + 2) / 10, low / 10]], dtype=dtype)
        assert loss(scores, labels).item() == 0
        labels[0, 1] -= 2e-6
        assert loss(scores, labels).item() == pytest.approx(0.4 / 18 if hard else 0.4)


def test_exactly_the_relaxation_is_a_pair_in_float32():
    scores = torch.tensor([[0.1, 0.5]])
    assert LOSSES["kendall"](0.2)(scores, torch.tensor([[0.7, 0.5]])).item() > 0
    assert LOSSES["kendall"](0.2)(scores, torch.tensor([[0.7, 0.50001]])).item() == 0


def test_smaller_strides_weigh_pairs_by_the_gap_of_their_labels():
    """SW tends to [s_k - s_j]+ (r_j - r_k - alpha), not to Eq. 17."""
    scores, relevance = batch(3, 20, 20)
    gaps = listed(scores, relevance, lambda r: (r[:, :, None] - r[:, None, :] - 0.2).relu())
    fine = LOSSES["kendall_window"](False, 0.2, 0.001)(scores, relevance).item()
    assert fine == pytest.approx(gaps.item(), rel=0.002)
    assert abs(LOSSES["kendall"](0.2)(scores, relevance).item() - fine) > 0.02 * fine


@pytest.mark.parametrize("name", ["kendall", "kendall_window"])
@pytest.mark.parametrize("relevance", [[[1.0]], [[1.0, 1.0], [1.0, 1.0]], [[0.5, 0.45]]])
def test_no_pair_beyond_the_relaxation(name, relevance):
    relevance = torch.tensor(relevance)
    scores = torch.rand(relevance.shape, requires_grad=True)
    for arguments in ({}, {"reduction": "sum"}):
        value = LOSSES[name](**arguments)(scores, relevance)
        (grad,) = torch.autograd.grad(value, scores)
        assert value.item() == 0 and not grad.any()


def test_a_running_extreme_is_not_kept_of_other_windows():
    """The negative of a high window is none of a low one."""
    scores = torch.tensor([[0.1, 0.9, 0.2]]).double()
    relevance = torch.tensor([[1.0, 0.55, -0.95]]).double()
    value = LOSSES["kendall_window"]()(scores, relevance).item()
    assert value == pytest.approx((15 * 0.1 + 3 * 0.8) / 18)  # 0.9 is below 0.6, 0.7 and 0.8


@pytest.mark.parametrize("name", ["kendall", "kendall_window", "ladder"])
def test_texts_use_the_transpose(name):
    scores, relevance = batch(1, 12, 12)
    wrong = relevance.T.clone()
    assert abs(LOSSES[name]()(scores, relevance) - LOSSES[name]()(scores, wrong)) > 1e-3


def test_ladder_arguments_that_do_not_fit():
    with pytest.raises(ValueError, match="1 thresholds, 2 margins and 2 weights"):
        LOSSES["ladder"](weights=(0.1, 0.2))


def test_labels_below_minus_1_are_refused():
    with pytest.raises(ValueError, match=r"within \[-1.0"):
        LOSSES["kendall"]()(torch.zeros(1, 2), torch.tensor([[1.0, -1.01]]))


def test_counts_within_a_block_fit_a_byte():
    """They are summed in uint8, so that a block holds 256 items however many there are."""
    sizes = [kendall.block_size(items) for items in (1, 2, 100, 70_000, 131_072, 10**7)]
    assert sizes == [1, 1, 8, 256, 256, 256]
    place = torch.arange(256)[None]
    counts = kendall.within_block(place, torch.full_like(place, 256), 256, blocks=1)
    assert counts.tolist() == [list(range(256))]


def test_a_long_sum_loses_no_pair():
    """Gradients count pairs, thousands of them: small terms must not drown in large ones."""
    scores = torch.tensor([[2.0**24, *[1.0] * 1000, -2.0**24]])
    counted = [(torch.ones_like(scores), torch.tensor(1))]
    assert kendall.from_counts(scores, counted, "sum").item() == 1000
