"""Generalised pooling: by hand, against a slow version in Python, and whatever the padding."""

import math

import pytest
import torch

from itr_study.models.image import (
    GPO,
    REGION_POOLS,
    SIZE,
    TEMPERATURE,
    masked_max,
    masked_mean,
    positions,
    sorted_pool,
)

REGIONS = torch.tensor([[[1.0, 5], [3, 2], [2, 8]], [[4, 6], [7, 1], [99, 99]]])
MASK = torch.tensor([[True, True, True], [True, True, False]])


def batch(seed=0, images=5, regions=6, size=4):
    random = torch.Generator().manual_seed(seed)
    values = torch.randn(images, regions, size, generator=random, dtype=torch.float64)
    counts = torch.tensor([[6], [1], [3], [2], [6]])
    order = torch.rand(images, regions, generator=random).argsort(dim=1)
    return values, (torch.arange(regions) < counts).gather(1, order)  # gaps too


def pool(seed=0):
    torch.manual_seed(seed)
    return GPO().double()


def test_by_hand():
    """The largest of two values counts 3/4; of three 1/2, 1/3, 1/6."""
    weights = torch.tensor([[1 / 2, 1 / 3, 1 / 6], [3 / 4, 1 / 4, 0]])
    expected = [[3 / 2 + 2 / 3 + 1 / 6, 8 / 2 + 5 / 3 + 2 / 6],
                [7 * 3 / 4 + 4 / 4, 6 * 3 / 4 + 1 / 4]]
    torch.testing.assert_close(sorted_pool(REGIONS, MASK, weights), torch.tensor(expected))


@pytest.mark.parametrize(("weights", "same"), [
    ([[1, 0, 0], [1, 0, 0]], masked_max), ([[1 / 3] * 3, [1 / 2, 1 / 2, 0]], masked_mean)])
def test_the_weights_of_maximum_and_mean_give_these(weights, same):
    torch.testing.assert_close(sorted_pool(REGIONS, MASK, torch.tensor(weights, dtype=torch.float)),
                               same(REGIONS, MASK))


def test_a_net_that_tells_no_place_from_another_gives_the_mean():
    values, mask = batch()
    flat = pool()
    with torch.no_grad():
        flat.linear.weight.zero_()
    torch.testing.assert_close(flat(values, mask), masked_mean(values, mask))


def test_positions_are_those_of_the_transformer():
    found = positions(50, torch.device("cpu"))
    for place in (0, 1, 49):
        expected = [f(place / 10_000 ** (2 * i / SIZE)) for i in range(SIZE // 2)
                    for f in (math.sin, math.cos)]
        assert found[place].tolist() == pytest.approx(expected, abs=1e-5)


def slow_weights(gpo, count):
    """Softmax over the scores of so many places, by torch's own two-way GRU without padding."""
    states, _ = gpo.gru(positions(count, torch.device("cpu")).double()[None])
    half = (states[0, :, :SIZE] + states[0, :, SIZE:]) / 2
    return torch.softmax(half @ gpo.linear.weight[0] / TEMPERATURE, dim=0)


def slow(gpo, values, mask):
    pooled = []
    for regions, exists in zip(values, mask, strict=True):
        there = regions[exists]
        weights = slow_weights(gpo, len(there))
        pooled.append(torch.stack([torch.stack(sorted(column, reverse=True)) @ weights
                                   for column in there.T]))
    return torch.stack(pooled)


@pytest.mark.parametrize("seed", range(4))
def test_value_and_gradient_of_the_slow_version(seed):
    results = []
    for version in (lambda gpo, *given: gpo(*given), slow):
        gpo, (values, mask) = pool(seed), batch(seed)
        values.requires_grad_()
        pooled = version(gpo, values, mask)
        pooled.square().sum().backward()
        results.append([pooled.detach(), values.grad, *(p.grad for p in gpo.parameters())])
    for ours, expected in zip(*results, strict=True):
        torch.testing.assert_close(ours, expected)


@pytest.mark.parametrize("name", REGION_POOLS)
def test_neither_padding_nor_order_counts(name):
    torch.manual_seed(0)
    net, (values, mask) = REGION_POOLS[name](), batch()
    values = values.float()
    wider = torch.cat((values, torch.full((5, 3, 4), 1e4)), dim=1)
    longer = torch.cat((mask, torch.zeros(5, 3, dtype=torch.bool)), dim=1)
    order = torch.randperm(9)
    torch.testing.assert_close(net(wider[:, order], longer[:, order]), net(values, mask))


def test_weights_of_each_number_of_regions_sum_to_1():
    weights = pool().weights(7)
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(7).double())
    assert (weights.triu(1) == 0).all() and (weights.tril() > 0).sum() == 28


def test_an_image_without_a_region_is_0_and_harms_no_gradient():
    gpo, (values, mask) = pool(), batch()
    mask[2] = False
    pooled = gpo(values.requires_grad_(), mask)
    pooled.sum().backward()
    assert not pooled[2].any() and values.grad.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in gpo.parameters())


def test_what_a_region_counts_by_hand(monkeypatch):
    """The regions of the first image are third, first and second in one feature, second, third
    and first in the other."""
    gpo = GPO()
    table = torch.tensor([[1.0, 0, 0], [3 / 4, 1 / 4, 0], [1 / 2, 1 / 3, 1 / 6]])
    monkeypatch.setattr(gpo, "weights", lambda most: table)
    first = [(1 / 6 + 1 / 3) / 2, (1 / 2 + 1 / 6) / 2, (1 / 3 + 1 / 2) / 2]
    second = [(1 / 4 + 3 / 4) / 2, (3 / 4 + 1 / 4) / 2, 0]
    torch.testing.assert_close(gpo.shares(REGIONS, MASK), torch.tensor([first, second]))


def test_shares_are_weights_of_the_regions_that_exist():
    gpo, (values, mask) = pool(), batch()
    shares = gpo.shares(values, mask)
    assert not shares[~mask].any() and (shares[mask] > 0).all()
    torch.testing.assert_close(shares.sum(dim=1), torch.ones(5).double())
    order = torch.randperm(6)
    torch.testing.assert_close(gpo.shares(values[:, order], mask[:, order]), shares[:, order])
    mask[2] = False
    assert not gpo.shares(values, mask)[2].any()


def test_weights_are_exact_in_half_precision():
    gpo, (values, mask) = GPO(), batch()
    values = values.float()
    with torch.autocast("cpu", torch.bfloat16):
        weights, pooled = gpo.weights(6), gpo(values, mask)
    assert torch.equal(weights, gpo.weights(6)) and torch.equal(pooled, gpo(values, mask))
