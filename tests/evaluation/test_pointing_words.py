"""Whether words look at what they name: worked by hand, and against one name at a time."""

import doctest

import numpy as np
import pandas as pd
import pytest

from itr_study.data.base import DataError, Split
from itr_study.data.box_table import BoxTable, Detections, class_names, grid_boxes
from itr_study.data.vocabulary import tokenize
from itr_study.evaluation import pointing
from itr_study.evaluation.pointing import (
    CONTROLS,
    MEASURES,
    InBoxes,
    by_class,
    centre_map,
    targets,
    word_pointing,
)
from tests.oracles import boxes as oracle

DOG, PERSON, HOT_DOG = (class_names().index(name) for name in ("dog", "person", "hot dog"))
TEXTS = ("A dog and a man", "Two dogs", "The man eats a hot dog", "An empty beach")
SPLIT = Split("test", ("one", "two"), ("a", "b", "c", "d"), TEXTS, np.array([0, 0, 1, 1]))
# In "one" a dog fills the left half, in "two" a man the upper right quarter, and another, unsure,
# everything.
TABLE = BoxTable.join(("one", "two"), [
    Detections(np.array([DOG]), np.array([0.5]), np.array([[0, 0, 0.5, 1]])),
    Detections(np.array([PERSON, PERSON]), np.array([0.6, 0.25]),
               np.array([[0.5, 0, 1, 0.5], [0, 0, 1, 1]]))], "by hand")
CELLS = grid_boxes(2)


def even_maps() -> list[np.ndarray]:
    return [np.full((len(tokenize(text)), 4), 0.25) for text in TEXTS]


def test_names_count_where_their_own_image_has_a_sure_box():
    found = [(t.text, t.image, class_names()[t.named.number]) for t in targets(SPLIT, TABLE)]
    assert found == [(0, 0, "dog"), (1, 0, "dog"), (2, 1, "person")]
    sure = [len(t.boxes) for t in targets(SPLIT, TABLE, sure=0.2) if t.text == 2]
    assert sure == [2] and not list(targets(SPLIT, TABLE, sure=0.7))


def test_one_map_by_hand():
    """The word "dog" (number 1) has 0.4 + 0.1 on the left cells, "dogs" all on the upper right;
    "man" (1) 0.7 on its box, its peak there."""
    assert not doctest.testmod(pointing).failed
    assert not doctest.testmod(pointing).failed
    maps = even_maps()
    maps[0][1] = 0.4, 0.3, 0.1, 0.2
    maps[1][1] = 0, 1, 0, 0
    maps[2][1] = 0.1, 0.7, 0.1, 0.1
    rows = word_pointing(SPLIT, maps, CELLS, TABLE)
    assert rows["text"].tolist() == [0, 1, 2] and rows["class"].tolist() == ["dog", "dog", "person"]
    assert rows["mass"].tolist() == pytest.approx([0.5, 0, 0.7])
    assert rows["uniform"].tolist() == pytest.approx([0.5, 0.5, 0.25])
    assert rows["area"].tolist() == pytest.approx([0.5, 0.5, 0.25])
    assert rows["centre"].tolist() == pytest.approx([0.5, 0.5, 0.25])  # four cells are alike
    # The rest: four words of 0.5 on the left half; "two", even; five even words in the quarter.
    assert rows["rest"].tolist() == pytest.approx([0.5, 0.5, 0.25])
    assert rows["hit"].tolist() == [1, 0, 1]
    assert rows["centre_hit"].tolist() == [1, 1, 1]  # the middle lies on the edge of both boxes


def test_the_map_of_two_words_is_their_mean():
    table = BoxTable.join(("one", "two"), [Detections(*(v[:0] for v in TABLE.found)), Detections(
        np.array([HOT_DOG]), np.array([0.5]), np.array([[0, 0, 0.5, 0.5]]))], "")
    maps = even_maps()
    maps[2][4:6] = [1, 0, 0, 0], [0.5, 0.5, 0, 0]
    rows = word_pointing(SPLIT, maps, CELLS, table)
    assert rows["class"].tolist() == ["hot dog"] and rows["mass"][0] == pytest.approx(0.75)


