"""The generated data set as its users see it: splits, relevance, features, boxes, options."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from itr_study.data.caption_noise import expected_pairs
from itr_study.data.scenes.captions import MOST
from itr_study.data.scenes.load import REGIONS, SIZE, Box, _box, load
from itr_study.data.scenes.words import COLOURS, SHAPES, TEXTURES
from itr_study.data.scenes.words import SIZES as SIZES_OF_THINGS
from itr_study.data.scenes.world import Thing

SIZES = {"train": 60, "dev": 12, "test": 24}


@pytest.fixture(scope="module")
def data():
    return load(**SIZES)


def test_counts_and_ids(data):
    splits = data.splits.values()
    assert {name: len(split.image_ids) for name, split in data.splits.items()} == SIZES
    assert all(len(split.texts) == len(split.text_ids) == 5 * len(split.image_ids)
               for split in splits)
    images = [i for split in splits for i in split.image_ids]
    texts = [t for split in splits for t in split.text_ids]
    assert len(set(images)) == len(images) == 96 and len(set(texts)) == len(texts) == 480
    assert data.splits["train"].image_ids[3] == "scene-000003"
    assert data.splits["test"].text_ids[7] == "scene-200001#2"
    assert data.report.counts == {"images": 96, "texts": 480}


def test_image_of_text_agrees_with_the_ids(data):
    split = data.splits["dev"]
    assert split.image_of_text.dtype == np.int64
    for text_id, image in zip(split.text_ids, split.image_of_text, strict=True):
        assert text_id.split("#")[0] == split.image_ids[image]


def test_the_same_options_give_the_same_data(data):
    again = load(**SIZES)
    assert again.fingerprint == data.fingerprint
    for name, split in data.splits.items():
        assert again.splits[name].texts == split.texts
        for ours, theirs in zip(data.features["detector"](split),
                                again.features["detector"](split), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    image_id = data.splits["test"].image_ids[0]
    assert again.open_image(image_id).tobytes() == data.open_image(image_id).tobytes()


@pytest.mark.parametrize("options", [
    {"seed": 1}, {"train": 61}, {"dev": 13}, {"test": 25}, {"texts_per_image": 6},
    {"vagueness": 0}, {"vagueness": 3}])
def test_every_option_changes_the_fingerprint(data, options):
    assert load(**(SIZES | options)).fingerprint != data.fingerprint


def test_a_larger_split_begins_with_the_smaller_one(data):
    larger = load(train=61, dev=12, test=30, texts_per_image=6)
    small, large = data.splits["test"], larger.splits["test"]
    assert large.image_ids[:24] == small.image_ids
    assert large.texts[::6][:24] == small.texts[::5]
    np.testing.assert_array_equal(larger.features["detector"](large).features[:24],
                                  data.features["detector"](small).features)


def test_the_seed_changes_pictures(data):
    other = load(**SIZES, seed=1).splits["train"]
    same = sum(a == b for a, b in zip(other.texts, data.splits["train"].texts, strict=True))
    assert same < 0.05 * len(other.texts)


def test_these_texts_never_change(data):
    """The data is the same on every machine: a change of it must come with a new VERSION."""
    assert data.fingerprint == (
        "2fdb45aeba0f3c8a4940c1b8c5499b0d"
        "544b5c6f108aef651867dbcd00e535ab")


def test_vagueness_changes_captions_and_nothing_else(data):
    """The same pictures at all levels, so that a difference is one of what is said of them."""
    vague, split = load(**SIZES, vagueness=4), data.splits["train"]
    assert vague.splits["train"].text_ids == split.text_ids
    assert vague.splits["train"].texts != split.texts
    assert load(**SIZES, vagueness=2).fingerprint == data.fingerprint
    np.testing.assert_array_equal(vague.features["detector"](split).features,
                                  data.features["detector"](split).features)
    assert vague.open_image("scene-100004").tobytes() == data.open_image("scene-100004").tobytes()


def test_vaguer_captions_are_true_of_more_pictures():
    """The knob moves the share of false negatives, far, and in one direction."""
    shares, words = [], []
    for level in range(5):
        split = (vague := load(train=120, dev=1, test=1, vagueness=level)).splits["train"]
        shares.append(expected_pairs(vague.relevance(split), split.image_of_text, 128).share)
        words.append(np.mean([len(text.split()) for text in split.texts]))
    assert all(2 * fewer < more for fewer, more in pairwise(shares)), shares
    assert all(short < long for long, short in pairwise(words)), words
    assert shares[0] < 0.002 and shares[-1] > 0.15


def test_relevance_is_1_for_matches_only(data):
    split = data.splits["train"]
    relevance = data.relevance(split)
    match = split.image_of_text == np.arange(len(split.image_ids))[:, None]
    assert relevance.shape == match.shape and relevance.dtype == np.float32
    assert (relevance[match] == 1).all()
    assert relevance[~match].max() <= MOST and relevance.min() >= 0
    assert (relevance[~match] >= np.float32(MOST)).any()  # captions that fit by accident
    assert 0.2 < relevance[~match].mean() < 0.6


def test_relevance_of_a_part_of_a_split(data):
    split = data.splits["test"]
    part = replace(split, image_ids=split.image_ids[3:5], text_ids=split.text_ids[15:25],
                   texts=split.texts[15:25], image_of_text=split.image_of_text[15:25] - 3)
    np.testing.assert_array_equal(data.relevance(part), data.relevance(split)[3:5, 15:25])
    np.testing.assert_array_equal(data.features["detector"](part).mask,
                                  data.features["detector"](split).mask[3:5])


def test_detector_features(data):
    features, mask = data.features["detector"](data.splits["train"])
    assert features.shape == (60, REGIONS, SIZE) and features.dtype == np.float32
    assert mask.shape == (60, REGIONS) and mask.dtype == bool
    assert np.isfinite(features).all() and mask[:, -1].all()
    assert (features[~mask] == 0).all() and (features[mask].std(axis=1) > 0.5).all()
    n_things = [len(data.boxes(i)) for i in data.splits["train"].image_ids]
    assert all(not row[n:5].any() for row, n in zip(mask, n_things, strict=True))


def test_boxes_are_named_and_inside_the_picture(data):
    for image_id in data.splits["train"].image_ids:
        boxes = data.boxes(image_id)
        assert 2 <= len(boxes) <= 5
        for box in boxes:
            assert isinstance(box, Box) and box.name.split()[-1] in SHAPES
            assert 0 <= box.x0 < box.x1 <= 1 and 0 <= box.y0 < box.y1 <= 1


def test_a_box_worked_by_hand():
    fish = Thing(SHAPES.index("fish"), COLOURS.index("blue"), SIZES_OF_THINGS.index("small"),
                 TEXTURES.index("plain"), 300, 600, 100)  # 100 to each side, 64 up and down
    assert _box(fish) == ("small blue fish", 0.2, 0.536, 0.4, 0.664)


def test_unknown_pictures_are_refused(data):
    for use in (data.open_image, data.boxes):
        with pytest.raises(ValueError, match="no picture 'scene-000060'.*load more"):
            use("scene-000060")


@pytest.mark.parametrize("options, message", [
    ({"train": 0}, "train must be an integer >= 1 and <= 100000, got 0"),
    ({"test": -3}, "test must be"), ({"dev": 2.5}, "dev must be an integer"),
    ({"train": 100_001}, "train must be"), ({"texts_per_image": 0}, "texts_per_image must be"),
    ({"texts_per_image": 21}, ">= 1 and <= 20, got 21"), ({"seed": -1}, "seed must be"),
    ({"seed": "x"}, "seed must be an integer"), ({"dev": True}, "dev must be"),
    ({"vagueness": 5}, "vagueness must be an integer >= 0 and <= 4, got 5"),
    ({"vagueness": 1.5}, "vagueness must be an integer")])
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        load(**options)
