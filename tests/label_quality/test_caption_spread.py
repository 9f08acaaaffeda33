"""The rule by which bcls chooses alpha: both readings, on every set of captions at hand."""

import doctest

import numpy as np
import pytest

import itr_study.lab.label_quality.captions as module
from itr_study.data import load_dataset
from itr_study.data.base import DataError
from itr_study.lab.label_quality.captions import (
    caption_spread,
    pairs_within,
    rating_shares,
    similarities,
    spread_table,
)
from itr_study.relevance import RELEVANCE
from tests.label_quality.judged_sets import OWNER, VECTORS, judged_split


def test_examples():
    failed, tried = doctest.testmod(module)
    assert tried and not failed


def test_every_pair_of_texts_of_an_image_is_taken_once():
    owner = np.array([2, 0, 2, 1, 2, 0])
    one, two = pairs_within(owner)
    assert (owner[one] == owner[two]).all() and (one != two).all()
    assert len({frozenset(pair) for pair in zip(one, two, strict=True)}) == len(one) == 3 + 1


def test_captions_that_differ_alike_in_every_image_have_equal_readings_only_if_means_agree():
    image = np.repeat([0, 1], 3)
    alike = np.array([0.1, 0.2, 0.3] * 2)
    told = caption_spread(alike, image)
    assert told["pooled"] == pytest.approx(told["per_image"])
    moved = caption_spread(alike + 0.5 * image, image)
    assert moved["per_image"] == pytest.approx(told["per_image"])
    assert moved["pooled"] > told["pooled"] + 0.1


def test_images_with_one_caption_each_are_refused():
    with pytest.raises(ValueError, match="two captions"):
        caption_spread(np.zeros(0), np.zeros(0, int))


@pytest.mark.usefixtures("store")
def test_generated_data_needs_no_root_and_what_is_missing_is_named(tmp_path):
    scenes = load_dataset("scenes", train=8, dev=4, test=6)
    absent: dict[str, str] = {}
    table = spread_table(scenes, None, absent)
    assert table["data"].tolist() == ["scenes"] and absent == {}
    assert table["images"].tolist() == [6] and 0 < table["pooled"].item() < 1
    spread_table(scenes, tmp_path, absent)
    assert set(absent) == {"captions of coco5k", "captions of flickr30k"}
    assert issubclass(DataError, ValueError)


def test_texts_within_and_between_images():
    split, source = judged_split(), RELEVANCE["sentence"]("mine", scale="cosine")
    table = similarities(split, source, pairs=400)
    cosines = VECTORS @ VECTORS.T
    within = table.loc[table["match"], "score"]
    assert (table["match"].sum(), set(within.round(2))) == (
        400, {np.float32(round(float(cosines[a, a + 1]), 2)) for a in (0, 2, 4)})
    between = {round(float(cosines[a, b]), 2) for a in range(6) for b in range(6)
               if OWNER[a] != OWNER[b]}
    assert {round(float(x), 2) for x in table.loc[~table["match"], "score"]} <= between
    lonely = judged_split()
    lonely.image_of_text = np.arange(6)
    lonely.regions = np.zeros((6, 1, 1, 0), np.float32)
    with pytest.raises(ValueError, match="no image of split 'test' has two texts"):
        similarities(lonely, source)


def test_shares_of_ratings_count_each_rater_and_refuse_what_fits_no_level():
    ratings = np.array([[4, 4, 3], [1, 1, np.nan], [1, 2, 4]])
    table = rating_shares("experts", ratings, np.array([True, False, False]),
                          [0.5, 1.5, 2.5, 3.5, 4.5], "1234")
    assert table["pairs"].tolist() == [0, 0, 1, 2, 3, 1, 0, 1]
    assert table["share"].tolist() == pytest.approx([0, 0, 100 / 3, 200 / 3, 60, 20, 0, 20])
    with pytest.raises(ValueError, match="ratings from 1 to 4 do not lie in 2 to 4"):
        rating_shares("experts", ratings, np.zeros(3, bool), [2, 4], ["x"])