def test_the_rest_of_the_sentence_is_all_words_but_the_name():
    """Of "A dog and a man" one other word of four has all its weight on the dog's half, and two
    have none; "Dog" is a whole sentence."""
    maps = even_maps()
    maps[0][:] = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [0.25] * 4, [0, 0, 0, 1]]
    rows = word_pointing(SPLIT, maps, CELLS, TABLE)
    assert rows["mass"][0] == 0 and rows["rest"][0] == pytest.approx((1 + 0 + 0.5 + 0) / 4)
    alone = Split("test", ("one",), ("a",), ("Dog",), np.array([0]))
    rows = word_pointing(alone, [np.array([[0.5, 0.25, 0.25, 0]])], CELLS, TABLE)
    assert rows["mass"][0] == 0.75 and np.isnan(rows["rest"][0])


def test_names_of_other_classes_are_held_against_each_other():
    """In "one" the man has the upper right quarter, too. "dog" has 0.4 + 0.1 on the dog's half and
    0.3 on the man's quarter, "man" 0.2 + 0.1 and 0.6. Beside "dogs" nothing else is named, and
    another person of the same text is no other class."""
    both = BoxTable.join(("one", "two"), [
        Detections(np.array([DOG, PERSON]), np.array([0.5, 0.6]),
                   np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 0.5]])),
        Detections(*(v[:0] for v in TABLE.found))], "by hand")
    texts = ("A dog and a man and a boy", "Two dogs")
    split = Split("test", ("one",), ("a", "b"), texts, np.array([0, 0]))
    maps = [np.full((len(tokenize(text)), 4), 0.25) for text in texts]
    maps[0][1], maps[0][4] = [0.4, 0.3, 0.1, 0.2], [0.2, 0.6, 0.1, 0.1]
    maps[0][7] = 0, 0.4, 0, 0.6
    rows = word_pointing(split, maps, CELLS, both)
    assert rows["class"].tolist() == ["dog", "person", "person", "dog"]
    assert rows["others"].tolist() == pytest.approx([(0.3 + 0) / 2, 0.3, 0.3, np.nan], nan_ok=True)
    assert rows["mass_beside_others"].tolist() == pytest.approx([0.5, 0.6, 0.4, np.nan],
                                                                nan_ok=True)
    assert rows["mass"].tolist() == pytest.approx([0.5, 0.6, 0.4, 0.5])


def test_the_rest_is_beside_a_region_that_lies_nowhere():
    places = np.array([[0, 0, 0.5, 1], [np.nan] * 4])
    maps = [np.array([[0.25, 0.75], [1, 0], [0.25, 0.75], [0.25, 0.75], [0.25, 0.75]]),
            np.array([[0.5, 0.5]] * 2), np.array([[0.5, 0.5]] * 6), np.array([[0.5, 0.5]] * 3)]
    rows = word_pointing(SPLIT, maps, places, TABLE)
    assert rows["mass"][0] == 1 and rows["rest"][0] == 0.25


def test_the_centre_s_score_by_hand():
    """Of nine cells the middle one is the box; the others lie a third, or sqrt(2) thirds, away."""
    cells = grid_boxes(3)
    found = InBoxes(cells, cells[4:5]).scored(np.full(9, 1 / 9))
    near, far = (np.exp(-away / 9 / (2 * 0.25**2)) for away in (1, 2))
    assert found[MEASURES.index("centre")] == pytest.approx(1 / (1 + 4 * near + 4 * far))


def test_the_centre_s_map_prefers_the_middle_and_large_places():
    cells = centre_map(grid_boxes(5))
    assert cells.sum() == pytest.approx(1) and cells.argmax() == 12
    assert cells[12] / cells[0] == pytest.approx(np.exp(2 * 0.4 ** 2 / (2 * 0.25 ** 2)))
    np.testing.assert_allclose(cells, cells[::-1])
    whole, half = centre_map(np.array([[0, 0, 1, 1], [0.25, 0, 0.75, 1]]))
    assert whole == pytest.approx(2 * half)


def test_regions_that_lie_apart_are_scored_by_what_they_cover():
    """Against points of a raster; here uniform and area differ."""
    rng = np.random.default_rng(0)
    corner = rng.integers(0, 10, (8, 2))
    places = np.concatenate([corner, corner + rng.integers(1, 11, (8, 2))], axis=1) / 20
    boxes = np.array([[0.1, 0.1, 0.4, 0.5], [0.3, 0.2, 0.8, 0.6]])
    weights = rng.dirichlet(np.ones(8))
    inside = [oracle.covered(place, boxes, 20) for place in places]
    found = dict(zip(MEASURES, InBoxes(places, boxes).scored(weights), strict=True))
    assert found["mass"] == pytest.approx(sum(w * i for w, i in zip(weights, inside, strict=True)))
    assert found["uniform"] == pytest.approx(sum(inside) / 8)
    assert found["area"] == pytest.approx(oracle.covered((0, 0, 1, 1), boxes, 20))
    assert abs(found["uniform"] - found["area"]) > 0.02
    x, y = places[weights.argmax()].reshape(2, 2).mean(axis=0)
    assert found["hit"] == any(b[0] <= x <= b[2] and b[1] <= y <= b[3] for b in boxes)


