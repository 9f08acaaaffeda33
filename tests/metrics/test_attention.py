"""Rank maps, and what of a map falls on which object: by hand, and against loops."""

import doctest
import importlib

import numpy as np
import pytest
import torch

from itr_study.metrics.attention import (
    coverage,
    focus,
    rank_map,
    region_cosines,
    shuffled_map,
    uniform_map,
)
from tests.oracles import attention as oracle

RNG = np.random.default_rng
HAND = [  # heads (K, R), shown (R, O), focus, coverage, worked by hand
    ([[1, 0, 0], [0, 1, 0]], [[1, 0], [0, 1], [0, 0]], 1.0, 1.0),  # a head an object
    ([[1, 0, 0], [1, 0, 0]], [[1, 0], [0, 1], [0, 0]], 1.0, 0.5),  # collapsed
    ([[0, 0, 1], [0, 0.2, 0.8]], [[1, 0], [0, 1], [0, 0]], 0.1, 0.5),  # beside; hardly on one
    ([[0, 0, 1]], [[1, 0], [0, 1], [0, 0]], 0.0, 0.0),  # the only head beside all objects
    ([[0.4, 0.4, 0.2]], [[1, 0], [1, 0], [0, 1]], 0.8, 1.0),  # one object in two regions
    ([[0.5, 0.5]] * 5, [[0.5, 0.1], [0.5, 0.3]], 0.5, 0.5),  # cells half covered; K above R
    ([[1.0]] * 2, [[0.25]], 0.25, 1.0),  # one region, one object
    ([[0, 1], [1, 0]], [[0, 1, 0], [0, 0, 0]], 0.5, 1.0),  # objects that the image lacks
]


def example(seed, images=9, heads=3, regions=6, objects=4):
    """Maps, objects, and a mask that pads some regions and leaves one to image 0."""
    rng = RNG(seed)
    mask = np.arange(regions) < rng.integers(2, regions + 1, images)[:, None]
    mask[0] = np.arange(regions) == 1
    maps = rng.random((images, heads, regions)) ** 4 * mask[:, None]
    shown = rng.random((images, regions, objects)) * (rng.random((images, 1, objects)) < 0.7)
    shown[:, :, 0] = 0.5
    return maps / maps.sum(axis=-1, keepdims=True), shown * mask[..., None], mask


def test_examples_in_docstrings():
    result = doctest.testmod(importlib.import_module("itr_study.metrics.attention"))
    assert result.attempted == 11 and not result.failed


@pytest.mark.parametrize("case", HAND)
def test_hand_worked_values(case):
    heads, shown, *expected = case
    maps, objects = np.array([heads], dtype=float), np.array([shown], dtype=float)
    assert [focus(maps, objects)[0], coverage(maps, objects)[0]] == pytest.approx(expected)
    assert [oracle.focus(heads, shown), oracle.coverage(heads, shown)] == pytest.approx(expected)


def test_equals_the_slow_oracle():
    for seed in range(10):
        maps, shown, _ = example(seed)
        for values in (maps, torch.from_numpy(maps)):
            for score, slow in ((focus, oracle.focus), (coverage, oracle.coverage)):
                assert score(values, shown) == pytest.approx(
                    [slow(*image) for image in zip(maps.tolist(), shown.tolist(), strict=True)])


@pytest.mark.parametrize("tied", [False, True])
def test_the_rank_map_equals_the_slow_oracle(tied):
    for seed in range(10):
        maps, _, mask = example(seed)
        cosines = np.round(maps, 1) if tied else maps - 0.3
        found = rank_map(cosines, mask[:, None])
        assert found.sum(axis=-1) == pytest.approx(np.ones(maps.shape[:2]))
        for image, head in np.ndindex(maps.shape[:2]):
            assert found[image, head] == pytest.approx(
                np.array(oracle.rank_weights(cosines[image, head].tolist(), mask[image].tolist())))


def test_the_rank_map_by_hand_one_region_all_alike_and_what_padding_holds():
    four = np.array([[-0.5, 0.2, 0.9, 0.1]])
    assert rank_map(four) * 30 == pytest.approx(np.array([[1, 9, 16, 4]]))
    assert rank_map(np.array([0.3])).tolist() == [1.0]
    assert rank_map(np.full(7, 0.2)) == pytest.approx(np.full(7, 1 / 7))
    there = np.array([[True, False, True, True]])
    for padding in (np.nan, 2.0, -np.inf):
        four[0, 1] = padding
        assert rank_map(four, there) * 14 == pytest.approx(np.array([[1, 0, 9, 4]]))
    tensors = torch.from_numpy(four), torch.from_numpy(there)
    assert (rank_map(*tensors) == rank_map(four, there)).all()
    assert rank_map(np.array([-np.inf, 0.5, 0.1]), np.array([True, True, False])) * 5 \
        == pytest.approx([1, 4, 0])


