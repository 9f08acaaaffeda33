"""The order of values by a network: that of a sort, for every number of places and every type."""

import itertools

import pytest
import torch

from itr_study.models.image import comparators, falling_order


def test_by_hand():
    values = torch.tensor([[[3.0, -1], [5, -2], [4, 7]]])
    assert falling_order(values).tolist() == [[[1, 2], [2, 0], [0, 1]]]


@pytest.mark.parametrize("places", range(9))
def test_a_network_that_sorts_all_zeros_and_ones_sorts_everything(places):
    """Knuth's zero-one principle."""
    for values in map(list, itertools.product((0, 1), repeat=places)):
        expected = sorted(values, reverse=True)
        for upper, lower in comparators(places):
            assert upper < lower
            if values[upper] < values[lower]:
                values[upper], values[lower] = values[lower], values[upper]
        assert values == expected


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("places", [1, 2, 3, 7, 12, 36, 49, 65])
def test_values_are_those_of_a_sort(dtype, places):
    """Ties, infinities, zeros of both signs, and the smallest numbers too."""
    random = torch.Generator().manual_seed(places)
    values = torch.randn(3, places, 40, generator=random).to(dtype)
    values[0] = values[0].round()
    values[1, ::2, :5] = -torch.inf
    values[1, ::3, 5:9] = torch.inf
    values[2, :, :7] *= torch.finfo(dtype).tiny
    values[2, ::2, 7:9] = -0.0
    order = falling_order(values)
    assert torch.equal(values.gather(1, order), values.sort(dim=1, descending=True).values)
    assert torch.equal(order.sort(dim=1).values,
                       torch.arange(places)[None, :, None].expand_as(order))


def test_what_is_given_stays_as_it_is():
    values = torch.randn(2, 5, 3, requires_grad=True)
    before = values.detach().clone()
    assert not falling_order(values).requires_grad
    assert torch.equal(values.detach(), before)


def test_no_number_is_lost():
    """What is no number stands first or last, and counts either way."""
    values = torch.tensor([1.0, torch.nan, -torch.inf, 2.0]).view(1, 4, 1)
    for turned in (values, torch.where(values.isnan(), -values, values)):
        assert turned.gather(1, falling_order(turned)).isnan().sum() == 1