def test_what_is_looked_at_is_held_against_the_boxes_by_pixels():
    """Cells of 0.5, 0.3, 0.2 and 0: from half of the largest on two are seen, one is the box."""
    weights = np.array([0.5, 0.3, 0.2, 0])
    assert InBoxes(CELLS, CELLS[:1]).overlap(weights) == 0.5
    assert InBoxes(CELLS, CELLS[2:3]).overlap(weights) == 0
    assert InBoxes(CELLS, CELLS[1:2]).overlap(np.full(4, 0.25)) == 0.25
    names = dict(zip(MEASURES, InBoxes(CELLS, CELLS[:1]).scored(weights), strict=True))
    assert (names["iou"], names["uniform_iou"], names["centre_iou"]) == (0.5, 0.25, 0.25)


def test_an_even_map_is_held_to_look_at_what_lies_over_the_whole_picture():
    """So that a map which hardly differs from it is no better: three regions over the whole one."""
    places = np.concatenate([CELLS[:3], [[0, 0, 1, 1]]])
    for weights in ([0.25] * 4, [0.251, 0.25, 0.25, 0.249], [1 / 7] * 3 + [1 / 7]):
        assert InBoxes(places, CELLS[:1]).overlap(np.array(weights)) == pytest.approx(1 / 3)
    assert InBoxes(places, CELLS[:1]).overlap(np.array([0.1, 0.1, 0.1, 0.7])) == 0.25  # everywhere


def test_two_boxes_of_a_class_are_one_area():
    both = np.array([[0, 0, 0.5, 1], [0.25, 0, 0.75, 1]])
    places = np.array([[0, 0, 0.75, 1], [0, 0, 1, 1]])
    assert InBoxes(places, both).overlap(np.array([1.0, 0])) == 1


def test_what_lies_nowhere_is_beside_every_box():
    """Half of the weight on a region of which nobody knows where it lies."""
    places = np.concatenate([CELLS[:1], np.full((1, 4), np.nan)])
    held = InBoxes(places, CELLS[:1])
    found = dict(zip(MEASURES, held.scored(np.array([0.4, 0.6])), strict=True))
    assert found["mass"] == 0.4 and found["uniform"] == 0.5 and found["centre"] == 1
    assert found["hit"] == 0 and found["uniform_hit"] == 0.5 and found["iou"] == 1
    assert held.overlap(np.array([0.0, 1.0])) == 0
    with pytest.raises(ValueError, match="nobody knows where any region"):
        InBoxes(places[1:], CELLS[:1]).scored(np.array([1.0]))


def test_each_image_has_its_own_places():
    halves = np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1]])
    places = np.stack([halves, halves[::-1]])
    maps = [np.tile([0.9, 0.1], (len(tokenize(text)), 1)) for text in TEXTS]
    rows = word_pointing(SPLIT, maps, places, TABLE)
    # the dog is the left half; the man is half of the right one, which stands first in "two"
    assert rows["mass"].tolist() == pytest.approx([0.9, 0.9, 0.45])
    maps[2] = np.tile([0.1, 0.6, 0.2, 0.1], (len(maps[2]), 1))  # an image may have more regions
    rows = word_pointing(SPLIT, maps, [halves, CELLS], TABLE)
    assert rows["mass"].tolist() == pytest.approx([0.9, 0.9, 0.6])


def test_the_same_box_in_two_images_is_held_against_the_regions_of_each():
    found = Detections(np.array([DOG]), np.array([0.5]), np.array([[0, 0, 0.5, 1]]))
    split = Split("test", ("one", "two"), ("a", "b"), ("A dog", "A dog"), np.array([0, 1]))
    halves = np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1]])
    rows = word_pointing(split, [np.tile([0.9, 0.1], (2, 1))] * 2, [halves, halves[::-1]],
                         BoxTable.join(("one", "two"), [found] * 2, "by hand"))
    assert rows["mass"].tolist() == pytest.approx([0.9, 0.1])