def test_the_order_and_the_scale_of_cosines_change_nothing():
    cosines = RNG(1).normal(size=(4, 3, 8))
    order = RNG(2).permutation(8)
    assert (rank_map(cosines[..., order]) == rank_map(cosines)[..., order]).all()
    assert (rank_map(np.tanh(5 * cosines)) == rank_map(cosines)).all()


def test_cosines_of_heads_and_regions():
    vectors, regions = RNG(3).normal(size=(4, 2, 5)), RNG(4).normal(size=(4, 3, 5))
    regions[1, 2] = 0  # padded
    found = region_cosines(vectors, torch.from_numpy(regions))
    for image, head, place in np.ndindex(found.shape):
        a, b = vectors[image, head], regions[image, place]
        length = np.linalg.norm(a) * np.linalg.norm(b)
        assert found[image, head, place] == pytest.approx(a @ b / length if length else 0)
    assert region_cosines(regions, regions)[0].diagonal() == pytest.approx(1)


def test_a_shuffled_map_has_the_same_weights_on_regions_that_exist_another_for_each_head():
    maps, _, mask = example(5, images=400)
    dealt = shuffled_map(maps, mask, RNG(0))
    assert (np.sort(dealt) == np.sort(maps)).all()
    assert (dealt * ~mask[:, None] == 0).all()
    first = np.zeros((400, 3, 6))
    first[:, :, 0] = 1  # all heads alike, all regions there
    dealt = shuffled_map(first, np.ones((400, 6), bool), RNG(1))
    assert dealt.mean(axis=(0, 1)) == pytest.approx(np.full(6, 1 / 6), abs=0.04)
    alike = (dealt[:, 0] == dealt[:, 1]).all(axis=-1).mean()
    assert alike == pytest.approx(1 / 6, abs=0.06)


def test_the_uniform_map():
    assert uniform_map(np.array([[True, False, True]])).tolist() == [[[0.5, 0, 0.5]]]


@pytest.mark.parametrize("score", [focus, coverage])
def test_padding_and_the_order_of_heads_regions_and_objects_change_nothing(score):
    maps, shown, _ = example(6)
    expected = score(maps, shown)
    wider = np.pad(maps, ((0, 0), (0, 0), (0, 3))), np.pad(shown, ((0, 0), (0, 3), (0, 2)))
    assert score(*wider) == pytest.approx(expected)
    heads, places, objects = (RNG(0).permutation(n) for n in (3, 6, 4))
    assert score(maps[:, heads][:, :, places], shown[:, places][:, :, objects]) == pytest.approx(
        expected)


@pytest.mark.parametrize("score", [focus, coverage])
def test_bad_maps_are_refused(score):
    maps, shown, _ = example(7)
    for value, said in ((np.nan, "give nan"), (-1.0, "smallest -1"), (9.0, "add up to 1")):
        bad = maps.copy()
        bad[3, 2, 0] = value
        with pytest.raises(ValueError, match=f"image 3, head 2.*{said}|{said}.*image 3, head 2"):
            score(bad, shown)
    for wrong in (2.0, -0.1, np.nan):
        bad = shown.copy()
        bad[1, 0, 0] = wrong
        with pytest.raises(ValueError, match=r"shown must lie in \[0, 1\]"):
            score(maps, bad)
    with pytest.raises(ValueError, match=r"got \(9, 3, 6\) and \(9, 5, 4\)"):
        score(maps, shown[:, :5])
    with pytest.raises(ValueError, match="maps must be"):
        score(maps[:0], shown[:0])
    shown[4] = 0
    with pytest.raises(ValueError, match="no region of image 4 shows an object, and of 1 in all"):
        score(maps, shown)


def test_bad_cosines_are_refused():
    cosines = RNG(0).normal(size=(4, 3, 5))
    mask = np.ones((4, 1, 5), bool)
    with pytest.raises(ValueError, match=r"mask leaves no region at \[2, 0\]"):
        rank_map(cosines, mask & (np.arange(4) != 2)[:, None, None])
    with pytest.raises(ValueError, match=r"mask must be \(4, 3, 5\), or broadcast to it"):
        rank_map(cosines, mask[..., :4])
    with pytest.raises(ValueError, match="mask must be bool"):
        rank_map(cosines, mask.astype(float))
    with pytest.raises(ValueError, match="at least one"):
        rank_map(cosines[..., :0])
    cosines[1, 2, 3] = np.nan
    with pytest.raises(ValueError, match=r"found one at \(1, 2, 3\)"):
        rank_map(cosines)
    with pytest.raises(ValueError, match="regions must be finite .* in image 1"):
        region_cosines(np.ones((4, 2, 5)), cosines)
    with pytest.raises(ValueError, match=r"got \(4, 2, 6\) and \(4, 3, 5\)"):
        region_cosines(np.ones((4, 2, 6)), cosines)
