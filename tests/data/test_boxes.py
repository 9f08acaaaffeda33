"""Boxes in a picture: overlap, union, suppression, against one box at a time."""

import doctest

import numpy as np
import pytest

from itr_study.data import box_table as module
from itr_study.data.box_table import areas, covered, grid_boxes, overlaps, separate, shared
from tests.oracles import boxes as oracle

FINE = 20  # edges of random boxes are multiples of 1 / FINE


def some_boxes(seed: int, count: int) -> np.ndarray:
    """Boxes with an area, whose edges lie on a raster."""
    rng = np.random.default_rng(seed)
    corners = [np.sort(rng.choice(FINE + 1, 2, replace=False)) for _ in range(2 * count)]
    left, right = np.array(corners[:count]).T
    top, bottom = np.array(corners[count:]).T
    return np.stack([left, top, right, bottom], axis=1) / FINE


def test_worked_examples():
    assert not doctest.testmod(module).failed
    assert areas(np.array([[0.2, 0, 0.7, 0.5], [0.7, 0, 0.2, 1]])) == pytest.approx([0.25, 0])
    assert grid_boxes(3).shape == (9, 4) and areas(grid_boxes(3)).sum() == pytest.approx(1)


def test_boxes_that_touch_have_nothing_in_common():
    halves = np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1]])
    assert shared(halves, halves).tolist() == [[0.5, 0], [0, 0.5]]
    assert overlaps(halves, halves).tolist() == [[1, 0], [0, 1]]
    empty = np.array([[0.5, 0.5, 0.5, 0.5]])
    assert overlaps(empty, empty).tolist() == [[0]]  # not NaN
    assert overlaps(np.array([[0, 0, 1, 1]]), np.array([[0, 0, 1, 1]])).tolist() == [[1]]  # whole


def test_overlaps_are_those_of_the_oracle():
    some, others = some_boxes(0, 30), some_boxes(1, 20)
    expected = [[oracle.iou(a, b) for b in others] for a in some]
    np.testing.assert_allclose(overlaps(some, others), expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_covered_shares_are_those_of_a_raster(seed):
    places, boxes = some_boxes(seed, 12), some_boxes(seed + 100, 1 + seed)
    expected = [oracle.covered(place, boxes, FINE) for place in places]
    np.testing.assert_allclose(covered(places, boxes), expected, atol=1e-12)


def test_a_box_given_twice_covers_once_and_no_box_covers_nothing():
    boxes = some_boxes(3, 4)
    cells = grid_boxes(7)
    np.testing.assert_allclose(covered(cells, boxes), covered(cells, np.tile(boxes, (2, 1))))
    assert covered(cells, np.zeros((0, 4))).tolist() == [0] * 49
    whole = covered(np.array([[0, 0, 1, 1]]), boxes)
    assert whole == pytest.approx(covered(cells, boxes).mean())
    with pytest.raises(ValueError, match="place 1 has no area"):
        covered(np.array([[0, 0, 1, 1], [0.5, 0, 0.5, 1]]), boxes)


def test_suppression_by_hand():
    """Boxes 0 and 1 overlap by 0.8, 1 and 2 by 2/3, 0 and 2 by 0.5."""
    boxes = np.array([[0, 0, 0.8, 1], [0, 0, 1, 1], [0.2, 0, 0.8, 1]]) * [0.5, 1, 0.5, 1]
    found = overlaps(boxes, boxes)
    assert found[0, 1] == pytest.approx(0.8) and found[1, 2] == pytest.approx(0.6)
    scores = np.array([0.5, 0.9, 0.4])
    assert separate(boxes, scores, 0.7).tolist() == [1, 2]
    assert separate(boxes, scores, 0.5).tolist() == [1]
    assert separate(boxes, scores, 0.85).tolist() == [1, 0, 2]
    assert separate(boxes, scores, 0.5, np.array([1, 0, 1])).tolist() == [1, 0]
    assert separate(np.zeros((0, 4)), np.zeros(0), 0.5).tolist() == []


@pytest.mark.parametrize("overlap", [0.1, 0.3, 0.5])
def test_suppression_is_that_of_the_oracle(overlap):
    rng = np.random.default_rng(5)
    boxes, classes = some_boxes(5, 60), rng.integers(0, 3, 60)
    scores = rng.integers(1, 10, 60) / 10  # many are equal
    assert separate(boxes, scores, overlap, classes).tolist() == oracle.separate(
        boxes, scores, overlap, classes)