def test_of_equal_weights_the_mean_counts():
    """Or the first region of a detector, the surest, would win for a map that looks nowhere."""
    found = dict(zip(MEASURES, InBoxes(CELLS, CELLS[:1]).scored(np.full(4, 0.25)), strict=True))
    assert found["hit"] == found["uniform_hit"] == 0.25
    one = dict(zip(MEASURES, InBoxes(CELLS, CELLS[:1]).scored(np.array([0.4, 0.4, 0.2, 0])),
                   strict=True))
    assert one["hit"] == 0.5 and one["uniform_hit"] == 0.25


def test_means_by_class():
    rows = pd.DataFrame({"text": [0, 1, 2], "image": [0, 0, 1],
                         "class": ["dog", "dog", "person"]}
                        | {name: [0.2, 0.4, 0.9] for name in (*CONTROLS, *MEASURES)})
    table = by_class(rows)
    assert table.index.tolist() == ["dog", "person", "all names", "mean of classes"]
    assert table["mass"].tolist() == pytest.approx([0.3, 0.9, 0.5, 0.6])
    assert table["names"].tolist() == [2, 1, 3, 3] and table["images"].tolist() == [1, 1, 2, 2]


def test_a_model_that_looks_well_stands_above_all_that_look_nowhere():
    """Weights by how much of a cell lies in the box, with noise."""
    rng = np.random.default_rng(1)
    cells, maps = grid_boxes(7), [np.full((len(tokenize(t)), 49), 1 / 49) for t in TEXTS]
    for target in targets(SPLIT, TABLE):
        inside = np.array([oracle.common(cell, target.boxes[0]) for cell in cells])
        weights = 0.002 * rng.random(49) + inside
        maps[target.text][target.named.start] = weights / weights.sum()
    rows = word_pointing(SPLIT, maps, cells, TABLE)
    assert (rows["mass"] > 0.7).all() and (rows["hit"] == 1).all()
    assert (rows["mass"] > rows[["uniform", "centre", "area"]].max(axis=1) + 0.3).all()


@pytest.mark.parametrize("change, message", [
    (lambda maps: maps.pop(), "one for each text of split test: 4; got 3"),
    (lambda maps: maps.__setitem__(0, maps[0][:, :3]), r"text 0 must be \(words, 4\)"),
    (lambda maps: maps.__setitem__(1, maps[1][:1]), "at least 2 words; got"),
    (lambda maps: maps.__setitem__(1, 2 * maps[1]), "text 1 those of word 1 of 2 add up to 2, the"),
    (lambda maps: maps.__setitem__(2, np.nan * maps[2]), "text 2 those of word 1 of 6 add up"),
    (lambda maps: maps.__setitem__(0, np.tile([1.5, -0.5, 0, 0], (5, 1))), "the least is -0.5"),
    (lambda maps: maps[0].__setitem__(4, 1), "text 0 those of word 5 of 5 add up to 4"),
])
def test_maps_that_are_none_are_refused(change, message):
    maps = even_maps()
    change(maps)
    with pytest.raises(ValueError, match=message):
        word_pointing(SPLIT, maps, CELLS, TABLE)


def test_other_bad_input_is_refused():
    with pytest.raises(ValueError, match=r"for each of 2 images; got 3 of shapes \[\(4, 4\)\]"):
        word_pointing(SPLIT, even_maps(), np.stack([CELLS] * 3), TABLE)
    with pytest.raises(ValueError, match=r"got 2 of shapes \[\(4, 3\), \(4, 4\)\]"):
        word_pointing(SPLIT, even_maps(), [CELLS, CELLS[:, :3]], TABLE)
    with pytest.raises(ValueError, match="names a class of which its image has a box of score 0.9"):
        word_pointing(SPLIT, even_maps(), CELLS, TABLE, sure=0.9)
    with pytest.raises(ValueError, match="sure must be"):
        word_pointing(SPLIT, even_maps(), CELLS, TABLE, sure=2)
    with pytest.raises(ValueError, match="place 0 has no area"):
        word_pointing(SPLIT, even_maps(), CELLS[:, [2, 1, 0, 3]], TABLE)
    lost = BoxTable.join(("one",), [TABLE.of("one")], "")
    with pytest.raises(DataError, match="no boxes are kept of image 'two'"):
        word_pointing(SPLIT, even_maps(), CELLS, lost)
