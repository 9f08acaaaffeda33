"""Maps scored on pictures of known objects, beside maps that look nowhere."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from itr_study.data.scenes.load import _tables, load
from itr_study.data.scenes.words import COLOURS
from itr_study.evaluation.pointing import (
    SHUFFLED,
    detected_boxes,
    detected_objects,
    pointing,
)
from itr_study.metrics.attention import rank_map, uniform_map

SCENES = load(train=1, dev=1, test=60)
SPLIT = SCENES.splits["test"]
MASK = SCENES.features["detector"](SPLIT).mask


def test_a_detector_region_shows_the_object_whose_box_has_its_place():
    shown = detected_objects(SCENES, SPLIT, MASK)
    boxes = [SCENES.boxes(image_id) for image_id in SPLIT.image_ids]
    assert shown.shape == (60, MASK.shape[1], max(map(len, boxes)))
    for image, region, place in np.ndindex(shown.shape):
        exists = place < len(boxes[image]) and MASK[image, region]
        assert shown[image, region, place] == (exists and region == place)
    assert not shown[:, -1].any()  # the whole picture
    missed = [i for i in range(60) if shown[i].sum() < len(boxes[i])]
    assert missed  # some objects are shown by no region


def test_the_region_of_an_object_is_made_of_its_features():
    """The colour that a region's features speak of is that of the object it is said to show."""
    shown = detected_objects(SCENES, SPLIT, MASK)
    features = SCENES.features["detector"](SPLIT).features
    colours = _tables()[1]
    right = []
    for image, region, place in np.argwhere(shown):
        name = SCENES.boxes(SPLIT.image_ids[image])[place].name.split()
        seen = COLOURS[int((colours @ features[image, region]).argmax())]
        right.append(seen in name)
    assert np.mean(right) > 0.9  # mistaken colours and noise are the rest


def test_regions_lie_where_they_are_drawn():
    for image_id in SPLIT.image_ids[:20]:
        things = SCENES.boxes(image_id)
        drawn = detected_boxes(SCENES, image_id, MASK.shape[1])
        assert drawn[:len(things)].tolist() == [list(box[1:]) for box in things]
        assert np.isnan(drawn[len(things):-1]).all() and drawn[-1].tolist() == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="objects and so at least"):
        detected_boxes(SCENES, SPLIT.image_ids[0], 2)


def test_heads_that_each_look_at_an_object_stand_above_both_baselines():
    shown = detected_objects(SCENES, SPLIT, MASK)
    seen = (shown.any(axis=1)).argmax(axis=-1)  # the first object that a region shows
    right = np.zeros((60, 2, MASK.shape[1]))
    first, last = shown.any(axis=2).argmax(axis=1), 4 - shown.any(axis=2)[:, 4::-1].argmax(axis=1)
    right[np.arange(60), 0, first] = right[np.arange(60), 1, last] = 1
    assert (first == seen).all()
    found = pointing({"attention": right, "rank map": rank_map(right, MASK[:, None])}, shown, MASK)
    assert list(found) == ["attention", "attention" + SHUFFLED, "rank map", "rank map" + SHUFFLED,
                           "uniform"]
    means = {name: (scores.focus.mean(), scores.coverage.mean())
             for name, scores in found.items()}
    assert means["attention"] == (1, 1)
    objects, regions = shown.sum(axis=(1, 2)), MASK.sum(axis=1)
    assert means["uniform"] == pytest.approx((np.mean(1 / regions),
                                              np.mean(1 / np.minimum(2, objects))))
    # a single region at random: on an object as often as there are objects among the regions
    assert means["attention" + SHUFFLED][0] == pytest.approx(np.mean(objects / regions), abs=0.03)
    assert means["uniform"][0] < means["rank map" + SHUFFLED][0] < means["rank map"][0] < 1


def test_collapsed_heads_cover_one_object():
    shown = detected_objects(SCENES, SPLIT, MASK)
    alike = np.repeat(rank_map(np.random.default_rng(0).random((60, 1, MASK.shape[1])),
                               MASK[:, None]), 3, axis=1)
    found = pointing({"attention": alike}, shown, MASK)
    assert found["attention"].coverage == pytest.approx(
        1 / np.minimum(3, shown.sum(axis=(1, 2))))
    assert found["attention" + SHUFFLED].coverage.mean() > found["attention"].coverage.mean() + 0.2


def test_the_seed_decides_and_images_without_an_object_are_left_out():
    shown = detected_objects(SCENES, SPLIT, MASK)
    maps = {"attention": torch.from_numpy(
        np.repeat(rank_map(np.random.default_rng(1).random((60, 1, MASK.shape[1])),
                           MASK[:, None]), 2, axis=1)).float()}
    first, again, other = (pointing(maps, shown, MASK, seed) for seed in (0, 0, 1))
    name = "attention" + SHUFFLED
    assert (first[name].focus == again[name].focus).all()
    assert (first[name].focus != other[name].focus).any()
    shown[5] = 0
    fewer = pointing(maps, shown, MASK)
    assert all(len(values) == 59 for scores in fewer.values() for values in scores)
    assert (fewer["attention"].focus == np.delete(first["attention"].focus, 5)).all()


def test_bad_input_is_refused():
    shown = detected_objects(SCENES, SPLIT, MASK)
    even = uniform_map(MASK)
    with pytest.raises(ValueError, match="no region of any image"):
        pointing({"attention": even}, 0 * shown, MASK)
    with pytest.raises(ValueError, match="weighs a region of image 0 that does not exist"):
        pointing({"attention": np.full(even.shape, 1 / even.shape[-1])}, shown, MASK)
    with pytest.raises(ValueError, match=r"mask \(n_images, R\)"):
        pointing({"attention": even[:, :, 1:]}, shown, MASK)
    with pytest.raises(ValueError, match="NaN is an error"):
        pointing({"attention": np.where(MASK[:, None], np.nan, 0)}, shown, MASK)
    with pytest.raises(ValueError, match=r"mask must be \(60, R\) with a region"):
        detected_objects(SCENES, SPLIT, MASK[:, :3])
    with pytest.raises(ValueError, match="nobody knows where the objects of scenes are"):
        detected_objects(replace(SCENES, boxes=None), SPLIT, MASK)
